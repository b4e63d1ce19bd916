"""Training a physics-informed network: the loss has second derivatives of the network by its inputs.

It learns u(x, t) of Burgers' equation u_t + u u_x = v u_xx with u(x, 0) = -sin(pi x) and u(-1, t) = u(1, t) = 0.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import training

VISCOSITY = 0.01 / math.pi


def derivative(of: Tensor, by: Tensor) -> Tensor:
    """Return the derivative of each value by its own input."""
    return torch.autograd.grad(of, by, torch.ones_like(of), create_graph=True)[0]


def make(device: str, points: int = 256, edge: int = 64, width: int = 64, layers: int = 4) -> Callable[[], Tensor]:
    """Return the training step."""
    torch.manual_seed(0)
    hidden = [module for _ in range(layers - 1) for module in (nn.Linear(width, width), nn.Tanh())]
    network = nn.Sequential(nn.Linear(2, width), nn.Tanh(), *hidden, nn.Linear(width, 1)).to(device)
    x, t = (torch.rand(points, 1) * 2 - 1).to(device), torch.rand(points, 1).to(device)
    x.requires_grad_(), t.requires_grad_()
    start = torch.rand(edge, 1) * 2 - 1
    walls = torch.cat([torch.tensor([[-1.0], [1.0]]).repeat(edge // 2, 1), torch.rand(edge // 2 * 2, 1)], dim=1)
    known = torch.cat([torch.cat([start, torch.zeros(edge, 1)], dim=1), walls]).to(device)
    value = torch.cat([-torch.sin(math.pi * start), torch.zeros(len(walls), 1)]).to(device)

    def loss() -> Tensor:
        u = network(torch.cat([x, t], dim=1))
        u_x = derivative(u, x)
        residual = derivative(u, t) + u * u_x - VISCOSITY * derivative(u_x, x)
        return residual.square().mean() + F.mse_loss(network(known), value)

    return training(torch.optim.Adam(network.parameters(), lr=1e-3), loss)
