"""Views and metadata: never a fallback, nothing recorded, the geometry of the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "alias": torch.ops.aten.alias,
    "as_strided": lambda x: x.as_strided((2, 2), (4, 1), 3),
    "chunk": lambda x: x.chunk(2, 2)[1],
    "detach": lambda x: x.detach(),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "expand": lambda x: x[:1].expand(5, 3, 4),
    "flatten": lambda x: x.flatten(),
    "lift_fresh": torch.ops.aten.lift_fresh,
    "mT": lambda x: x.mT,
    "movedim": lambda x: x.movedim(0, 2),
    "narrow": lambda x: x.narrow(2, 1, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "reshape": lambda x: x.reshape(4, 6),
    "reshape_alias": lambda x: torch.ops.aten._reshape_alias(x, (6, 4), (4, 1)),
    "select": lambda x: x[1],
    "slice": lambda x: x[:, 1:, ::2],
    "split": lambda x: x.split(2, 1)[1],
    "split_with_sizes": lambda x: x.split([1, 2], 1)[1],
    "squeeze": lambda x: x[:1].squeeze(),
    "t": lambda x: x[0].t(),
    "transpose": lambda x: x.transpose(0, 2),
    "unbind": lambda x: x.unbind(1)[2],
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "view": lambda x: x.view(6, 4),
    "view as integers": lambda x: x.view(torch.int32),
    "view as shorter integers": lambda x: x.view(torch.int16),
    "view_as_complex": lambda x: torch.view_as_complex(x.view(2, 3, 2, 2)),
    "view_as_complex, real": lambda x: torch.view_as_complex(x.view(2, 3, 2, 2)).real,
    "view_as_complex, conj": lambda x: torch.view_as_complex(x.view(2, 3, 2, 2)).conj(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_records_nothing_and_has_the_geometry_of_the_cpu(name: str):
    host = torch.arange(24.0).view(2, 3, 4)
    x = host.to("neuron")
    before = torch.neuron.fusion_stats()
    actual, expected = VIEWS[name](x), VIEWS[name](host)
    after = torch.neuron.fusion_stats()
    assert after["operators_recorded"] == before["operators_recorded"]
    assert after["fallbacks"] == before["fallbacks"]
    assert actual.stride() == expected.stride()
    assert actual.storage_offset() == expected.storage_offset()
    assert torch.equal(actual.cpu(), expected)


WRITABLE = [name for name in VIEWS if "integers" not in name and "complex" not in name and name != "expand"]


@pytest.mark.parametrize("name", WRITABLE)
def test_a_write_through_a_view_is_seen_in_its_base(name: str):
    host = torch.arange(24.0).view(2, 3, 4)
    x = host.to("neuron")
    for tensor in (host, x):
        view = VIEWS[name](tensor)
        if name == "unfold":
            view = view[..., 0]
        view.mul_(-1)
    assert torch.equal(x.cpu(), host)


def test_pieces_of_a_split_alias():
    """Case 21."""
    x = torch.arange(4.0, device="neuron")
    b, c = x.split(2)
    x[0] = -1
    assert b.tolist() == [-1, 1]
    c.fill_(7)
    assert x.tolist() == [-1, 1, 7, 7]


def test_views_share_the_version_counter():
    x = torch.zeros(4, device="neuron")
    view = x[1:]
    x.add_(1)
    assert view._version == x._version == 1


def test_channels_last_is_kept():
    x = torch.arange(24.0).view(1, 2, 3, 4).to("neuron").contiguous(memory_format=torch.channels_last)
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal((x + 1).cpu(), torch.arange(24.0).view(1, 2, 3, 4) + 1)
    assert (x + 1).is_contiguous(memory_format=torch.channels_last)
    assert torch.empty(1, 2, 3, 4, device="neuron", memory_format=torch.channels_last).stride() == (24, 1, 8, 2)


def test_zero_tensors_of_forward_mode_add_as_zero():
    zero = torch.ops.aten._efficientzerotensor([3], device="neuron")
    assert (torch.ones(3, device="neuron") + zero).tolist() == [1] * 3
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(torch.ones(3, device="neuron"), torch.full((3,), 2.0, device="neuron"))
        assert torch.autograd.forward_ad.unpack_dual(x * x).tangent.tolist() == [4] * 3


def test_views_out_of_bounds_raise_as_on_cpu():
    x = torch.arange(4.0, device="neuron")
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        x.as_strided((4,), (4,), 0)
    with pytest.raises(RuntimeError, match="is invalid for input of size 4"):
        x.view(5)
    with pytest.raises(IndexError):
        x[4]
