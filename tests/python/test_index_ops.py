from __future__ import annotations

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import check_errors, check_threads, find_op, name_of, same_error, with_errors
from recorded import cases_of, check_recorded_samples, no_fallback

OPS = "index_select gather take take_along_dim __getitem__ unfold unfold_copy nn.functional.one_hot"
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool]


@pytest.mark.parametrize(("op", "dtype"), cases_of(OPS, DTYPES), ids=name_of)
def test_samples_agree_with_the_cpu_without_a_fallback(op: OpInfo, dtype: torch.dtype) -> None:
    check_recorded_samples(op, dtype)


@pytest.mark.parametrize("name", with_errors([*OPS.split(), "index_put"]))
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


def test_indices_on_the_cpu_are_copied() -> None:
    x = torch.arange(12.0).view(4, 3)
    rows = torch.tensor([3, 0, -1])
    with no_fallback():
        y = x.to("neuron")
        assert torch.equal(y[rows].cpu(), x[rows])
        y[rows] = 5
        y[:, torch.tensor([True, False, True])] = 6
        expected = x.clone()
        expected[rows] = 5
        expected[:, torch.tensor([True, False, True])] = 6
        assert torch.equal(y.cpu(), expected)
    same_error(lambda d: x.to(d)[torch.tensor([4])])


def test_gathers_have_the_cpus_bits_in_every_mode() -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = torch.arange(24.0).view(2, 3, 4).to(device)
        index = torch.tensor([[[0, 2, 1, 1]], [[2, 0, 0, 1]]]).to(device)
        turned = x.transpose(0, 2) * 2
        return [
            x.gather(1, index), x.gather(1, index.int()), turned.gather(1, index.transpose(0, 2)),
            torch.take(x, index - 3), x.index_select(2, index[0, 0]),
            torch.tensor(3.0).to(device).gather(0, index[0, 0, 0]),
            torch.take_along_dim(x, index[:, :, :1], 2), torch.gather(x, 0, index[:0]),
        ]  # fmt: skip

    with no_fallback():
        run_everywhere(program, exact=True)


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
