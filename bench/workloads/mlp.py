"""Training a perceptron with batch norm at batch 32: many small operators."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import training


def network(inputs: int, width: int, layers: int, classes: int) -> nn.Sequential:
    """Return the perceptron."""
    modules: list[nn.Module] = []
    for _ in range(layers):
        modules += [nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*modules, nn.Linear(width, classes))


def make(
    device: str, batch: int = 32, inputs: int = 64, width: int = 256, layers: int = 3, classes: int = 10
) -> Callable[[], Tensor]:
    """Return the training step."""
    torch.manual_seed(0)
    model = network(inputs, width, layers, classes).to(device)
    x, labels = torch.randn(batch, inputs).to(device), torch.randint(classes, (batch,)).to(device)
    return training(torch.optim.Adam(model.parameters()), lambda: F.cross_entropy(model(x), labels))
