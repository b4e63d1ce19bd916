from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import (
    check_errors,
    check_samples,
    check_threads,
    find_op,
    meaningful_strides,
    name_of,
    same_error,
    with_errors,
)
from recorded import cases_of, no_fallback

NAMES = " ".join(
    f"nn.functional.{kind}{n}d" for kind in ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool")
    for n in (1, 2, 3)
)  # fmt: skip
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def thinned(op: OpInfo) -> OpInfo:
    """The operator with every eleventh of its samples, where it has very many (each choice of all options)."""
    if "max_pool" not in op.name or "adaptive" in op.name:
        return op
    few = copy.copy(op)
    few.sample_inputs_func = lambda *args, **kwargs: itertools.islice(
        op.sample_inputs_func(*args, **kwargs), 0, None, 11
    )
    return few


@pytest.mark.parametrize(("op", "dtype"), cases_of(NAMES, DTYPES), ids=name_of)
def test_samples_agree_with_the_cpu(op: OpInfo, dtype: torch.dtype) -> None:
    check_samples(thinned(op), dtype)


@pytest.mark.parametrize("name", with_errors(NAMES.split()))
def test_wrong_arguments_raise_what_the_cpu_raises(name: str) -> None:
    check_errors(find_op(name))


def pools(dims: int) -> dict[str, Any]:
    return {
        "max": lambda x: getattr(F, f"max_pool{dims}d")(x, 3, stride=2, padding=1, ceil_mode=True),
        "avg": lambda x: getattr(F, f"avg_pool{dims}d")(x, 2, padding=1, count_include_pad=False),
        "adaptive_avg": lambda x: getattr(F, f"adaptive_avg_pool{dims}d")(x, 5),
        "adaptive_max": lambda x: getattr(F, f"adaptive_max_pool{dims}d")(x, 4),
    }


@pytest.mark.parametrize("kind", ["max", "avg", "adaptive_avg", "adaptive_max"])
@pytest.mark.parametrize(("dims", "shape"), [(1, (8, 48, 300)), (2, (8, 16, 48, 40)), (2, (1, 64, 48, 40)),
                                             (2, (64, 48, 40)), (3, (4, 8, 12, 20, 16))])  # fmt: skip
@pytest.mark.parametrize("last", [False, True])
def test_large_images_in_both_formats(dims: int, shape: tuple[int, ...], kind: str, last: bool) -> None:
    if last and len(shape) < 4:
        pytest.skip("no such format")
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    if last:
        x = x.contiguous(memory_format=torch.channels_last if dims == 2 else torch.channels_last_3d)

    def program(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        leaf = x.to(device).requires_grad_()
        out = pools(dims)[kind](leaf)
        (grad,) = torch.autograd.grad(out, leaf, torch.cos(out.detach()))
        return out.detach(), grad

    with no_fallback():
        actual = program("neuron")
    expected = program("cpu")
    for a, e in zip(actual, expected, strict=True):
        assert meaningful_strides(a) == meaningful_strides(e)
        torch.testing.assert_close(a.cpu(), e)
    run_everywhere(program)


def test_indices_are_those_of_the_cpu() -> None:
    x = torch.randn(4, 32, 33, 31)
    out, indices = F.max_pool2d(x.to("neuron"), 3, return_indices=True)
    expected = F.max_pool2d(x, 3, return_indices=True)
    assert torch.equal(out.cpu(), expected[0])
    assert torch.equal(indices.cpu(), expected[1])


def test_out_forms() -> None:
    x = torch.randn(4, 32, 33, 31)
    expected = F.avg_pool2d(x, 2)
    for out in (torch.empty(0, device="neuron"), torch.empty(16, 15, 4, 32, device="neuron").permute(2, 3, 0, 1)):
        with no_fallback():
            assert torch._C._nn.avg_pool2d(x.to("neuron"), 2, out=out) is out
        torch.testing.assert_close(out.cpu(), expected)


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x = randn(8, 24, 40, 44).requires_grad_()
for pool in (lambda x: F.max_pool2d(x, 3, 2), lambda x: F.avg_pool2d(x, 3), lambda x: F.adaptive_avg_pool2d(x, 7)):
    y = pool(x)
    digest(y, *torch.autograd.grad(y.square().sum(), x))
""")


def test_errors_come_at_the_call() -> None:
    x = torch.randn(2, 3, 8, 8)
    for program in [
        lambda d: F.max_pool2d(x.to(d), 9),
        lambda d: F.max_pool2d(x.to(d), 2, padding=2),
        lambda d: F.max_pool2d(x.to(d), 0),
        lambda d: F.max_pool3d(torch.randn(2, 3, 4, 4, 4).to(d), 5),
        lambda d: F.avg_pool2d(x.to(d), (2, 2, 2)),
        lambda d: F.avg_pool2d(x[0, 0].to(d), 2),
        lambda d: F.avg_pool2d(x.to(d), 2, divisor_override=0),
        lambda d: F.adaptive_avg_pool2d(x.to(d), (-1, 2)),
        lambda d: F.adaptive_max_pool2d(x[0, 0].to(d), 2),
        lambda d: F.max_pool2d(torch.ones(2, 3, 4, 4).bool().to(d), 2),
    ]:
        same_error(program)
