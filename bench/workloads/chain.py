"""A chain of 20 pointwise operators over two tensors, at several sizes."""

from collections.abc import Callable

import torch

PIECE = True
VARIANTS = {"chain_64Ki": {"size": 2**16}, "chain_1Mi": {"size": 2**20}, "chain_16Mi": {"size": 2**24}}


def make(device: str, size: int) -> Callable[[], object]:
    """Return the chain; its result lives until the device has finished."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(size, generator=generator).to(device)
    y = torch.randn(size, generator=generator).to(device)

    def step() -> torch.Tensor:
        z = x
        for _ in range(4):
            z = (z * y + x) * 0.5 - y.abs()
        return z

    return step
