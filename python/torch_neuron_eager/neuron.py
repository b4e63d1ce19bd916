"""The ``neuron`` device: this module is ``torch.neuron``."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any

import torch

from torch_neuron_eager import _C
from torch_neuron_eager.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_neuron_eager.report import fusion_report, fusion_stats, reset_fusion_stats

__all__ = [
    "Event",
    "Stream",
    "adaptive_eager",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "fusion_report",
    "fusion_stats",
    "get_amp_supported_dtype",
    "get_device_name",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_fusion_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "stream",
    "synchronize",
]

_Device = torch.device | str | int | None


def _check(device: _Device) -> None:
    if device is None:
        return
    if not isinstance(device, int):
        device = torch.device(device)
        if device.type != "neuron":
            raise ValueError(f"Expected a neuron device, but got {device}")
        device = device.index or 0
    if device not in (0, -1):
        raise RuntimeError(f"[neuron] there is one device, neuron:0, but index {device} was asked for")


# Device --------------------------------------------------------------------------------------------------------------


def is_available() -> bool:
    """Return True: the device is this machine's processor, and it is always there."""
    return True


def is_initialized() -> bool:
    """Return whether the device was used already."""
    return _C.is_initialized()


def init() -> None:
    """Start the device; its first use does that by itself."""
    _C.init()


_lazy_init = init


def _is_in_bad_fork() -> bool:
    return _C.is_in_bad_fork()


def device_count() -> int:
    """Return the number of devices, which is 1."""
    return 1


def current_device() -> int:
    """Return the index of the current device, which is 0."""
    return 0


def set_device(device: _Device) -> None:
    """Choose the current device; there is only ``neuron:0``."""
    _check(device)


class device:
    """Context manager that chooses the current device; there is only ``neuron:0``."""

    def __init__(self, device: _Device) -> None:
        _check(device)

    def __enter__(self) -> None:
        """Choose the device."""

    def __exit__(self, *_: object) -> None:
        """Choose the one before."""


def get_device_name(device: _Device = None) -> str:
    """Return the name of the device that launches run on."""
    _check(device)
    return "Adaptive Eager host device"


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the dtypes that autocast may choose."""
    return [torch.bfloat16, torch.float16]


def is_bf16_supported() -> bool:
    """Return True: kernels compute with bfloat16."""
    return True


def synchronize(device: _Device = None) -> None:
    """Run everything that was recorded and wait for it; raise the first error that nobody has seen yet."""
    _check(device)
    if _C.is_initialized():
        _C.synchronize()


# Streams -------------------------------------------------------------------------------------------------------------


class Stream(torch.Stream):
    """A stream of the device. There is one so far, and all streams are it."""

    def __new__(cls, device: _Device = None, priority: int = 0) -> torch.Stream:
        """Return a handle of the default stream."""
        _check(device)
        return torch.Stream(torch.device("neuron", 0), priority=priority)


class Event(torch.Event):
    """A place in a stream. With ``enable_timing`` it waits when it is recorded and notes the time."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> torch.Event:
        """Make an event that is not recorded yet. torch compares events of its own class only, so it is one."""
        return torch.Event(
            torch.device("neuron", 0), enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )


def default_stream(device: _Device = None) -> torch.Stream:
    """Return the default stream."""
    _check(device)
    return torch.accelerator.current_stream(torch.device("neuron", 0))


current_stream = default_stream


class stream:
    """Context manager that chooses the current stream."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> torch.Stream | None:
        """Choose the stream."""
        return self.stream

    def __exit__(self, *_: object) -> None:
        """Choose the one before."""


# Memory --------------------------------------------------------------------------------------------------------------


def memory_stats(device: _Device = None) -> dict[str, Any]:
    """Return the allocator's statistics under the names that ``torch.accelerator.memory_stats`` uses."""
    _check(device)
    if not _C.is_initialized():
        return {}
    return dict(torch.accelerator.memory_stats())


def memory_allocated(device: _Device = None) -> int:
    """Return the bytes that tensors hold; what is recorded is submitted first, so that it counts."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: _Device = None) -> int:
    """Return the most bytes that tensors held, since the start or the last reset of the peak."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: _Device = None) -> int:
    """Return the bytes that the caching allocator has from the system."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: _Device = None) -> int:
    """Return the most bytes that the caching allocator had from the system."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: _Device = None) -> None:
    """Make the current figures the peaks."""
    _check(device)
    if _C.is_initialized():
        torch.accelerator.reset_peak_memory_stats()


def reset_accumulated_memory_stats(device: _Device = None) -> None:
    """Set the figures that only grow to zero."""
    _check(device)
    if _C.is_initialized():
        torch.accelerator.reset_accumulated_memory_stats()


def empty_cache() -> None:
    """Give memory that no tensor holds back to the system."""
    torch.accelerator.empty_cache()


def mem_get_info(device: _Device = None) -> tuple[int, int]:
    """Return the free bytes and all bytes that the process may use on the device."""
    _check(device)
    init()
    return torch.accelerator.get_memory_info()


def set_per_process_memory_fraction(fraction: float, device: _Device = None) -> None:
    """Limit this process to a share of the machine's memory.

    Parameters
    ----------
    fraction
        Between 0 and 1. Beyond the limit, an operator raises ``torch.OutOfMemoryError``.
    device
        The device, ``neuron:0``.
    """
    _check(device)
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    init()
    _C.set_memory_limit(-1)
    if fraction < 1:
        _C.set_memory_limit(int(_C.memory_limit() * fraction))


# Fusion --------------------------------------------------------------------------------------------------------------


class adaptive_eager:
    """Switch between adaptive and unfused execution, for the whole process.

    Called as a function it switches; used as a context manager it also switches back.

    Parameters
    ----------
    enabled
        True: record operators and run them as few fused launches. False: every operator is its own launch.
    """

    def __init__(self, enabled: bool = True) -> None:
        self._before = _C.set_adaptive(enabled)

    def __enter__(self) -> None:
        """Do nothing more: the switch happened already."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Switch back."""
        _C.set_adaptive(self._before)


def __getattr__(name: str) -> Any:
    """Answer ``_initialized``, by which torch.utils.checkpoint asks whether there is a random state to keep."""
    if name == "_initialized":
        return _C.is_initialized()
    raise AttributeError(f"module 'torch.neuron' has no attribute '{name}'")


def __dir__() -> Iterable[str]:
    return __all__
