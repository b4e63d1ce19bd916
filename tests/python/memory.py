"""Memory figures that another thread is not about to change."""

from __future__ import annotations

import time

import torch


def settled_memory() -> int:
    """Bytes allocated once the worker and autograd's thread have dropped what they held; nobody waits for that."""
    torch.neuron.synchronize()
    time.sleep(0.1)
    return torch.neuron.memory_allocated()
