"""Storages: memory that comes when it is needed, aliasing, addresses, sizes, and what others see of them."""

from __future__ import annotations

import ctypes

import pytest
import torch


def floats_at(address: int, count: int) -> ctypes.Array:
    return (ctypes.c_float * count).from_address(address)


def test_an_address_shows_what_was_recorded():
    y = torch.arange(4.0, device="neuron") + 1
    assert list(floats_at(y.data_ptr(), 4)) == [1, 2, 3, 4]


def test_a_write_through_an_address_is_seen_by_later_operators():
    y = torch.arange(4.0, device="neuron") + 1
    floats_at(y.data_ptr(), 4)[0] = 7
    assert (y * 2).tolist() == [14, 4, 6, 8]


def test_a_write_through_an_address_is_not_seen_by_earlier_operators():
    """Case 32: the address is that of an input whose read is pending."""
    x = torch.arange(4.0, device="neuron")
    y = x + torch.ones(4, device="neuron")
    floats_at(x.data_ptr(), 4)[0] = 100
    assert y.tolist() == [1, 2, 3, 4]


def test_an_address_past_the_window_waits_for_the_worker():
    """Case 33."""
    from torch_neuron_eager import _testing

    with _testing.policy(adaptive=True, window=8):
        x = torch.zeros(1 << 16, device="neuron")
        for _ in range(50):
            x = x + 1
        assert list(floats_at(x.data_ptr(), 4)) == [50] * 4


def test_views_and_storages_agree_on_addresses():
    x = torch.arange(6.0, device="neuron")
    assert x[2:].data_ptr() == x.data_ptr() + 8
    assert x.untyped_storage().data_ptr() == x.data_ptr()


def test_memory_that_was_never_written_has_an_address():
    assert torch.empty(100, device="neuron").data_ptr() % 64 == 0


def test_empty_tensors_work():
    x = torch.empty(0, 3, device="neuron")
    assert (x + 1).shape == (0, 3)
    assert x.data_ptr() == 0
    assert x.cpu().shape == (0, 3)
    assert x.sum().item() == 0


def test_a_storage_grows_shrinks_and_keeps_its_content():
    x = torch.arange(4.0, device="neuron") + 1
    storage = x.untyped_storage()
    storage.resize_(64)
    assert storage.nbytes() == 64
    assert x.tolist() == [1, 2, 3, 4]
    storage.resize_(0)
    assert storage.nbytes() == 0
    storage.resize_(16)
    assert x.fill_(3).tolist() == [3] * 4


def test_resizing_a_storage_comes_after_what_was_recorded_on_it():
    x = torch.arange(4.0, device="neuron")
    y = x * 2
    x.untyped_storage().resize_(0)
    assert y.tolist() == [0, 2, 4, 6]


def test_resizing_a_tensor_keeps_its_content():
    x = torch.arange(4.0, device="neuron") + 1
    x.resize_(2, 3)
    assert x.flatten()[:4].tolist() == [1, 2, 3, 4]
    x.resize_(2)
    assert x.tolist() == [1, 2]


def test_set_shares_the_storage():
    x = torch.arange(6.0, device="neuron")
    y = torch.empty(0, device="neuron")
    y.set_(x)
    assert y.is_set_to(x)
    y[0] = 4
    assert x[0].item() == 4
    y.set_(x.untyped_storage(), 1, (2, 2), (2, 1))
    assert y.tolist() == [[1, 2], [3, 4]]
    y.set_()
    assert y.numel() == 0


def test_data_assignment_moves_a_parameter_to_the_device():
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.data = torch.full((3,), 2.0, device="neuron")
    assert parameter.device.type == "neuron"
    assert parameter.tolist() == [2.0] * 3


def test_dlpack_round_trip_shares_memory():
    """Case 39, with pending work on both sides."""
    x = torch.arange(6.0, device="neuron") + 0
    y = torch.from_dlpack(x)
    assert y.device == x.device
    y[0] = 5
    x[1] = 8
    assert x.tolist() == y.tolist() == [5, 8, 2, 3, 4, 5]
    x.mul_(2)
    z = y + 1
    x.zero_()
    assert z.tolist() == [11, 17, 5, 7, 9, 11]


def test_dlpack_of_a_view_starts_inside_the_storage():
    x = torch.arange(6.0, device="neuron") + 0
    view = torch.from_dlpack(x[2:])
    view.add_(1)
    x.mul_(2)
    assert x.tolist() == [0, 2, 6, 8, 10, 12]
    assert view.tolist() == [6, 8, 10, 12]


def test_dlpack_import_outlives_its_exporter():
    y = torch.from_dlpack(torch.arange(6.0, device="neuron") + 1)
    for _ in range(10):
        torch.zeros(6, device="neuron").sum().item()
    assert y.tolist() == [1, 2, 3, 4, 5, 6]


def test_untyped_storage_without_a_tensor_has_memory():
    storage = torch.UntypedStorage(16, device="neuron")
    assert storage.data_ptr() != 0
    x = torch.empty(0, device="neuron").set_(storage)
    assert x.fill_(2).tolist() == [2] * 4


def test_lazy_clone_is_a_copy():
    x = torch.ones(4, device="neuron")
    y = torch._lazy_clone(x)
    x.add_(1)
    assert y.tolist() == [1] * 4


def test_swapped_tensors_keep_their_contents():
    x, y = torch.ones(2, device="neuron") + 1, torch.zeros(3, device="neuron")
    torch.utils.swap_tensors(x, y)
    assert x.tolist() == [0] * 3
    assert y.tolist() == [2] * 2


def test_a_host_source_may_change_right_after_the_copy():
    """Case 40."""
    source = torch.ones(1000)
    fresh = source.to("neuron", non_blocking=True)
    used = torch.zeros(1000, device="neuron")
    used.copy_(source, non_blocking=True)
    scalar = torch.tensor(3.0)
    scaled = fresh * scalar
    source.zero_()
    scalar.zero_()
    assert fresh.sum().item() == 1000
    assert used.sum().item() == 1000
    assert scaled.sum().item() == 3000


FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn]


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int8, torch.int64, torch.bool, torch.complex64])
def test_every_dtype_comes_back_as_it_went(dtype: torch.dtype):
    source = torch.arange(6.0).view(2, 3).to(dtype)
    there = source.to("neuron")
    again = there.clone().t().contiguous()
    assert torch.equal(there.cpu().to(torch.complex64), source.to(torch.complex64))
    assert torch.equal(again.cpu().to(torch.complex64), source.t().to(torch.complex64))


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("source", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize("target", [torch.float64, torch.float16, torch.int32, torch.bool, torch.complex128])
def test_copies_cast_and_broadcast_as_on_cpu(source: torch.dtype, target: torch.dtype):
    x = torch.arange(3.0).to(source)
    expected = torch.zeros(2, 3, dtype=target).copy_(x)
    assert torch.equal(torch.zeros(2, 3, dtype=target, device="neuron").copy_(x).cpu(), expected)
    assert torch.equal(torch.zeros(2, 3, dtype=target, device="neuron").copy_(x.to("neuron")).cpu(), expected)
    assert torch.equal(torch.zeros(2, 3, dtype=target).copy_(x.to("neuron")), expected)


def test_a_source_that_does_not_broadcast_raises_as_on_cpu():
    with pytest.raises(RuntimeError) as expected:
        torch.zeros(3).copy_(torch.zeros(4))
    with pytest.raises(RuntimeError) as actual:
        torch.zeros(3, device="neuron").copy_(torch.zeros(4, device="neuron"))
    assert str(actual.value) == str(expected.value)


def test_slices_copy_over_each_other_as_on_cpu():
    """Cases 11 and 12."""
    a = torch.arange(12.0, device="neuron").view(4, 3)
    clone, view = a[3].clone(), a[3:4]
    a[3] = 300
    assert clone.tolist() == [9, 10, 11]
    assert view.tolist() == [[300] * 3]
    a[0] = a[1]
    assert a[0].tolist() == a[1].tolist() == [3, 4, 5]
    with pytest.raises(RuntimeError, match="single memory location"):
        a[1:] = a[:-1]


def test_conjugate_and_negative_bits_are_kept_and_resolved():
    """Case 38."""
    host = torch.tensor([[1 + 2j, 3 - 4j], [0 + 1j, -2 - 1j]])
    z = host.to("neuron")
    assert torch.equal(z.conj().cpu(), host.conj())
    assert torch.equal((z.conj() + 1).cpu(), host.conj() + 1)
    assert torch.equal(z.imag.cpu(), host.imag)
    assert torch.equal(z.conj().imag.cpu(), host.conj().imag)
    w, v = z.clone(), host.clone()
    w.conj().imag.mul_(2)
    v.conj().imag.mul_(2)
    assert torch.equal(w.cpu(), v)
    assert torch.equal(torch.empty_like(z).copy_(z.conj()).cpu(), host.conj().resolve_conj())
