"""Knobs for tests: where traces are cut. Results must not depend on any of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch_neuron_eager import _C

__all__ = ["flush", "flush_period", "pending", "policy"]


def pending() -> int:
    """Return how many operators are recorded and not yet flushed."""
    return _C.pending()


def flush() -> None:
    """Submit what is recorded, without waiting for it."""
    _C.flush()


@contextmanager
def policy(**settings: int) -> Iterator[None]:
    """Change the flush policy for a while: any of what ``_C.settings()`` lists."""
    before = _C.settings()
    _C.change_settings(settings)
    try:
        yield
    finally:
        _C.change_settings(before)


def flush_period(operators: int, *, adaptive: bool = True) -> object:
    """Return a context manager in which every k-th recorded operator is followed by a flush."""
    return policy(period=operators, adaptive=adaptive)
