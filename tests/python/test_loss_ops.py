from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from opinfo import DTYPES, check_samples, check_threads, find_op, same_error

OPS = ["nn.functional.nll_loss", "nn.functional.cross_entropy"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_samples_agree_with_the_cpu(name: str, dtype: torch.dtype) -> None:
    check_samples(find_op(name), dtype)


def test_wrong_arguments_raise_what_the_cpu_raises() -> None:
    x, target = torch.randn(3, 4), torch.tensor([0, 1, 2])
    for program in [
        lambda d: F.nll_loss(x.to(d), target[:2].to(d)),
        lambda d: F.nll_loss(x.to(d), torch.randn(3).to(d)),
        lambda d: F.nll_loss(x.to(d), target.int().to(d)),
        lambda d: F.nll_loss(x.to(d), target.to(d), torch.ones(3).to(d)),
        lambda d: F.nll_loss(x.to(d), target.to(d), torch.ones(4).double().to(d)),
        lambda d: F.nll_loss(x.long().to(d), target.to(d)),
        lambda d: F.cross_entropy(x.to(d), torch.randn(4, 3).to(d)),
    ]:
        same_error(program)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(9, 5), (5,)])
def test_ignored_targets_and_weights(reduction: str, weighted: bool, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    target = torch.randint(5, shape[:-1])
    if target.dim():
        target[2] = -100
    weight = torch.rand(5) if weighted else None
    results = {}
    for device in ("cpu", "neuron"):
        leaf = x.clone().to(device).requires_grad_()
        loss = F.nll_loss(leaf, target.to(device), None if weight is None else weight.to(device), reduction=reduction)
        loss.square().sum().backward()
        results[device] = [loss.detach().cpu(), leaf.grad.cpu()]
    for a, e in zip(results["neuron"], results["cpu"], strict=True):
        torch.testing.assert_close(a, e)


def test_all_targets_ignored_gives_nan_for_the_mean() -> None:
    x, target = torch.randn(3, 4), torch.full((3,), -100)
    assert F.nll_loss(x.to("neuron"), target.to("neuron")).isnan().item()
    assert F.nll_loss(x.to("neuron"), target.to("neuron"), reduction="sum").item() == 0


@pytest.mark.parametrize("bad", [5, -1])
def test_a_bad_target_from_the_host_raises_at_the_call(bad: int) -> None:
    same_error(lambda device: F.nll_loss(torch.zeros(3, 5).to(device), torch.tensor([0, bad, 1]).to(device)))
    same_error(lambda device: F.nll_loss(torch.zeros(5).to(device), torch.tensor(bad).to(device)))


def test_a_bad_target_in_a_view_of_a_host_copy_raises_at_the_call() -> None:
    same_error(lambda d: F.nll_loss(torch.zeros(2, 5).to(d), torch.tensor([[0, 9], [1, 7]]).to(d)[:, 1]))
    good = torch.tensor([[0, 9], [1, 7]]).to("neuron")[:, 0]
    assert F.nll_loss(torch.zeros(2, 5).to("neuron"), good).item() == 0


def test_a_bad_target_that_is_computed_raises_at_the_next_read() -> None:
    target = torch.tensor([0, 4, 1]).to("neuron") + 1
    loss = F.nll_loss(torch.zeros(3, 5).to("neuron"), target)
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        loss.item()
    torch.neuron.synchronize()


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x = randn(3000, 257).requires_grad_()
target = (torch.arange(3000) * 7 % 257).to("neuron")
loss = F.cross_entropy(x, target)
loss.backward()
digest(loss, x.grad)
""")
