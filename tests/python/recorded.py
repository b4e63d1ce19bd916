"""Checks that operators are recorded and not run by the CPU fallback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

from opinfo import check_samples

__all__ = ["cases_of", "check_recorded_samples", "no_fallback"]


@contextlib.contextmanager
def no_fallback() -> Iterator[None]:
    """Fails if the CPU fallback ran inside."""
    torch.neuron.reset_fusion_stats()
    yield
    assert torch.neuron.fusion_stats()["fallbacks"] == {}


def cases_of(names: str, dtypes: list[torch.dtype]) -> list[tuple[OpInfo, torch.dtype]]:
    """Return each operator of PyTorch's list that has one of the names, with each dtype that it supports.

    Raises
    ------
    LookupError
        A name is not in the list.
    """
    wanted = set(names.split())
    found = [op for op in op_db if op.name in wanted]
    missing = wanted - {op.name for op in found}
    if missing:
        raise LookupError(f"not in PyTorch's list of operators: {sorted(missing)}")
    return [(op, dtype) for op in found for dtype in dtypes if dtype in op.dtypes]


def check_recorded_samples(op: OpInfo, dtype: torch.dtype, *, backward: bool = True) -> None:
    """Compares all samples of an operator with the CPU's results; none may fall back."""
    with no_fallback():
        check_samples(op, dtype, backward=backward)
