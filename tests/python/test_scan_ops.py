"""Scans along a dimension."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import check_errors, check_samples, check_threads, find_op, name_of, same_error

NAMES = ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "cumulative_trapezoid", "trapezoid", "diff"]
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.bool]
CASES = [(find_op(name), dtype) for name in NAMES for dtype in DTYPES if dtype in find_op(name).dtypes]


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=name_of)
def test_samples_give_what_the_cpu_gives(op: OpInfo, dtype: torch.dtype) -> None:
    check_samples(op, dtype)


@pytest.mark.parametrize("name", [name for name in NAMES if find_op(name).error_inputs_func])
def test_wrong_arguments_raise_what_the_cpu_raises(name: str) -> None:
    check_errors(find_op(name))


SCANS = [torch.cumsum, torch.cumprod, torch.logcumsumexp, lambda x, d: torch.cummax(x, d)[0],
         lambda x, d: torch.cummax(x, d)[1], lambda x, d: torch.cummin(x, d)[0]]  # fmt: skip


@pytest.mark.parametrize("scan", SCANS)
def test_pieces_give_the_bits_of_the_whole(scan: object) -> None:
    x = torch.rand(5, 300, 257, generator=torch.Generator().manual_seed(0)) + 0.5
    for view in (x, x.transpose(0, 2), x[:, ::2]):
        mirror = x.to("neuron").as_strided(view.shape, view.stride())
        for dim in range(3):
            assert torch.equal(scan(mirror, dim).cpu(), scan(view, dim)), (view.shape, dim)


def test_they_are_recorded_in_every_mode() -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = torch.linspace(-1, 2, 60).reshape(3, 4, 5).to(device).requires_grad_()
        y = [x.cumsum(1), x.cumprod(-1), x.logcumsumexp(0), *x.cummax(1), *x.cummin(2), (x * 2).cumsum(0) + 1]
        sum(t.square().sum() for t in y if t.is_floating_point()).backward()
        z = x.detach().clone()
        z.cumsum_(1)
        return [*y, x.grad, z, torch.cumsum(z, 0, out=torch.empty(3, 4, 5, device=device))]

    run_everywhere(program)
    torch.neuron.reset_fusion_stats()
    x = torch.linspace(-1, 2, 60).reshape(3, 4, 5).to("neuron")
    x.cumsum(1), x.cumprod(1), x.logcumsumexp(1), x.cummax(1), x.cummin(1), x.cumsum_(0), x.bool().cumsum(0)
    assert torch.neuron.fusion_stats()["fallbacks"] == {}


def test_dtypes_and_numbers() -> None:
    for dtype in (torch.int32, torch.uint8, torch.float16):
        x = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=dtype)
        for given in (None, torch.float64):
            actual, expected = torch.cumsum(x.to("neuron"), 1, dtype=given), torch.cumsum(x, 1, dtype=given)
            assert actual.dtype == expected.dtype
            torch.testing.assert_close(actual.cpu(), expected)
    assert torch.tensor(3.0).to("neuron").cumsum(0).item() == 3
    assert torch.ones(0, 3, device="neuron").cumsum(0).shape == (0, 3)


def test_wrong_dimensions_raise_what_the_cpu_raises() -> None:
    for scan in (torch.cumsum, torch.cumprod, torch.logcumsumexp, torch.cummax, torch.cummin):
        same_error(lambda d, f=scan: f(torch.ones(2, 3, device=d), 2))
    same_error(lambda d: torch.ones(3, dtype=torch.bool, device=d).cumsum_(0))


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x = randn(300, 1031)
digest(x.cumsum(0), x.cumsum(1), x.sigmoid().cumprod(1), x.logcumsumexp(0), *x.cummax(1))
""")
