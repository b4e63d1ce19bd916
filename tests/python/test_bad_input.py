"""Wrong arguments of recorded operators raise what the CPU raises: the same type and first line, at the call.

PyTorch's own list of wrong arguments comes first; then its samples of right ones, each with one argument spoilt: a
shape that does not fit, a dtype that is not supported, a dimension out of range, a name that does not exist, another
device.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from operator_rules import base_of
from opinfo import mirror_of, name_of, operands_of
from program_runner import first_line, registered

RECORDED = {base_of(name) for name in registered()}


def aten_names(op: OpInfo) -> set[str]:
    """Return the names under which an operator of PyTorch's list may be registered."""
    names = {op.name, op.aten_name, op.name.replace(".", "_"), op.name.rpartition(".")[2]}
    names |= {alias.name.replace(".", "_") for alias in op.aliases}
    return names | {f"native_{name}" for name in names} | {f"{name}_forward" for name in names}


# Not compared: sparse tensors, which the device does not have; dropout of complex numbers, which it has and the CPU has
# not; pivots out of range, for which the CPU reads beyond its memory.
LEFT_OUT = {"sparse.mm", "nn.functional.dropout", "lu_unpack"}
OPERATORS = [op for op in op_db if aten_names(op) & RECORDED and op.name not in LEFT_OUT]
# Errors that depend on the values are raised at the next read, with a note on where the operator was called.
BY_DATA = {"multinomial"}
LATER = " (This operator ran on the DEVICE device later"
WITH_ERRORS = [op for op in OPERATORS if op.error_inputs_func is not None]


def test_most_of_the_recorded_operators_are_in_the_list() -> None:
    assert len(OPERATORS) > 250
    assert len(WITH_ERRORS) > 50


def outcome(op: OpInfo, sample: SampleInput) -> tuple[str, str] | None:
    """Call an operator; return its error's type and first line, None if there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            op(sample.input, *sample.args, **sample.kwargs)
            torch.neuron.synchronize()
    except Exception as error:
        line = first_line(error)
        return type(error).__name__, line.split(LATER)[0] if op.name in BY_DATA else line
    return None


def check_all(op: OpInfo, samples: Iterable[tuple[str, SampleInput]]) -> None:
    """Compare an operator's errors on the device with the CPU's for samples that are named."""
    wrong = []
    for what, sample in samples:
        mirror = mirror_of(sample)
        expected, actual = outcome(op, sample), outcome(op, mirror)
        if actual != expected:
            wrong.append(f"{what} of {sample.summary()}:\n  {actual}\n  is not the CPU's\n  {expected}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:5])


@pytest.mark.parametrize("op", WITH_ERRORS, ids=name_of)
def test_wrong_arguments_of_the_list(op: OpInfo) -> None:
    check_all(op, (("an error of the list", case.sample_input) for case in op.error_inputs("cpu")))


# Spoilt samples

DTYPES = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.complex64]


def spoilt_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Give wrong values for an argument, with what is wrong about each."""
    if isinstance(value, torch.Tensor):
        yield "shape", value.new_ones((*value.shape[:-1], 11) if value.dim() else (11, 13))
        yield "rank", value.new_ones((2, 3, 5, 7, 11, 13))
        for dtype in DTYPES:
            if dtype != value.dtype:
                yield str(dtype), value.to(dtype)
    elif isinstance(value, bool):
        return
    elif isinstance(value, int):
        yield "too large", 100
        yield "too small", -100
    elif isinstance(value, str):
        yield "unknown name", "no such thing"


def leaves(sample: SampleInput) -> list[Any]:
    """List a sample's arguments, lists opened."""
    found: list[Any] = []

    def note(value: Any) -> Any:
        found.append(value)
        return value

    sample.transform(note)
    return found


def with_leaf(sample: SampleInput, position: int, replacement: Any) -> SampleInput:
    """Return the sample with one of its leaves replaced."""
    count = iter(range(10**6))
    return sample.transform(lambda value: replacement if next(count) == position else value)


def spoilt(op: OpInfo) -> Iterator[tuple[str, SampleInput]]:
    """Give an operator's first samples, each with one argument spoilt in each of the ways."""
    dtype = torch.float32 if torch.float32 in op.dtypes else torch.int64
    samples = (s for s in op.sample_inputs("cpu", dtype) if all(t.numel() for t in operands_of(s)))
    for sample in islice(samples, 3):
        for position, value in enumerate(leaves(sample)):
            for what, replacement in spoilt_values(value):
                yield f"argument {position}: {what}", with_leaf(sample, position, replacement)


@pytest.mark.parametrize("op", OPERATORS, ids=name_of)
def test_spoilt_arguments(op: OpInfo) -> None:
    check_all(op, spoilt(op))


def mixed(op: OpInfo) -> Iterator[SampleInput]:
    """Give an operator's first samples on the device with one tensor left on the CPU."""
    dtype = torch.float32 if torch.float32 in op.dtypes else torch.int64
    for sample in islice(op.sample_inputs("cpu", dtype), 3):
        host = leaves(sample)
        tensors = [
            i for i, value in enumerate(host) if isinstance(value, torch.Tensor) and value.dim() and value.numel()
        ]
        if len(tensors) > 1:
            for position in tensors:
                yield with_leaf(mirror_of(sample), position, host[position])


@pytest.mark.parametrize("op", OPERATORS, ids=name_of)
def test_tensors_of_two_devices(op: OpInfo) -> None:
    for sample in mixed(op):
        actual = outcome(op, sample)
        assert actual is not None, f"{sample.summary()} is accepted"
        assert actual[0] == "RuntimeError", f"{actual} for {sample.summary()}"
        assert "device" in actual[1].lower(), f"{actual} for {sample.summary()}"
