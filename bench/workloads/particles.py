"""A simulation of particles that attract each other, bounce off the walls of their box and are slowed by friction."""

from collections.abc import Callable

import torch
from torch import Tensor

TIME, GRAVITY, SOFTENING, FRICTION = 1e-3, 1e-3, 1e-2, 0.01


def accelerations(position: Tensor, mass: Tensor) -> Tensor:
    """Return what all particles do to each."""
    offset = position[None, :, :] - position[:, None, :]
    squared = offset.square().sum(dim=-1) + SOFTENING**2
    return GRAVITY * (offset * (mass * squared.rsqrt().pow(3))[:, :, None]).sum(dim=1)


def make(device: str, particles: int = 256, substeps: int = 10) -> Callable[[], Tensor]:
    """Return a step of some leapfrog steps; it gives the energy of motion at its end."""
    torch.manual_seed(0)
    position = torch.rand(particles, 3).to(device)
    velocity = (torch.randn(particles, 3) * 0.1).to(device)
    mass = torch.rand(particles).to(device)

    def step() -> Tensor:
        nonlocal position, velocity
        for _ in range(substeps):
            velocity = velocity + 0.5 * TIME * accelerations(position, mass)
            position = position + TIME * velocity
            velocity = velocity + 0.5 * TIME * accelerations(position, mass)
            outside = (position < 0) | (position > 1)
            velocity = torch.where(outside, -velocity, velocity) * (1 - FRICTION * TIME)
            position = position.clamp(0, 1)
        return 0.5 * (mass * velocity.square().sum(dim=-1)).sum()

    return step
