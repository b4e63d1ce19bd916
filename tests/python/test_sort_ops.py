"""Sorting, ranking and searching, and operators whose result's shape depends on data."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from modes import mode, run_everywhere
from opinfo import check_errors, check_threads, find_op, name_of, same_error, with_errors
from recorded import cases_of, check_recorded_samples, no_fallback

SORTS = "sort argsort msort topk kthvalue median nanmedian mode"
SEARCHES = "searchsorted bucketize isin histc bincount"
SHAPES = "unique unique_consecutive nonzero nonzero_static argwhere masked_select repeat_interleave"
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


@pytest.mark.parametrize(("op", "dtype"), cases_of(f"{SORTS} {SEARCHES} {SHAPES}", DTYPES), ids=name_of)
def test_samples_agree_with_the_cpu_without_a_fallback(op: OpInfo, dtype: torch.dtype) -> None:
    check_recorded_samples(op, dtype)


@pytest.mark.parametrize("name", with_errors(f"{SORTS} {SEARCHES} {SHAPES}".split()))
def test_wrong_arguments_raise_what_the_cpu_raises(name: str) -> None:
    check_errors(find_op(name))


def ties(device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers with many ties, and a NaN in the last row."""
    x = (torch.arange(60.0) * 7 % 11 - 5).view(5, 12)
    x[4, 3] = float("nan")
    return x.to(dtype).to(device)


RANKINGS: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "sort": lambda x: x.sort(1),
    "stable": lambda x: x.sort(dim=0, descending=True, stable=True),
    "turned": lambda x: x.t().sort(),
    "topk": lambda x: x.topk(3),
    "least": lambda x: x.topk(2, 0, largest=False, sorted=False),
    "kthvalue": lambda x: x.kthvalue(4, 1, keepdim=True),
    "median": lambda x: x.median(0),
    "nanmedian": lambda x: x.nanmedian(1),
    "mode": lambda x: x.mode(1),
    "all": lambda x: (x.median(), x.nanmedian()),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("name", RANKINGS)
def test_rankings_have_the_cpus_bits_in_every_mode(name: str, dtype: torch.dtype) -> None:
    with no_fallback():
        run_everywhere(lambda d: list(RANKINGS[name](ties(d, dtype) * 1)), exact=True)


@pytest.mark.parametrize("name", [name for name in RANKINGS if name != "all"])
def test_gradients_go_where_the_values_came_from(name: str) -> None:
    def program(device: str) -> torch.Tensor:
        x = ties(device).nan_to_num(0).requires_grad_()
        values = RANKINGS[name](x)[0]
        (values * torch.arange(float(values.numel())).view(values.shape).to(device)).sum().backward()
        assert x.grad is not None
        return x.grad

    with no_fallback():
        run_everywhere(program, exact=True)


def test_out_forms() -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = ties(device)
        values, indices = torch.empty(0, device=device), torch.empty(0, dtype=torch.int64, device=device)
        torch.topk(x, 3, out=(values, indices))
        more = torch.empty(12, 5, device=device).t(), torch.empty(5, 12, dtype=torch.int64, device=device)
        torch.sort(x, out=more)
        found = torch.empty(0, dtype=torch.int64, device=device)
        torch.nonzero(x > 0, out=found)
        chosen = torch.empty(0, device=device)
        torch.masked_select(x, x > 1, out=chosen)
        return [values, indices, *more, found, chosen]

    with no_fallback():
        run_everywhere(program, exact=True)


def test_shapes_that_depend_on_data() -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = ties(device, torch.int64) * 2
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        again = values[inverse]
        rows = torch.nonzero(x > 4)
        x.index_put_((rows[:, 0], rows[:, 1]), x.new_zeros(()))
        repeated = torch.arange(5).to(device).repeat_interleave(x[:, 0].abs())
        counted = torch.bincount(x.abs().flatten(), minlength=20)
        return [values, inverse, counts, again, rows, x, repeated, counted, x[x > 0], x[(x > 0).all(1)]]

    with no_fallback():
        run_everywhere(program, exact=True)


def test_a_shape_that_depends_on_data_flushes_for_that_reason() -> None:
    x = torch.arange(6.0).to("neuron") * 2
    with mode("adaptive"):
        torch.neuron.synchronize()
        torch.neuron.reset_fusion_stats()
        (x + 1).nonzero()
    assert torch.neuron.fusion_stats()["flushes_by_reason"] == {"data_dependent_shape": 1}


def test_bad_values_raise_as_on_the_cpu() -> None:
    same_error(lambda d: torch.bincount(torch.tensor([-1, 2]).to(d)))
    same_error(lambda d: torch.ones(3).to(d)[torch.ones(4, dtype=torch.bool).to(d)])
    same_error(lambda d: torch.masked_select(torch.ones(3).to(d), torch.ones(4, dtype=torch.bool).to(d)))
    same_error(lambda d: torch.ones(3).to(d).topk(4))
    same_error(lambda d: torch.searchsorted(torch.ones(3).to(d), torch.ones(2).to(d), side="middle"))
    same_error(lambda d: torch.ones(3).to(d).repeat_interleave(torch.tensor([1, -1, 1]).to(d)))
    sorter = torch.tensor([0, 3, 1])
    same_error(lambda d: torch.searchsorted(torch.ones(3).to(d), torch.ones(2).to(d), sorter=sorter.to(d)))
    counted = torch.histc(torch.tensor([1.0, float("inf")]).to("neuron"))
    with pytest.raises(RuntimeError, match="range of"):
        counted.cpu()
    computed = torch.searchsorted(
        torch.ones(3).to("neuron"), torch.ones(2).to("neuron"), sorter=sorter.to("neuron") + 1
    )
    with pytest.raises(RuntimeError, match="sorter index out of range"):
        computed.cpu()


def test_large_operands_are_the_cpus() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400, 600, generator=generator)
    with no_fallback():
        for program in [
            lambda d: x.to(d).sort(1), lambda d: x.to(d).sort(dim=0, stable=True), lambda d: x.to(d).topk(20),
            lambda d: x.to(d).flatten().sort(), lambda d: x.to(d).topk(5, 0), lambda d: x.to(d).kthvalue(9, 0),
            lambda d: x.to(d).median(1), lambda d: x.to(d).round().mode(1),
            lambda d: (torch.searchsorted(x[0].sort()[0].to(d), x.to(d)),),
            lambda d: (torch.searchsorted(x.sort()[0].to(d), x.to(d)[:, :50], right=True),),
        ]:  # fmt: skip
            for actual, expected in zip(program("neuron"), program("cpu"), strict=True):
                assert torch.equal(actual.cpu(), expected)


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x = randn(300, 700)
digest(*x.sort(1), *x.sort(0), *x.topk(30), *x.median(0), *x.kthvalue(5), *x.round().mode(0))
digest(torch.histc(x), torch.searchsorted(x[0].sort()[0], x), torch.unique(x.round()), x[x > 0])
""")
