"""Case 40: PyTorch's global settings that CPU kernels read when they run hold as they were at the call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_neuron_eager._C as _C

from modes import assert_same_bits, mode

BOTH = pytest.mark.parametrize("name", ["unfused", "adaptive"])


@contextlib.contextmanager
def changed(get: Callable[[], Any], put: Callable[[Any], None], value: Any) -> Iterator[None]:
    before = get()
    put(value)
    try:
        yield
    finally:
        put(before)


@contextlib.contextmanager
def product_precision(precision: str) -> Iterator[None]:
    with changed(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, precision):
        yield


@contextlib.contextmanager
def convolution_precision(precision: str) -> Iterator[None]:
    setting = torch.backends.mkldnn.conv

    def put(value: str) -> None:
        setting.fp32_precision = value

    with changed(lambda: setting.fp32_precision, put, precision):
        yield


@contextlib.contextmanager
def assigned_to_a_property() -> Iterator[None]:
    with getattr(torch.backends, "__allow_nonbracketed_mutation")():
        torch.backends.mkldnn.enabled = False
        try:
            yield
        finally:
            torch.backends.mkldnn.enabled = True


@contextlib.contextmanager
def without_onednn_and_nnpack() -> Iterator[None]:
    with torch.backends.mkldnn.flags(enabled=False, allow_tf32=None), torch.backends.nnpack.flags(enabled=False):
        yield


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    with changed(torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True):
        yield


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    with changed(torch.get_num_threads, torch.set_num_threads, count):
        yield


CHANGES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "without oneDNN": lambda: torch.backends.mkldnn.flags(enabled=False, allow_tf32=None),
    "without oneDNN, by assignment": assigned_to_a_property,
    "without oneDNN and NNPACK": without_onednn_and_nnpack,
    "medium precision": lambda: product_precision("medium"),
    "high precision": lambda: product_precision("high"),
    "bf16 convolution": lambda: convolution_precision("bf16"),
    "deterministic": deterministic,
    "one thread": lambda: threads(1),
    "five threads": lambda: threads(5),
}


def operators() -> list[torch.Tensor]:
    """Record some operators that are calls of ATen's kernels."""
    x = torch.arange(16 * 16 * 20 * 20, dtype=torch.float32, device="neuron").sin().view(16, 16, 20, 20)
    weight = torch.arange(32 * 16 * 9, dtype=torch.float32, device="neuron").cos().view(32, 16, 3, 3)
    heads = x.view(16, 4, 80, 20)
    rows = torch.arange(4000, device="neuron") % 10
    return [
        F.conv2d(x, weight),
        F.conv_transpose2d(x, weight.transpose(0, 1)),
        x.view(400, 256) @ x.view(256, 400),
        torch.bmm(x[0], x[1]),
        F.scaled_dot_product_attention(heads, heads, heads),
        torch.zeros(10, device="neuron").index_add_(0, rows, x.view(-1)[:4000]),
        torch.zeros(10, device="neuron").index_put_((rows,), x.view(-1)[:4000], accumulate=True),
        torch.cdist(x[0, 0], x[1, 1]),
    ]


def program(change: Callable[[], AbstractContextManager[None]], wait: Callable[[], None]) -> list[list[torch.Tensor]]:
    """Record operators before, during and after a change of a setting."""
    busy = torch.ones(400, 400, device="neuron")  # what follows waits for it
    for _ in range(30):
        busy = busy @ busy / 400
    before = operators()
    wait()
    with change():
        during = operators()
        wait()
    after = operators()
    return [[tensor.cpu() for tensor in tensors] for tensors in (before, during, after)]


@BOTH
@pytest.mark.parametrize("change", CHANGES)
def test_40_operators_run_under_the_settings_of_their_call(change: str, name: str) -> None:
    with mode(name):
        expected = program(CHANGES[change], torch.neuron.synchronize)
        actual = program(CHANGES[change], lambda: None)
    for part, tensors, wanted in zip(("before", "during", "after"), actual, expected, strict=True):
        assert_same_bits(tensors, wanted, part)
    assert_same_bits(expected[2], expected[0], "after against before")
    if change in ("one thread", "five threads", "deterministic"):
        assert_same_bits(expected[1], expected[0], "during against before")
    if change.startswith("without"):
        assert not torch.equal(expected[1][0], expected[0][0]), "the setting changes nothing here: no test"


@BOTH
@pytest.mark.parametrize("change", [c for c in CHANGES if "thread" not in c])
def test_40_who_changes_a_setting_waits_for_what_was_recorded(change: str, name: str) -> None:
    with mode(name):
        x = torch.ones(4, device="neuron") + 1
        with CHANGES[change]():
            assert _C.pending() == 0
            y = x + 1
        assert _C.pending() == 0
        assert y.tolist() == [3, 3, 3, 3]


def test_40_an_error_found_when_a_setting_changes_stays_for_the_reader() -> None:
    with mode("adaptive"):
        index = torch.tensor([5], device="neuron") + 2
        picked = torch.ones(4, device="neuron")[index]
        with product_precision("high"):
            pass
        with pytest.raises(IndexError):
            picked.cpu()


# Deterministic mode --------------------------------------------------------------------------------------------------


def max_unpool(device: str) -> torch.Tensor:
    pooled, indices = F.max_pool2d(torch.arange(16.0, device=device).view(1, 4, 4), 2, return_indices=True)
    return F.max_unpool2d(pooled, indices, 2)


def put(device: str) -> torch.Tensor:
    return torch.zeros(4, device=device).put_(torch.tensor([1], device=device), torch.ones(1, device=device))


@pytest.mark.parametrize("operator", [max_unpool, put])
@BOTH
def test_operators_without_a_deterministic_form_raise_at_the_call(
    operator: Callable[[str], torch.Tensor], name: str
) -> None:
    texts = []
    for device in ("neuron", "cpu"):
        with mode(name), deterministic(), pytest.raises(RuntimeError, match="does not have a deterministic") as caught:
            operator(device)
        texts.append(str(caught.value).splitlines()[0])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("operator", [max_unpool, put])
def test_operators_without_a_deterministic_form_warn_where_that_is_asked_for(
    operator: Callable[[str], torch.Tensor],
) -> None:
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        with pytest.warns(UserWarning, match="does not have a deterministic implementation"):
            result = operator("neuron")
        assert torch.equal(result.cpu(), operator("cpu"))
    finally:
        torch.use_deterministic_algorithms(False)


DTYPES = [torch.bool, torch.uint8, torch.int64, torch.uint16, torch.float16, torch.float32, torch.complex64]


def without_content(device: str, dtype: torch.dtype) -> list[torch.Tensor]:
    grown = torch.ones(2, device=device, dtype=dtype)
    grown.resize_(3, 3)
    return [
        torch.empty(3, device=device, dtype=dtype),
        torch.empty(1, 2, 2, 2, device=device, dtype=dtype, memory_format=torch.channels_last),
        torch.empty_strided((2, 2), (1, 4), device=device, dtype=dtype),
        torch.empty_permuted((2, 3), (1, 0), device=device, dtype=dtype),
        torch.empty_like(grown),
        grown.new_empty(2),
        grown,
        torch.ones(6, device=device, dtype=dtype).resize_(2).resize_(5),
    ]


@BOTH
@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_without_content_is_filled_as_on_the_cpu(dtype: torch.dtype, name: str) -> None:
    with mode(name), deterministic():
        actual, expected = without_content("neuron", dtype), without_content("cpu", dtype)
    assert_same_bits([tensor.cpu() for tensor in actual], expected, "filled memory")
    assert [tensor._version for tensor in actual] == [tensor._version for tensor in expected]


def test_memory_without_content_is_left_alone_where_that_is_asked_for() -> None:
    before = torch.neuron.fusion_stats()["operators_recorded"]
    fill = torch.utils.deterministic.fill_uninitialized_memory
    try:
        torch.utils.deterministic.fill_uninitialized_memory = False
        with deterministic():
            torch.empty(3, device="neuron")
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = fill
    assert torch.neuron.fusion_stats()["operators_recorded"] == before
