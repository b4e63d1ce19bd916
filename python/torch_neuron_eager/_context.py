"""PyTorch's global settings that its CPU kernels read when they run, which here is later than at the call.

PyTorch tells nobody when one changes. So the functions that change one wait first for what was recorded before: every
operator runs under the settings of its call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torch_neuron_eager import _C

__all__ = ["register"]

_SETTERS = [
    "_set_mkldnn_enabled",  # convolution and others have oneDNN kernels and kernels of ATen's own
    "_set_nnpack_enabled",  # so has convolution without oneDNN
    "_set_float32_matmul_precision",
    "_set_fp32_precision_setter",
    "_set_deterministic_algorithms",
    "_set_default_dtype",
]


def _waiting(setter: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(setter)
    def set_when_idle(*args: Any, **kwargs: Any) -> Any:
        if _C.is_initialized():
            _C.finish()
        result = setter(*args, **kwargs)
        _C.note_precision()
        return result

    return set_when_idle


def register() -> None:
    """Make the setters wait."""
    for name in _SETTERS:
        setter = getattr(torch._C, name)
        waiting = _waiting(setter)
        setattr(torch._C, name, waiting)
        for prop in vars(type(torch.backends.mkldnn)).values():  # attributes that hold a setter themselves
            if isinstance(prop, torch.backends.ContextProp) and prop.setter is setter:
                prop.setter = waiting
    _C.note_precision()
