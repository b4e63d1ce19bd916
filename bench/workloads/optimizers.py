"""Lion and Adafactor written by hand, parameter by parameter, training a deep and narrow perceptron."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import training

VARIANTS = {"lion": {"kind": "lion"}, "adafactor": {"kind": "adafactor"}}


class Lion(torch.optim.Optimizer):
    """Steps of one size, in the direction of the sign of a moving average."""

    def __init__(self, parameters: Iterable[Tensor], lr: float = 1e-4, weight_decay: float = 0.1) -> None:
        super().__init__(parameters, {"lr": lr, "betas": (0.9, 0.99), "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        """Update all parameters."""
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["average"] = torch.zeros_like(p)
                average = state["average"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                update = average.mul(beta1).add(p.grad, alpha=1 - beta1).sign_()
                p.add_(update, alpha=-group["lr"])
                average.mul_(beta2).add_(p.grad, alpha=1 - beta2)


class Adafactor(torch.optim.Optimizer):
    """Second moments of a matrix kept as one row and one column; the step's size follows the parameter's."""

    def __init__(self, parameters: Iterable[Tensor], lr: float = 1e-2, clip: float = 1.0) -> None:
        super().__init__(parameters, {"lr": lr, "clip": clip, "eps": 1e-30, "smallest": 1e-3})

    def denominator(self, state: dict, grad: Tensor, decay: float, eps: float) -> Tensor:
        """Update the second moments and return the reciprocal of their root."""
        squared = grad.square().add_(eps)
        if grad.dim() < 2:
            moments = state.setdefault("moments", torch.zeros_like(grad))
            return moments.lerp_(squared, 1 - decay).rsqrt()
        row = state.setdefault("row", torch.zeros_like(grad[:, 0]))
        column = state.setdefault("column", torch.zeros_like(grad[0]))
        row.mul_(decay).add_(squared.mean(dim=1), alpha=1 - decay)
        column.mul_(decay).add_(squared.mean(dim=0), alpha=1 - decay)
        return torch.outer((row / row.mean()).rsqrt_(), column.rsqrt())

    @torch.no_grad()
    def step(self) -> None:
        """Update all parameters."""
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                decay = 1 - state["step"] ** -0.8
                update = p.grad * self.denominator(state, p.grad, decay, group["eps"])
                update.div_((update.norm() / update.numel() ** 0.5 / group["clip"]).clamp_(min=1.0))
                size = (p.norm() / p.numel() ** 0.5).clamp_(min=group["smallest"])
                p.sub_(update * (size * group["lr"]))


def make(
    device: str, kind: str, batch: int = 32, inputs: int = 32, width: int = 64, layers: int = 8, classes: int = 10
) -> Callable[[], Tensor]:
    """Return the training step."""
    torch.manual_seed(0)
    hidden = [
        module for _ in range(layers) for module in (nn.Linear(width, width), nn.LayerNorm(width), nn.Hardswish())
    ]
    model = nn.Sequential(nn.Linear(inputs, width), *hidden, nn.Linear(width, classes)).to(device)
    x, labels = torch.randn(batch, inputs).to(device), torch.randint(classes, (batch,)).to(device)
    optimizer = {"lion": Lion, "adafactor": Adafactor}[kind](model.parameters())
    return training(optimizer, lambda: F.cross_entropy(model(x), labels))
