"""Runs PyTorch's own operator samples on the device and on the CPU and compares what comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

DTYPES = [torch.float32, torch.bfloat16]


def name_of(value: Any) -> str:
    """Return a test's name for an operator or a dtype."""
    return value.formatted_name if isinstance(value, OpInfo) else str(value).removeprefix("torch.")


def find_op(name: str, variant: str = "") -> OpInfo:
    return next(op for op in op_db if op.name == name and op.variant_test_name == variant)


def mirror_of(sample: SampleInput) -> SampleInput:
    """Returns the sample on the device: same strides and offsets, and what shares memory there shares it here.

    A tensor that stands in two places is one here too.
    """
    storages: dict[tuple[int, torch.dtype], torch.Tensor] = {}
    moved: dict[int, torch.Tensor] = {}

    def move(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return torch.device("neuron") if value in (torch.device("cpu"), "cpu") else value
        if id(value) in moved:
            return moved[id(value)]
        storage = value.untyped_storage()
        key = (storage.data_ptr(), value.dtype)
        if key not in storages:
            flat = value.detach().as_strided((storage.nbytes() // value.element_size(),), (1,), 0)
            storages[key] = flat.to("neuron")
        view = storages[key].as_strided(value.shape, value.stride(), value.storage_offset())
        moved[id(value)] = view.detach().requires_grad_(value.requires_grad)
        return moved[id(value)]

    return sample.transform(move)


def tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in tensors_in(item)] if isinstance(value, (list, tuple)) else []


def operands_of(sample: SampleInput) -> list[torch.Tensor]:
    return tensors_in([sample.input, sample.args, sample.kwargs])


def meaningful_strides(tensor: torch.Tensor) -> list[int]:
    return [] if tensor.numel() == 0 else [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]


def assert_like(
    actual: torch.Tensor, expected: torch.Tensor, *, strides: bool, what: str, atol: float | None = None
) -> None:
    assert actual.device.type == "neuron", what
    assert actual.dtype == expected.dtype, what
    assert actual.shape == expected.shape, what
    if strides:
        assert meaningful_strides(actual) == meaningful_strides(expected), what
    tolerance = {"rtol": 1.3e-6, "atol": atol} if atol is not None and expected.dtype == torch.float32 else {}
    if expected.dtype in (torch.bfloat16, torch.float16):
        tolerance = {"rtol": 1.6e-2, "atol": 1e-2}
    torch.testing.assert_close(
        actual.detach().cpu(), expected.detach(), equal_nan=True, msg=lambda text: f"{what}: {text}", **tolerance
    )


def gradients(results: list[torch.Tensor], operands: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """Gradients of a weighted sum of the results, with weights that do not depend on the device."""
    outputs = [r for r in results if r.requires_grad]
    wanted = [t for t in operands if t.requires_grad]
    if not outputs or not wanted:
        return []
    generator = torch.Generator().manual_seed(5)
    weights = [torch.randn(o.shape, generator=generator).to(o.dtype).to(o.device) for o in outputs]
    return list(torch.autograd.grad(outputs, wanted, weights, allow_unused=True))


def check_samples(op: OpInfo, dtype: torch.dtype, *, backward: bool = True, grad_atol: float | None = None) -> None:
    """Compares dtype, shape, strides, values and gradients of all samples of an operator."""
    grad = backward and op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    count = 0
    for sample in op.sample_inputs("cpu", dtype, requires_grad=grad):
        mirror = mirror_of(sample)
        what = f"{op.name} {sample.summary()}"
        expected = op(sample.input, *sample.args, **sample.kwargs)
        actual = op(mirror.input, *mirror.args, **mirror.kwargs)
        for a, e in zip(tensors_in(actual), tensors_in(expected), strict=True):
            assert_like(a, e, strides=True, what=what)
        if grad:
            pairs = zip(
                gradients(tensors_in(actual), operands_of(mirror)),
                gradients(tensors_in(expected), operands_of(sample)),
                strict=True,
            )
            for a, e in pairs:
                assert (a is None) == (e is None), what
                if a is not None and e is not None:
                    assert_like(a, e, strides=False, what=f"gradient of {what}", atol=grad_atol)
        count += 1
    assert count > 0


def error_cases(op: OpInfo) -> Iterator[tuple[SampleInput, type[Exception], str]]:
    """Samples that the CPU refuses, with the error it raises."""
    for case in op.error_inputs("cpu"):
        sample = case.sample_input
        try:
            op(sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            yield sample, type(error), str(error).split("\n")[0]


def with_errors(ops: list[Any]) -> list[Any]:
    """Those of the operators (names, or pairs of name and variant) that have samples of wrong arguments."""
    return [op for op in ops if find_op(*([op] if isinstance(op, str) else op)).error_inputs_func is not None]


def check_errors(op: OpInfo) -> None:
    """Compares type and first line of the errors of wrong arguments."""
    for sample, kind, line in error_cases(op):
        mirror = mirror_of(sample)
        with pytest.raises(Exception) as caught:  # noqa: PT011, PT012 - type and text are compared below
            op(mirror.input, *mirror.args, **mirror.kwargs)
            torch.neuron.synchronize()
        assert (type(caught.value), str(caught.value).split("\n")[0]) == (kind, line), sample.summary()


def same_error(program: Any) -> None:
    """``program(device)`` raises the same on the device as on the CPU, at the call."""
    with pytest.raises(Exception) as expected:  # noqa: PT011
        program("cpu")
    with pytest.raises(Exception) as actual:  # noqa: PT011
        program("neuron")
    assert type(actual.value) is type(expected.value)
    assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


_PRELUDE = """
import hashlib
import torch
import torch.nn.functional as F
generator = torch.Generator().manual_seed(7)
def digest(*tensors):
    for t in tensors:
        print(hashlib.sha256(t.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest())
def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=generator).to(dtype).to("neuron")
"""


def check_threads(body: str) -> None:
    """Runs Python code that calls ``digest`` with one and with two threads: the bits must be the same.

    The code has ``torch``, ``F`` and ``randn``, which makes the same numbers each time.
    """
    code = _PRELUDE + body
    printed = {}
    for threads in ("1", "2"):
        environment = {**os.environ, "NEURON_EAGER_THREADS": threads, "NEURON_ADAPTIVE_EAGER": "1"}
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        printed[threads] = run.stdout.split()
    assert printed["1"]
    assert printed["1"] == printed["2"]
