"""Optimizers as they come with PyTorch, and the fused operators under them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "sgd momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "adam": (torch.optim.Adam, {"lr": 1e-2}),
    "adam amsgrad": (torch.optim.Adam, {"lr": 1e-2, "amsgrad": True, "weight_decay": 0.1}),
    "adamw": (torch.optim.AdamW, {"lr": 1e-2, "weight_decay": 0.1}),
    "adamw maximize": (torch.optim.AdamW, {"lr": 1e-2, "maximize": True}),
    "adamw amsgrad": (torch.optim.AdamW, {"lr": 1e-2, "amsgrad": True}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 1e-2, "momentum": 0.5}),
    "adagrad": (torch.optim.Adagrad, {"lr": 1e-2}),
    "nadam": (torch.optim.NAdam, {"lr": 1e-2}),
    "adamax": (torch.optim.Adamax, {"lr": 1e-2}),
}


def train(device: str, name: str, steps: int = 6, clip: float | None = None, **options: Any) -> list[torch.Tensor]:
    kind, given = OPTIMIZERS[name]
    generator = torch.Generator().manual_seed(3)
    shapes = [(4, 5), (5,), (), (3, 1, 2)]
    parameters = [torch.randn(s, generator=generator).to(device).requires_grad_() for s in shapes]
    optimizer = kind(parameters, **given, **options)
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator).to(device)
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
    return [parameter.detach().cpu() for parameter in parameters]


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_give_what_the_cpu_gives(name: str, foreach: bool) -> None:
    torch.testing.assert_close(train("neuron", name, foreach=foreach), train("cpu", name, foreach=foreach))


@pytest.mark.parametrize("name", ["adam", "adam amsgrad", "adamw", "adamw maximize", "adamw amsgrad"])
def test_fused_steps_give_what_the_cpu_gives(name: str) -> None:
    torch.neuron.reset_fusion_stats()
    actual = train("neuron", name, fused=True)
    assert torch.neuron.fusion_stats()["fallbacks"] == {}
    torch.testing.assert_close(actual, train("cpu", name, fused=True))


@pytest.mark.parametrize("beta1", [0.3, 0.9])
def test_both_sides_of_lerp_in_the_fused_step(beta1: float) -> None:
    def run(device: str) -> torch.Tensor:
        parameter = torch.linspace(-1, 1, 9).to(device).requires_grad_()
        optimizer = torch.optim.AdamW([parameter], lr=0.1, betas=(beta1, 0.99), fused=True)
        for step in range(3):
            parameter.grad = torch.linspace(1, 2 + step, 9).to(device)
            optimizer.step()
        return parameter.detach().cpu()

    torch.testing.assert_close(run("neuron"), run("cpu"))


def test_a_learning_rate_in_a_tensor_is_read_when_the_step_is_recorded() -> None:
    def run(device: str) -> torch.Tensor:
        rate = torch.tensor(0.1)
        parameter = torch.ones(4).to(device).requires_grad_()
        optimizer = torch.optim.AdamW([parameter], lr=rate, fused=True)
        for _ in range(3):
            parameter.grad = torch.full((4,), 0.5).to(device)
            optimizer.step()
            rate.mul_(0.5)
        return parameter.detach().cpu()

    torch.testing.assert_close(run("neuron"), run("cpu"))


def test_clipping_gives_what_the_cpu_gives_without_a_fallback() -> None:
    torch.neuron.reset_fusion_stats()
    actual = train("neuron", "adamw", clip=0.5)
    assert torch.neuron.fusion_stats()["fallbacks"] == {}
    torch.testing.assert_close(actual, train("cpu", "adamw", clip=0.5))


@pytest.mark.parametrize("bad", [None, float("inf"), float("-inf"), float("nan")])
def test_unscaling_notes_infinities_and_nans(bad: float | None) -> None:
    grads = [torch.arange(6.0) + 2, torch.ones(3)]
    if bad is not None:
        grads[1][1] = bad
    grads = [g.to("neuron") for g in grads]
    found, scale = torch.zeros(1, device="neuron"), torch.full((1,), 0.5).to("neuron")
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, scale)
    assert found.item() == (0 if bad is None else 1)
    assert grads[0].tolist() == [1, 1.5, 2, 2.5, 3, 3.5]
