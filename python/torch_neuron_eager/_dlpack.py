"""DLPack export of neuron tensors.

torch asks for the device type "privateuse1", which no device is called once it was renamed.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


def register() -> None:
    """Let ``Tensor.__dlpack_device__`` know the neuron device."""
    of_torch = torch.Tensor.__dlpack_device__

    @functools.wraps(of_torch)
    def dlpack_device(self: torch.Tensor) -> tuple[Any, int]:
        if self.device.type == "neuron":
            from torch.utils.dlpack import DLDeviceType

            return DLDeviceType.kDLExtDev, self.device.index or 0
        return of_torch(self)

    torch.Tensor.__dlpack_device__ = dlpack_device
