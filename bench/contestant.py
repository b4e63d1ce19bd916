"""One contestant of ``compare.py``: a process that makes a workload once and runs rounds of it on command.

A workload's step is followed by a synchronization while its result is still alive, so nothing is skipped as dead.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import workloads

WARM_UP_STEPS = 6  # enough for plans to be known


def resident(field: str) -> int:
    """Return a field of this process's memory status, in bytes."""
    match = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if match is None:
        raise RuntimeError(f"/proc/self/status has no {field}")
    return int(match[1]) * 1024


class Runner:
    """A workload on a device, with the peak of memory that it took."""

    def __init__(self, workload: str, arguments: dict[str, object], device: str) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        self._before = resident("VmRSS")
        self._synchronize: Callable[[], None] = torch.accelerator.synchronize if device != "cpu" else lambda: None
        self._step = importlib.import_module(f"workloads.{workload}").make(device, **arguments)

    def run(self, steps: int) -> float:
        """Run some steps and return the seconds that they took."""
        seconds = 0.0
        for _ in range(steps):
            start = time.perf_counter()
            result = self._step()
            self._synchronize()
            elapsed = time.perf_counter() - start
            seconds += result if isinstance(result, workloads.Seconds) else elapsed
            del result
        return seconds

    def peak(self) -> int:
        """Return by how much the peak of resident memory exceeds what there was before the workload was made."""
        return resident("VmHWM") - self._before


def main() -> None:
    """Obey one JSON command a line on standard input, answering on the file descriptor given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", required=True)
    parser.add_argument("--arguments", type=json.loads, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--report-to", type=int, required=True, help="a file descriptor")
    args = parser.parse_args()
    report = os.fdopen(args.report_to, "w", buffering=1)
    runner = Runner(args.workload, args.arguments, args.device)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "warm up":
            runner.run(WARM_UP_STEPS)
            answer = {"seconds": runner.run(1)}
        else:
            steps = max(1, math.ceil(command["seconds"] / command["step"]))
            answer = {"seconds": runner.run(steps) / steps, "steps": steps, "peak_bytes": runner.peak()}
        print(json.dumps(answer), file=report)


if __name__ == "__main__":
    main()
