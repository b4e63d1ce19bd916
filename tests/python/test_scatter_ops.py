"""Operators that change elements which an index or a mask chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from modes import mode, run_everywhere
from opinfo import check_errors, check_samples, check_threads, find_op, name_of, same_error, with_errors
from recorded import cases_of, check_recorded_samples, no_fallback

OPS = "scatter scatter_add scatter_reduce index_add index_copy index_fill index_reduce put masked_scatter"
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]


@pytest.mark.parametrize(("op", "dtype"), cases_of(OPS, DTYPES), ids=name_of)
def test_samples_agree_with_the_cpu_without_a_fallback(op: OpInfo, dtype: torch.dtype) -> None:
    check_recorded_samples(op, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples_of_index_put_agree_with_the_cpu_without_a_fallback(dtype: torch.dtype) -> None:
    check_recorded_samples(find_op("index_put"), dtype, backward=False)
    check_samples(find_op("index_put"), dtype)  # whose gradient may be a sum of no rows


@pytest.mark.parametrize(
    "name", with_errors([*OPS.replace("scatter_reduce", "").replace("index_reduce", "").split(), "index_put"])
)
def test_wrong_arguments_raise_what_the_cpu_raises(name: str) -> None:
    check_errors(find_op(name))


# Each takes a target, an index of row numbers (one for each element of a 4x3 matrix) and a source of that shape.
Update = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]
UPDATES: dict[str, Update] = {
    "scatter": lambda x, i, s: x.scatter_(0, i, s),
    "scatter_value": lambda x, i, s: x.scatter_(0, i, 2.5),
    "scatter_reduce_add": lambda x, i, s: x.scatter_(0, i, s, reduce="add"),
    "scatter_value_multiply": lambda x, i, s: x.scatter_(0, i, 2.5, reduce="multiply"),
    "scatter_add": lambda x, i, s: x.scatter_add_(0, i, s),
    "scatter_reduce_mean": lambda x, i, s: x.scatter_reduce_(0, i, s, "mean", include_self=False),
    "scatter_reduce_amax": lambda x, i, s: x.scatter_reduce_(0, i, s, "amax"),
    "index_add": lambda x, i, s: x.index_add_(0, i[:, 0], s, alpha=0.5),
    "index_copy": lambda x, i, s: x.index_copy_(0, i[:, 0], s),
    "index_fill": lambda x, i, s: x.index_fill_(0, i[:, 0], 7.0),
    "index_fill_tensor": lambda x, i, s: x.index_fill_(0, i[:, 0], s[0, 0]),
    "index_reduce_prod": lambda x, i, s: x.index_reduce_(0, i[:, 0], s, "prod"),
    "put": lambda x, i, s: x.put_(i, s),
    "put_accumulate": lambda x, i, s: x.put_(i, s, accumulate=True),
    "index_put": lambda x, i, s: x.index_put_((i[:, 0],), s, accumulate=True),
}


def arguments(device: str, bad: int | None = None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    index = torch.tensor([[1, 0, 4], [1, 4, 2], [0, 0, 0], [4, 3, 1]])
    if bad is not None:
        index[2] = bad
    x, source = torch.randn(5, 3, generator=generator), torch.randn(4, 3, generator=generator)
    return x.to(device), index.to(device), source.to(device)


@pytest.mark.filterwarnings("ignore:.*(reduce argument|beta).*")
@pytest.mark.parametrize("name", UPDATES)
def test_updates_in_place_have_the_cpus_bits_in_every_mode(name: str) -> None:
    def program(device: str) -> list[torch.Tensor]:
        x, index, source = arguments(device)
        before = x * 2
        UPDATES[name](x, index, source)
        turned = torch.zeros(3, 5, device=device).t()
        UPDATES[name](turned, index, source)
        return [x, before, turned]

    run_everywhere(program, exact=True)


@pytest.mark.filterwarnings("ignore:.*(reduce argument|beta).*")
@pytest.mark.parametrize("name", UPDATES)
def test_bad_indices_from_the_host_raise_at_the_call(name: str) -> None:
    same_error(lambda d: UPDATES[name](*arguments(d, bad=99)))
    same_error(lambda d: UPDATES[name](*arguments(d, bad=-99)))


@pytest.mark.filterwarnings("ignore:.*(reduce argument|beta).*")
@pytest.mark.parametrize("name", UPDATES)
def test_bad_indices_that_are_computed_raise_at_the_next_read_and_change_nothing(name: str) -> None:
    x, index, source = arguments("neuron", bad=98)
    weight, expected = torch.ones(3, device="neuron"), x.cpu()
    UPDATES[name](x, index + 1, source)
    weight.add_(x.sum())
    with pytest.raises((IndexError, RuntimeError), match=r"(?i)out of (bounds|range)"):
        weight.tolist()
    assert torch.equal(x.cpu(), expected)
    assert weight.tolist() == [1, 1, 1]
    good = arguments("neuron")[1]
    UPDATES[name](x, good, source)
    torch.neuron.synchronize()


def test_a_bad_index_in_the_middle_of_a_step_leaves_the_weights() -> None:
    for update in (
        lambda x, i, s: x.gather(0, i),
        lambda x, i, s: torch.zeros(5, 3, device="neuron").scatter_add(0, i, x[:4]),
        lambda x, i, s: torch.zeros(5, 3, device="neuron").index_add(0, i[:, 0], x[:4]),
    ):
        torch.manual_seed(0)
        parameter = torch.randn(5, 3, device="neuron").requires_grad_()
        optimizer = torch.optim.SGD([parameter], 0.1)
        losses = []
        for bad in (None, 50, None):
            _, index, source = arguments("neuron", bad=bad)
            before = parameter.detach().cpu()
            try:
                loss = update(parameter, index + 0, source).square().sum()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            except (IndexError, RuntimeError):
                assert bad is not None
                assert torch.equal(parameter.detach().cpu(), before)
            else:
                assert bad is None
            optimizer.zero_grad()
        assert len(losses) == 2


MASKED: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "number": lambda x, m: x.__setitem__(m, 0),
    "tensor": lambda x, m: x.__setitem__(m, x.new_full((), 2.5)),
    "one element": lambda x, m: x.__setitem__(m, x.new_full((1,), 2.5)),
    "row": lambda x, m: x.__setitem__(m[:, 0], x.new_ones(3)),
    "dimensions before": lambda x, m: x.__setitem__((slice(None), m[0]), -1),
    "accumulate": lambda x, m: x.index_put_((m,), x.new_full((), 2), accumulate=True),
    "view": lambda x, m: x[:, 1:].__setitem__(m[:, 1:], 9),
}


# The CPU adds bools in its own way: that is left to the fallback.
@pytest.mark.parametrize(("name", "dtype"), [
    (name, dtype) for name in MASKED for dtype in DTYPES if (name, dtype) != ("accumulate", torch.bool)
], ids=str)  # fmt: skip
def test_a_mask_with_one_value_needs_neither_flush_nor_fallback(name: str, dtype: torch.dtype) -> None:
    def program(device: str) -> torch.Tensor:
        x = torch.tensor([[1.0, -0.0, 3], [0, 5, -6], [7, 8, 9]]).to(dtype).to(device)
        MASKED[name](x, torch.tensor([[1, 0, 1], [0, 0, 1], [1, 1, 0]]).bool().to(device))
        return x

    with no_fallback():
        run_everywhere(program, exact=True)
    with mode("adaptive"):
        mask = torch.zeros(3, 3, dtype=torch.bool, device="neuron")
        x = torch.ones(3, 3, device="neuron").to(dtype)
        torch.neuron.synchronize()
        torch.neuron.reset_fusion_stats()
        MASKED[name](x, mask)
        assert torch.neuron.fusion_stats()["flushes"] == 0


def test_masks_with_a_value_for_each_true_element() -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = torch.arange(12.0).view(3, 4).to(device)
        mask = (x % 2 == 0) | (x > 9)
        x[mask] += 1
        x[mask] = torch.arange(7.0).to(device)
        y = torch.zeros(3, 4).to(device)
        y[mask[:, 0], 1] = torch.tensor([5.0, 6.0, 7.0]).to(device)
        return [x, y, x[mask], x[mask[:, 1]]]

    with no_fallback():
        run_everywhere(program, exact=True)


def test_a_mask_that_fits_no_values_raises_at_the_next_read() -> None:
    x = torch.zeros(4, device="neuron")
    x[torch.arange(4).to("neuron") > 1] = torch.ones(3).to("neuron")
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
        x.cpu()
    torch.neuron.synchronize()


def test_targets_of_out_forms_and_aliases() -> None:
    def program(device: str) -> list[torch.Tensor]:
        x, index, source = arguments(device)
        made = torch.empty(0, device=device)
        torch.scatter_add(x, 0, index, source, out=made)
        turned = torch.empty(3, 5, device=device).t()
        torch.index_add(x, 0, index[:, 0], source, out=turned)
        torch.scatter(x, 0, index, source, out=x)
        return [made, turned, x]

    run_everywhere(program, exact=True)
    same_error(lambda d: (lambda x: x.scatter_(0, torch.tensor([[0, 1]]).to(d), x[1:]))(torch.ones(3, 2).to(d)))
    same_error(lambda d: torch.ones(1, 3).to(d).expand(4, 3).index_add_(0, torch.tensor([0]).to(d),
                                                                        torch.ones(1, 3).to(d)))  # fmt: skip


def test_indices_of_sorts_and_permutations_need_no_check() -> None:
    x = torch.randn(50, 4).to("neuron")
    values, order = x.sort(0)
    back = torch.zeros_like(x).scatter_(0, order, values)
    rows = torch.randperm(50, device="neuron")
    picked = x[rows]
    assert torch.equal(back.cpu(), x.cpu())
    assert torch.equal(picked.cpu(), x.cpu()[rows.cpu()])


def test_large_updates_are_the_cpus() -> None:
    generator = torch.Generator().manual_seed(0)
    x, source = torch.randn(700, 300, generator=generator), torch.randn(900, 300, generator=generator)
    index = torch.randint(700, (900, 300), generator=generator)
    rows, order = index[:, 0].clone(), torch.randperm(700, generator=generator)
    turned = torch.randint(300, (700, 300), generator=generator)
    for program in [
        lambda d: x.to(d).scatter_add(0, index.to(d), source.to(d)),
        lambda d: x.to(d).scatter_add(0, rows.to(d).unsqueeze(1).expand(900, 300), source.to(d)),
        lambda d: x.to(d).scatter(1, turned.to(d), x.to(d) * 2),
        lambda d: x.to(d).scatter_reduce(0, index.to(d), source.to(d), "amin"),
        lambda d: x.to(d).index_add(0, rows.to(d), source.to(d)),
        lambda d: x.to(d).index_copy(0, order.to(d), source.to(d)[:700]),
        lambda d: x.to(d).gather(1, turned.to(d)),
    ]:
        assert torch.equal(program("neuron").cpu(), program("cpu"))


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x, s = randn(500, 300), randn(900, 300)
rows = (torch.arange(900) * 7 % 500).to("neuron")
index = rows.view(-1, 1).expand(900, 300)
digest(x.scatter_add(0, index, s), x.scatter_reduce(0, index.contiguous(), s, "mean"), x.index_add(0, rows, s))
digest(x.index_reduce(0, rows, s, "prod"), x.put(index.contiguous(), s, accumulate=True), x.index_fill(0, rows, 2.0))
digest(x.masked_scatter(x > 0, s), torch.take(x, index))
""")
