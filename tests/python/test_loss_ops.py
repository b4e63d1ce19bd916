from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import DTYPES, check_errors, check_samples, check_threads, name_of, same_error
from recorded import cases_of, check_recorded_samples, no_fallback

NAMES = """
    nn.functional.nll_loss nn.functional.cross_entropy nn.functional.mse_loss nn.functional.l1_loss
    nn.functional.smooth_l1_loss nn.functional.huber_loss nn.functional.binary_cross_entropy
    nn.functional.binary_cross_entropy_with_logits nn.functional.soft_margin_loss nn.functional.kl_div
    nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss nn.functional.multilabel_soft_margin_loss
    nn.functional.cosine_embedding_loss nn.functional.triplet_margin_loss nn.functional.hinge_embedding_loss
    nn.functional.margin_ranking_loss nn.functional.poisson_nll_loss nn.functional.gaussian_nll_loss
"""


@pytest.mark.parametrize(("op", "dtype"), cases_of(NAMES, DTYPES), ids=name_of)
def test_samples_agree_with_the_cpu(op: OpInfo, dtype: torch.dtype) -> None:
    check_samples(op, dtype)


RECORDED = """
    nn.functional.mse_loss nn.functional.l1_loss nn.functional.smooth_l1_loss nn.functional.huber_loss
    nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits nn.functional.soft_margin_loss
    nn.functional.kl_div nn.functional.multilabel_soft_margin_loss nn.functional.cosine_embedding_loss
    nn.functional.triplet_margin_loss nn.functional.hinge_embedding_loss nn.functional.margin_ranking_loss
    nn.functional.poisson_nll_loss
"""


@pytest.mark.parametrize(("op", "dtype"), cases_of(RECORDED, [torch.float32]), ids=name_of)
def test_samples_do_not_fall_back(op: OpInfo, dtype: torch.dtype) -> None:
    check_recorded_samples(op, dtype)


@pytest.mark.parametrize("shape", [(4, 1), (1, 4), (1, 1), (1,), (3, 1, 1, 1), (2, 1, 1, 3), (1, 3, 1, 1)], ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_nll_loss_of_one_class_one_row_or_one_pixel(shape: tuple[int, ...], reduction: str) -> None:  # case 43
    classes = shape[1] if len(shape) > 1 else shape[0]
    rows = shape[:1] + shape[2:] if len(shape) > 1 else ()

    def program(device: str) -> list[torch.Tensor]:
        x = torch.linspace(-2, -1, math.prod(shape)).reshape(shape).to(device).requires_grad_()
        target = torch.arange(math.prod(rows), device=device).remainder(classes).reshape(rows)
        loss = F.nll_loss(x, target, reduction=reduction)
        gradient = torch.arange(1.0, loss.numel() + 1).reshape(loss.shape).to(device)
        return [loss, *torch.autograd.grad(loss, x, gradient)]

    results = run_everywhere(program, exact=True)
    if (shape, reduction) == ((4, 1), "none"):
        assert results[1].flatten().tolist() == [-1, -2, -3, -4]


ELEMENTWISE: dict[str, Callable[..., torch.Tensor]] = {
    "mse": F.mse_loss, "l1": F.l1_loss, "smooth_l1": F.smooth_l1_loss, "huber": F.huber_loss,
    "smooth_l1_narrow": lambda a, b, **k: F.smooth_l1_loss(a, b, beta=0.25, **k),
    "huber_wide": lambda a, b, **k: F.huber_loss(a, b, delta=1.5, **k),
    "bce": lambda a, b, **k: F.binary_cross_entropy(a.sigmoid(), b.sigmoid(), **k),
    "bce_weighted": lambda a, b, **k: F.binary_cross_entropy(a.sigmoid(), b.sigmoid(), weight=b.abs().detach(), **k),
    "bce_logits": lambda a, b, **k: F.binary_cross_entropy_with_logits(a, b.sigmoid(), **k),
    "soft_margin": lambda a, b, **k: F.soft_margin_loss(a, b.detach().sign(), **k),
    "kl_div": lambda a, b, **k: F.kl_div(a.log_softmax(1), b.softmax(1), **k),
}  # fmt: skip


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_losses_and_gradients_are_the_cpus_in_every_mode(name: str, reduction: str) -> None:
    generator = torch.Generator().manual_seed(3)
    a, b = torch.randn(5, 7, generator=generator), torch.randn(5, 7, generator=generator)

    def program(device: str) -> list[torch.Tensor]:
        x, y = a.clone().to(device).requires_grad_(), b.clone().to(device).requires_grad_()
        loss = ELEMENTWISE[name](x, y, reduction=reduction)
        loss.square().sum().backward()
        return [loss, x.grad, *([] if y.grad is None else [y.grad])]  # type: ignore[list-item]

    with no_fallback():
        run_everywhere(program)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_margin_losses_of_classes_are_the_cpus_in_every_mode(reduction: str) -> None:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(4, 3, generator=generator)
    one, several = torch.tensor([0, 2, 1, 1]), torch.tensor([[0, 2, -1], [1, -1, 0], [-1, 0, 0], [2, 1, 0]])
    weight = torch.tensor([1.0, 0.5, 2.0])

    def program(device: str) -> list[torch.Tensor]:
        leaf = x.to(device).clone().requires_grad_()
        losses = [F.multi_margin_loss(leaf, one.to(device), p=2, weight=weight.to(device), reduction=reduction),
                  F.multilabel_margin_loss(leaf, several.to(device), reduction=reduction)]  # fmt: skip
        sum(loss.square().sum() for loss in losses).backward()  # type: ignore[union-attr]
        return [*losses, leaf.grad]  # type: ignore[list-item]

    with no_fallback():
        run_everywhere(program)
    same_error(lambda d: F.multi_margin_loss(x.to(d), torch.tensor([0, 3, 1, 1]).to(d)))


def test_images_of_classes_with_weights_and_ignored_pixels() -> None:
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(2, 3, 4, 5, generator=generator)
    target = torch.randint(3, (2, 4, 5), generator=generator)
    target[0, 1] = -100
    for reduction in ("none", "mean", "sum"):

        def program(device: str, reduction: str = reduction) -> list[torch.Tensor]:
            leaf = x.clone().to(device).requires_grad_()
            loss = F.cross_entropy(leaf, target.to(device), torch.tensor([1.0, 2.0, 0.5]).to(device),
                                   reduction=reduction)  # fmt: skip
            loss.square().sum().backward()
            return [loss, leaf.grad]  # type: ignore[list-item]

        with no_fallback():
            run_everywhere(program)


def test_a_number_that_is_no_probability_raises_when_it_is_known() -> None:
    x = torch.tensor([0.5, 1.5]).to("neuron")
    loss = F.binary_cross_entropy(x, torch.ones(2).to("neuron"))
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        loss.item()
    torch.neuron.synchronize()
    assert F.binary_cross_entropy(x - 0.5, torch.ones(2).to("neuron")).item() > 0


@pytest.mark.parametrize("op", [op for op, _ in cases_of(NAMES, [torch.float32]) if op.error_inputs_func], ids=name_of)
def test_wrong_arguments_of_the_list_raise_what_the_cpu_raises(op: OpInfo) -> None:
    check_errors(op)


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
