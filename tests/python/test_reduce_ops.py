"""Reductions: samples and errors of PyTorch's own operator list, shapes of all kinds, threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import assert_like, check_errors, check_samples, check_threads, name_of, same_error

NAMES = """
    sum mean prod amax amin max min any all var std var_mean std_mean linalg.vector_norm norm logsumexp
    argmax argmin aminmax nansum count_nonzero trace
"""
OPERATORS = [op for op in op_db if op.name in NAMES.split() and op.variant_test_name not in ("nuc", "binary")]
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.bool]
CASES = [(op, dtype) for op in OPERATORS for dtype in DTYPES if dtype in op.dtypes]


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=name_of)
def test_samples_give_what_the_cpu_gives(op: OpInfo, dtype: torch.dtype) -> None:
    check_samples(op, dtype)


@pytest.mark.parametrize("op", [op for op in OPERATORS if op.error_inputs_func], ids=name_of)
def test_wrong_arguments_raise_what_the_cpu_raises(op: OpInfo) -> None:
    check_errors(op)


FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "amin": torch.amin, "std": torch.std, "var": torch.var,
    "any": torch.any, "all": torch.all, "norm": torch.linalg.vector_norm, "logsumexp": torch.logsumexp,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_dimensions_of_any_layout(name: str) -> None:
    function = FUNCTIONS[name]
    base = torch.randn(4, 3, 6, 5)
    views = [base, base.permute(2, 0, 3, 1), base[:, :, ::2], base[:, :1].expand(4, 7, 6, 5)]
    for view in views:
        mirror = view.to("neuron") if view.is_contiguous() else base.to("neuron").as_strided(view.shape, view.stride())
        for count in (1, 2, 3, 4):
            for dims in itertools.combinations(range(4), count):
                for keepdim in (False, True):
                    expected = function(view, dim=dims, keepdim=keepdim)
                    actual = function(mirror, dim=dims, keepdim=keepdim)
                    assert_like(actual, expected, strides=True, what=f"{name} {view.stride()} {dims} {keepdim}")


def test_a_reduction_of_nothing_gives_the_neutral_value_or_the_cpus_error() -> None:
    def empty(device: str) -> torch.Tensor:
        return torch.empty(0, 3, device=device)

    for function in (torch.sum, torch.prod, torch.mean, torch.any, torch.all, torch.var):
        torch.testing.assert_close(function(empty("neuron")).cpu(), function(empty("cpu")), equal_nan=True)
        torch.testing.assert_close(function(empty("neuron"), 0).cpu(), function(empty("cpu"), 0), equal_nan=True)
    for function in (torch.max, torch.min, torch.amax, torch.amin):
        same_error(lambda device, f=function: f(empty(device)))


def test_invalid_dimensions_raise_what_the_cpu_raises() -> None:
    for function in (torch.sum, torch.mean, torch.amax, torch.std, torch.any):
        same_error(lambda device, f=function: f(torch.ones(2, 3, device=device), 2))
        same_error(lambda device, f=function: f(torch.ones(2, 3, device=device), (0, -2)))
    same_error(lambda device: torch.ones(3, dtype=torch.int64, device=device).mean())
    for function in (torch.argmax, torch.max, torch.min):
        same_error(lambda device, f=function: f(torch.ones(2, 3, device=device), 2))
        same_error(lambda device, f=function: f(torch.ones(0, 3, device=device), 0))
    same_error(lambda device: torch.argmax(torch.ones(3, device=device) > 0))
    same_error(lambda device: torch.ones(3, device=device).trace())
    same_error(lambda device: torch.ones(3, dtype=torch.int64, device=device).std())


def test_dtype_is_that_of_the_accumulation() -> None:
    half = torch.full((4096,), 1.0, dtype=torch.float16)
    assert half.to("neuron").sum(dtype=torch.float32).item() == 4096
    small = torch.full((1000,), 100, dtype=torch.uint8)
    assert small.to("neuron").sum().item() == 100_000
    assert small.to("neuron").sum().dtype == torch.int64
    assert (small > 1).to("neuron").sum(dtype=torch.float64).item() == 1000


def test_nan_wins_in_extremes() -> None:
    x = torch.tensor([[1.0, float("nan"), 3.0], [1.0, 2.0, 3.0]]).to("neuron")
    torch.testing.assert_close(x.amax(1).cpu(), torch.tensor([float("nan"), 3]), equal_nan=True)
    torch.testing.assert_close(x.amin(1).cpu(), torch.tensor([float("nan"), 1]), equal_nan=True)
    assert x.max().isnan().item()


def test_out_is_resized_or_refused_as_on_the_cpu() -> None:
    x = torch.randn(3, 4)
    out = torch.empty(0, device="neuron")
    torch.sum(x.to("neuron"), 1, out=out)
    torch.testing.assert_close(out.cpu(), x.sum(1))
    row = torch.zeros(2, 3, device="neuron")
    torch.mean(x.to("neuron"), 1, out=row[1])
    torch.testing.assert_close(row.cpu(), torch.stack([torch.zeros(3), x.mean(1)]))
    same_error(lambda d: torch.amax(torch.ones(3, 4, device=d), 1, out=torch.zeros(3, dtype=torch.int64, device=d)))


def test_extremes_with_indices_in_every_mode() -> None:
    nan, inf = float("nan"), float("inf")
    rows = torch.tensor([[1, 3, 3, -1], [2, nan, 5, nan], [-inf] * 4, [inf, 0, inf, 1]])

    def program(device: str) -> list[torch.Tensor]:
        results = []
        for x in (rows.to(device), rows.to(device).t(), rows.nan_to_num(0, 9, -9).long().to(device)):
            for dim in (0, 1, -1):
                for keepdim in (False, True):
                    results += [*x.max(dim, keepdim), *x.min(dim, keepdim), x.argmax(dim, keepdim)]
                    results += [x.argmin(dim, keepdim), *torch.aminmax(x, dim=dim, keepdim=keepdim)]
            results += [x.argmax(), x.argmin(), *torch.aminmax(x)]
        values, indices = torch.empty(4, device=device), torch.empty(0, dtype=torch.int64, device=device)
        torch.max(rows.to(device), 1, out=(values, indices))
        return [*results, values, indices, (rows > 1).to(device).max(1)[1], rows.to(device)[0, 0].argmax()]

    run_everywhere(program, exact=True)


@pytest.mark.parametrize("shape", [(70_000,), (3, 40_000), (300, 500), (40_000, 3)])
def test_extremes_of_long_reductions(shape: tuple[int, ...]) -> None:
    x = torch.randint(0, 1000, shape, generator=torch.Generator().manual_seed(0)).float()
    mirror = x.to("neuron")
    assert mirror.argmax().item() == x.argmax().item()
    for dim in range(len(shape)):
        for actual, expected in zip(mirror.min(dim), x.min(dim), strict=True):
            assert torch.equal(actual.cpu(), expected)


def test_the_gradient_of_an_extreme_goes_to_its_index() -> None:
    x = torch.tensor([[1.0, 5.0, 5.0], [7.0, 2.0, 1.0]]).to("neuron").requires_grad_()
    x.max(1)[0].sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_reductions_are_recorded_not_run_on_the_cpu() -> None:
    x = torch.randn(5, 6).to("neuron")
    torch.neuron.reset_fusion_stats()
    results = [
        x.sum(), x.sum(1), x.mean(), x.mean((0, 1), keepdim=True), x.amax(0), x.max(), x.min(), x.any(), x.all(1),
        x.std(), x.var(1), x.norm(), x.norm(p=1, dim=1), x.norm(p=float("inf")), x.prod(), x.logsumexp(1),
        *torch.var_mean(x, 1), *torch.std_mean(x), x.argmax(), x.argmin(1), *x.max(1), *x.min(0), *torch.aminmax(x),
        *torch.aminmax(x, dim=1), x.nansum(), torch.count_nonzero(x), torch.count_nonzero(x, 1), x.trace(),
    ]  # fmt: skip
    assert all(result.device.type == "neuron" for result in results)
    assert torch.neuron.fusion_stats()["fallbacks"] == {}


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x = randn(777, 1031)
digest(x.sum(), x.sum(0), x.sum(1), x.mean(), x.var(), x.var(0), x.norm(), x.norm(dim=1), x.prod(0), x.logsumexp(1))
digest(x.argmax(), x.argmin(0), x.argmax(1), *x.max(1), x.nansum(0), torch.count_nonzero(x, 0))
h = x.bfloat16()
digest(h.sum(), h.sum(0), h.mean(1), h.norm())
""")


def test_weight_norm_and_renorm() -> None:
    def program(device: str) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        linear = torch.nn.Linear(5, 3)
        with torch.no_grad():
            linear.weight.copy_(torch.randn(3, 5, generator=generator))
        linear = torch.nn.utils.parametrizations.weight_norm(linear.to(device))
        x = torch.randn(4, 5, generator=generator).to(device)
        linear(x).square().sum().backward()
        gradients = [p.grad for name, p in linear.named_parameters() if "bias" not in name]
        return [*gradients, x.renorm(2, 0, 1.5), x.renorm(1, -1, 0.5), x.clone().renorm_(3, 1, 1.0)]

    torch.neuron.reset_fusion_stats()
    program("neuron")
    assert torch.neuron.fusion_stats()["fallbacks"] == {}
    run_everywhere(program)
