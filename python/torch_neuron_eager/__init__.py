"""Adaptive Eager: PyTorch's eager mode on the ``neuron`` device, recorded and run as few fused launches.

``import torch`` finds this package by itself (entry point group ``torch.backends``); its functions are in
``torch.neuron``.
"""

from __future__ import annotations

import warnings

__all__: list[str] = []
__version__ = "0.1.0"

_TORCH = "2.13."  # the extension is built for one minor version of torch
_done = False


def _register() -> None:
    """Load the engine, rename the device and put ``torch.neuron`` in its place."""
    import torch

    if not torch.__version__.startswith(_TORCH):
        raise ImportError(
            f"torch {torch.__version__} is installed, but this torch_neuron_eager was built for torch {_TORCH}*"
        )
    from torch.utils.backend_registration import (
        generate_methods_for_privateuse1_backend,
        rename_privateuse1_backend,
    )

    from torch_neuron_eager import _C, _atexit, _context, _dlpack, neuron

    rename_privateuse1_backend("neuron")
    torch._register_device_module("neuron", neuron)
    generate_methods_for_privateuse1_backend(for_packed_sequence=True, for_storage=True)
    _context.register()
    _dlpack.register()
    _C.set_skipped_folders(torch.__path__[0] + "/", __path__[0] + "/")
    _atexit.register()


def _autoload() -> None:
    """Entry point for torch: make the device known. Never raises, since ``import torch`` would."""
    global _done
    if _done:
        return
    _done = True
    try:
        _register()
    except Exception as error:
        warnings.warn(f"The neuron device is not available: {error}", RuntimeWarning, stacklevel=2)


_autoload()
