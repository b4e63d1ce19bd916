"""Runs a program in every mode and compares the bits."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_neuron_eager import _C

MODES: dict[str, dict[str, Any]] = {
    "unfused": {"adaptive": False, "period": 0},
    "adaptive": {"adaptive": True, "period": 0},
    **{f"flush every {k}": {"adaptive": True, "period": k} for k in (1, 2, 3, 7)},
}


@contextlib.contextmanager
def mode(name: str) -> Iterator[None]:
    """Sets one of `MODES` and puts the settings back at the end."""
    before = _C.settings()
    _C.change_settings(MODES[name])
    try:
        yield
    finally:
        _C.change_settings(before)


def flatten(result: Any) -> list[torch.Tensor]:
    """All tensors in nested tuples, lists and dicts; other values become tensors."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        return [tensor for value in result.values() for tensor in flatten(value)]
    if isinstance(result, (tuple, list)):
        return [tensor for value in result for tensor in flatten(value)]
    return [torch.tensor(result)]


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a CPU tensor; NaNs are made one NaN, whose payload is not promised."""
    tensor = tensor.detach().clone(memory_format=torch.contiguous_format)
    if tensor.is_floating_point():
        tensor = torch.where(tensor.isnan(), torch.full_like(tensor, float("nan")), tensor)
    return tensor.reshape(-1).view(torch.uint8)


def assert_same_bits(actual: list[torch.Tensor], expected: list[torch.Tensor], what: str) -> None:
    assert len(actual) == len(expected), what
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        kinds = [(tensor.dtype, tensor.shape) for tensor in (a, e)]
        assert kinds[0] == kinds[1], f"{what}: result {i} is {kinds[0]}, not {kinds[1]}"
        assert torch.equal(bits(a), bits(e)), f"{what}: result {i} has other bits:\n{a}\nthan\n{e}"


def run_everywhere(
    program: Callable[[str], Any], *, exact: bool = False, cpu: bool = True, seed: int = 0
) -> list[torch.Tensor]:
    """Runs ``program(device)`` on neuron in every mode and on the CPU.

    Parameters
    ----------
    program
        Takes a device name; returns tensors, numbers, or nested lists of them.
    exact
        The CPU's bits are asked for, not only `torch.testing.assert_close`'s defaults.
    cpu
        Compare with the CPU at all (not for random numbers).

    Returns
    -------
    list of Tensor
        What the unfused mode gave, on the CPU.
    """
    results = {}
    for name in MODES:
        with mode(name):
            torch.manual_seed(seed)
            results[name] = [tensor.detach().cpu() for tensor in flatten(program("neuron"))]
    first = results["unfused"]
    for name, result in results.items():
        assert_same_bits(result, first, f"{name} against unfused")
    if cpu:
        torch.manual_seed(seed)
        expected = [tensor.detach().clone() for tensor in flatten(program("cpu"))]
        if exact:
            assert_same_bits(first, expected, "neuron against cpu")
        else:
            for actual, wanted in zip(first, expected, strict=True):
                torch.testing.assert_close(actual, wanted, equal_nan=True)
    return first


def run_script(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("NEURON_")} | environment
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], env=env, capture_output=True, text=True, timeout=120
    )
