"""What an operator on 4x4 tensors costs the Python thread: 1,000 additions a step.

``synced`` keeps all results and waits for them inside the timed part; the others stop the clock before.
"""

import time
from collections.abc import Callable

import torch

from workloads import Seconds

PIECE = True
COMPILES = False  # it measures what each operator costs in Python
VARIANTS = {
    "record_4x4": {"grad": False, "synced": False},
    "record_4x4_grad": {"grad": True, "synced": False},
    "record_4x4_synced": {"grad": False, "synced": True},
}
OPERATORS = 1000


def make(device: str, grad: bool, synced: bool) -> Callable[[], object]:
    """Return a step; unless `synced`, it takes its own time."""
    a = torch.ones(4, 4).to(device).requires_grad_(grad)
    b = torch.ones(4, 4).to(device)

    def record() -> Seconds:
        start = time.perf_counter()
        for _ in range(OPERATORS):
            c = a + b
        seconds = Seconds(time.perf_counter() - start)
        del c
        return seconds

    return (lambda: [a + b for _ in range(OPERATORS)]) if synced else record
