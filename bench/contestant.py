"""One contestant of ``compare.py``: a process that makes a workload once and runs rounds of it on command.

A workload's step is followed by a synchronization while its result is still alive, so nothing is skipped as dead. The
peak of memory is this process's own: helpers that compile for it are not in there.
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
from typing import Any

import torch

import workloads


def resident(field: str) -> int:
    """Return a field of this process's memory status, in bytes."""
    match = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if match is None:
        raise RuntimeError(f"/proc/self/status has no {field}")
    return int(match[1]) * 1024


class Runner:
    """A workload on a device, with the peak of memory that it took."""

    def __init__(self, workload: str, arguments: dict[str, object], device: str, compiled: bool) -> None:
        self._make = lambda: importlib.import_module(f"workloads.{workload}").make(device, **arguments)
        self._device, self._compiled = device, compiled
        self._step: Callable[[], object] = lambda: None
        self._before = 0

    def _synchronize(self) -> None:
        if self._device != "cpu":
            torch.accelerator.synchronize()

    def _run(self) -> tuple[float, object]:
        """Run a step and return the seconds that it took, and what it gave."""
        start = time.perf_counter()
        result = self._step()
        self._synchronize()
        elapsed = time.perf_counter() - start
        return (float(result) if isinstance(result, workloads.Seconds) else elapsed), result

    def begin(self, steps: int, limit: float, warm_up: int) -> dict[str, Any]:
        """Make the workload and run the first steps of this process.

        When the limit of seconds is reached, no other step is timed; those of the warm-up are run all the same.
        """
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        self._before = resident("VmRSS")
        start = time.perf_counter()
        self._step = self._make()
        if self._compiled:
            self._step = torch.compile(self._step)
        ends: list[float] = []
        results: list[object] = []
        while len(results) < (steps if (in_time := not ends or ends[-1] < limit) else warm_up):
            seconds, result = self._run()
            if in_time:
                ends.append(time.perf_counter() - start)
            results.append(result if is_loss(result) else None)
            del result
        losses = None if None in results else [float(result).hex() for result in results]
        return {"seconds": seconds, "first_step": ends[0], "steps": len(ends), "all_steps": ends[-1], "losses": losses}

    def round(self, seconds: float, step: float) -> dict[str, Any]:
        """Run about so many seconds' worth of steps."""
        steps = max(1, math.ceil(seconds / step))
        before = self._counters()
        taken = sum(self._run()[0] for _ in range(steps))
        answer: dict[str, Any] = {"seconds": taken / steps, "steps": steps}
        after = self._counters()
        answer["peak_bytes"] = resident("VmHWM") - self._before
        answer["a_step"] = {key: (after[key] - before[key]) / steps for key in after}
        return answer

    def _counters(self) -> dict[str, float]:
        if self._device == "cpu":
            return {}
        stats = torch.neuron.fusion_stats()
        counters = {key: stats[key] for key in ("operators_recorded", "launches", "flushes", "kernels_made")}
        return counters | {"fallbacks": sum(stats["fallbacks"].values())}


def is_loss(result: object) -> bool:
    """Return whether a step gave one number that says how it went."""
    if isinstance(result, torch.Tensor):
        return result.numel() == 1 and result.is_floating_point()
    return isinstance(result, float) and not isinstance(result, workloads.Seconds)


def first_line(error: Exception) -> str:
    """Return what an exception is and says, in one line."""
    message = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {message}"


def main() -> None:
    """Obey one JSON command a line on standard input, answering on the file descriptor given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", required=True)
    parser.add_argument("--arguments", type=json.loads, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--report-to", type=int, required=True, help="a file descriptor")
    args = parser.parse_args()
    report = os.fdopen(args.report_to, "w", buffering=1)
    runner = Runner(args.workload, args.arguments, args.device, args.compile)
    commands = {"begin": runner.begin, "round": runner.round}
    print(json.dumps({"ready": True}), file=report)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = commands[command.pop("do")](**command)
        except Exception as error:
            answer = {"error": first_line(error)}
        print(json.dumps(answer), file=report)


if __name__ == "__main__":
    main()
