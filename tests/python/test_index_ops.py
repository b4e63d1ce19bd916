from __future__ import annotations

import pytest
import torch

from opinfo import DTYPES, check_errors, check_samples, check_threads, find_op, same_error, with_errors

OPS = ["index_select", "index_put", "gather", "scatter", "scatter_add", "take_along_dim", "__getitem__", "index_add"]


@pytest.mark.parametrize("dtype", [*DTYPES, torch.int64], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_samples_agree_with_the_cpu(name: str, dtype: torch.dtype) -> None:
    check_samples(find_op(name), dtype)


@pytest.mark.parametrize("name", with_errors(OPS))
def test_wrong_arguments_raise_what_the_cpu_raises(name: str) -> None:
    check_errors(find_op(name))


def test_bad_indices_from_the_host_raise_at_the_call() -> None:
    x = torch.randn(3, 4)
    for program in [
        lambda d: x.to(d)[torch.tensor([3]).to(d)],
        lambda d: x.to(d)[torch.tensor([-4]).to(d)],
        lambda d: x.to(d)[:, torch.tensor([4]).to(d)],
        lambda d: torch.gather(x.to(d), 0, torch.tensor([[3]]).to(d)),
        lambda d: torch.index_select(x.to(d), 0, torch.tensor([3]).to(d)),
        lambda d: x.to(d).index_put_((torch.tensor([3]).to(d),), torch.tensor(1.0).to(d)),
        lambda d: x.to(d).scatter_add_(0, torch.tensor([[3]]).to(d), x.clone().to(d)),
        lambda d: x.to(d).scatter_(0, torch.tensor([[3]]).to(d), x.clone().to(d)),
    ]:
        same_error(program)


def test_bad_indices_that_are_computed_raise_at_the_next_read() -> None:
    x = torch.randn(3, 4).to("neuron")
    index = torch.tensor([2]).to("neuron") + 1
    picked = x[index]
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        picked.cpu()
    torch.neuron.synchronize()


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2).contiguous().transpose(0, 2),
    "strided": lambda x: torch.cat([x, x], 2)[:, :, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_have_the_cpus_strides(layout: str) -> None:
    base = LAYOUTS[layout](torch.randn(4, 5, 6))
    i, j, grid = torch.tensor([0, 3, 1]), torch.tensor([2, 0, 1]), torch.tensor([[1], [2]])
    for pick in [
        lambda x, m: x[m(i)], lambda x, m: x[:, m(i)], lambda x, m: x[..., m(i)], lambda x, m: x[m(i), m(j)],
        lambda x, m: x[m(i), :, m(j)], lambda x, m: x[m(grid), m(i)], lambda x, m: x[:, m(grid), m(i)],
        lambda x, m: x[m(i), m(j), m(j)], lambda x, m: x[m(i).int()], lambda x, m: x[m(torch.tensor(2))],
    ]:  # fmt: skip
        expected = pick(base, lambda t: t)
        moved = torch.empty_strided(base.shape, base.stride(), device="neuron").copy_(base)
        actual = pick(moved, lambda t: t.to("neuron"))
        assert actual.shape == expected.shape
        assert actual.stride() == expected.stride()
        assert torch.equal(actual.cpu(), expected)


def test_accumulating_puts_add_every_duplicate() -> None:
    x = torch.zeros(4, 3)
    rows = torch.tensor([1, 1, 3, 1])
    values = torch.arange(12.0).view(4, 3)
    actual = x.to("neuron").index_put_((rows.to("neuron"),), values.to("neuron"), accumulate=True)
    assert torch.equal(actual.cpu(), x.index_put_((rows,), values, accumulate=True))


def test_a_put_whose_values_are_a_view_of_the_target() -> None:
    x = torch.arange(6.0)
    y = x.to("neuron")
    with pytest.raises(RuntimeError, match="unsupported operation"):
        x.index_put_((torch.tensor([0, 1]),), x[1:3])
    with pytest.raises(RuntimeError, match="unsupported operation"):
        y.index_put_((torch.tensor([0, 1]).to("neuron"),), y[1:3])


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x = randn(500, 700)
rows = (torch.arange(4000) * 7 % 500).to("neuron")
digest(x[rows], torch.index_select(x, 1, rows), torch.gather(x, 1, rows.view(40, 100)))
digest(x.index_put((rows,), randn(4000, 700), accumulate=True))
digest(torch.scatter_add(x, 0, rows.view(-1, 1).expand(4000, 700), randn(4000, 700)))
""")
