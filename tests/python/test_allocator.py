"""Memory figures and limits."""

from __future__ import annotations

import gc

import pytest
import torch

from memory import settled_memory

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_left_of_other_tests():
    gc.collect()
    settled_memory()


def test_figures_follow_the_tensors_that_a_program_holds():
    before = torch.neuron.memory_allocated()
    x = torch.zeros(MIB, device="neuron")
    held = torch.neuron.memory_allocated()
    assert held - before == 4 * MIB
    assert torch.accelerator.memory_allocated() == held
    del x
    assert torch.neuron.memory_allocated() == before


def test_the_peak_is_kept_until_it_is_reset():
    torch.neuron.reset_peak_memory_stats()
    before = torch.neuron.memory_allocated()
    x = torch.zeros(MIB, device="neuron")
    torch.neuron.synchronize()
    del x
    assert torch.neuron.max_memory_allocated() >= before + 4 * MIB
    torch.neuron.reset_peak_memory_stats()
    assert torch.neuron.max_memory_allocated() < before + 4 * MIB


def test_emptying_the_cache_gives_memory_back():
    x = torch.zeros(8 * MIB, device="neuron")
    torch.neuron.synchronize()
    reserved = torch.neuron.memory_reserved()
    del x
    torch.neuron.empty_cache()
    assert torch.neuron.memory_reserved() <= reserved - 32 * MIB


def test_a_value_that_nobody_sees_gets_no_memory():
    with torch.neuron.adaptive_eager(True):
        x = torch.ones(MIB, device="neuron")
        torch.neuron.synchronize()
        torch.neuron.reset_peak_memory_stats()
        before = torch.neuron.memory_allocated()
        y = ((x + 1) * 2 - 3).sum()
        assert y.item() == MIB
        assert torch.neuron.max_memory_allocated() < before + 4 * MIB


def test_beyond_the_limit_the_line_that_asks_raises_and_nothing_is_lost():
    kept = torch.arange(4.0, device="neuron") + 1
    total = torch.neuron.mem_get_info()[1]
    torch.neuron.set_per_process_memory_fraction(64 * MIB / total)
    try:
        with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 256\.0 MiB"):
            torch.empty(64 * MIB, device="neuron")
        x = torch.ones(MIB, device="neuron")
        assert x.sum().item() == MIB
        assert kept.tolist() == [1, 2, 3, 4]
    finally:
        torch.neuron.set_per_process_memory_fraction(1.0)
    assert torch.zeros(64 * MIB, device="neuron").numel() == 64 * MIB


def test_more_than_the_machine_has_raises():
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 50, device="neuron")


def test_memory_stays_flat_over_many_steps():
    """Case 27: nothing but the policy forces a flush."""
    with torch.neuron.adaptive_eager(True):
        total = torch.zeros(1, device="neuron")
        x = torch.ones(1024, device="neuron")
        for _ in range(200):
            total += (x * 2).sum()
        torch.neuron.synchronize()
        torch.neuron.reset_peak_memory_stats()
        before = torch.neuron.memory_allocated()
        for _ in range(2000):
            total += (x * 2).sum()
        assert total.item() == 2200 * 2048
        assert torch.neuron.max_memory_allocated() - before < 64 * MIB


def test_invalid_fractions_are_refused():
    with pytest.raises(ValueError, match="Allowed range"):
        torch.neuron.set_per_process_memory_fraction(1.5)
