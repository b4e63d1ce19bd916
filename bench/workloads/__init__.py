"""The workloads of ``compare.py``, one file each: plain PyTorch that knows of a device nothing but its name.

A workload has ``make(device, **sizes) -> step``; with ``VARIANTS``, a dict of names to keyword arguments of ``make``,
it is several. A step does its work and returns what must stay alive until the device has finished: a training step its
loss. Seeds are set by ``make``, and weights and data are made on the CPU, so that every device starts from the same.
A module with ``PIECE = True`` is a piece of a program: it is compared, but left out of the geometric means; with
``COMPILES = False`` it is not run under torch.compile.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch

# The demo's folder is found without importing the package, which the contestants on PyTorch's CPU must never see.
sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "torch_neuron_eager"))


class Seconds(float):
    """What a step returns that takes its own time, instead of being timed from its start to the device's end."""


def training(optimizer: torch.optim.Optimizer, loss_of_step: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    """Return the usual training step around a loss."""

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of_step()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
