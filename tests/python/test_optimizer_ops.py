"""Optimizers as they come with PyTorch, and the fused operators under them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from modes import run_everywhere

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
    "sgd dampened": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "maximize": True}),
    "adagrad decayed": (torch.optim.Adagrad, {"lr": 1e-2, "lr_decay": 0.1, "weight_decay": 0.05}),
    "adadelta": (torch.optim.Adadelta, {"lr": 0.5}),
    "asgd": (torch.optim.ASGD, {"lr": 1e-2}),
    "radam": (torch.optim.RAdam, {"lr": 1e-2}),
    "rprop": (torch.optim.Rprop, {"lr": 1e-2}),
    "rmsprop centred": (torch.optim.RMSprop, {"lr": 1e-2, "centered": True, "momentum": 0.1}),
}
FUSED = [name for name in OPTIMIZERS if name.split()[0] in ("sgd", "adam", "adamw", "adagrad")]


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


FORMS = [(name, form) for name in OPTIMIZERS for form in ("foreach", "single", "fused")]


@pytest.mark.parametrize(("name", "form"), [(n, f) for n, f in FORMS if f != "fused" or n in FUSED])
def test_every_mode_gives_the_same_bits(name: str, form: str) -> None:
    options = {"fused": True} if form == "fused" else {"foreach": form == "foreach"}
    run_everywhere(lambda device: train(device, name, steps=5, **options))


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_none_runs_on_the_cpu(name: str, foreach: bool) -> None:
    torch.neuron.reset_fusion_stats()
    train("neuron", name, steps=5, foreach=foreach)
    assert torch.neuron.fusion_stats()["fallbacks"] == {}


@pytest.mark.parametrize("kind", [torch.optim.Adafactor, torch.optim.Muon, torch.optim.LBFGS])
def test_optimizers_without_a_foreach_form(kind: type[torch.optim.Optimizer]) -> None:
    def run(device: str) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(3)
        parameter = torch.randn(4, 5, generator=generator).to(device).requires_grad_()
        target = torch.randn(4, 5, generator=generator).to(device)
        optimizer = kind([parameter], lr=0.1)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = (parameter - target).square().sum()
            loss.backward()
            return loss

        for _ in range(5):
            optimizer.step(closure)
        return [parameter.detach().cpu()]

    torch.testing.assert_close(run("neuron"), run("cpu"), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FUSED)
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


@pytest.mark.parametrize("name", ["sgd momentum", "adagrad", "adam", "adamw amsgrad"])
def test_a_scaler_skips_fused_steps_with_infinities_as_on_the_cpu(name: str) -> None:
    kind, given = OPTIMIZERS[name]

    def run(device: str) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(3)
        parameters = [torch.randn(s, generator=generator).to(device).requires_grad_() for s in ((4, 5), (3,))]
        optimizer = kind(parameters, **given, fused=True)
        scaler = torch.amp.GradScaler(device, init_scale=16.0, growth_interval=2)
        scales = []
        for step in range(6):
            for parameter in parameters:
                parameter.grad = torch.randn(parameter.shape, generator=generator).to(device) * 16
            if step in (1, 4):
                parameters[1].grad[1] = float("inf")
            scaler.scale(torch.zeros(1, device=device))  # makes its tensors
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return [*(p.detach().cpu() for p in parameters), torch.tensor(scales)]

    torch.neuron.reset_fusion_stats()
    actual = run("neuron")
    assert torch.neuron.fusion_stats()["fallbacks"] == {}
    torch.testing.assert_close(actual, run("cpu"))


@pytest.mark.parametrize(("scale", "successes", "found"), [(8.0, 0, 0), (8.0, 1, 0), (8.0, 1, 1), (3e38, 1, 0)])
def test_the_scales_update_is_the_cpus(scale: float, successes: int, found: int) -> None:
    results = []
    for device in ("neuron", "cpu"):
        state = torch.tensor(scale).to(device), torch.tensor(successes, dtype=torch.int32).to(device)
        torch._amp_update_scale_(*state, torch.tensor(float(found)).to(device), 2.0, 0.5, 2)
        results.append([t.item() for t in state])
    assert results[0] == results[1]
