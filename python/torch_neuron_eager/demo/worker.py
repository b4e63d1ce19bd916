"""One contestant of the demo, in its own process: runs ``train.py`` and reports what happened.

It is run by its path, so that the process on PyTorch's CPU never sees this package. Reports are lines of JSON on the
file descriptor that the driver names: one a step, and a last one with the measurements.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import torch
import train

WARM_UP = 5  # steps left out of every figure that describes the steady state


def resident(field: str) -> int:
    """Return a field of this process's memory status, in bytes."""
    match = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if match is None:
        raise RuntimeError(f"/proc/self/status has no {field}")
    return int(match[1]) * 1024


def reset_peak() -> int:
    """Start measuring the peak of resident memory anew and return what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def counters(device: str) -> dict[str, Any]:
    """Return the device's cumulative counters; the CPU has none."""
    return torch.neuron.fusion_stats() if device == "neuron" else {}


def steady(first: dict[str, Any], last: dict[str, Any], steps: int) -> dict[str, float | None]:
    """Return the figures of the steady state between two readings of the counters."""
    if not last:
        return {"launches_per_step": None, "flushes_per_step": None, "plan_hit_rate": None, "operators_per_step": None}
    grown = {key: last[key] - first[key] for key in ("launches", "flushes", "operators_recorded")}
    flushed = last["operators_flushed"] - first["operators_flushed"]
    hits = last["operators_plan_hit"] - first["operators_plan_hit"]
    return {
        "launches_per_step": grown["launches"] / steps,
        "flushes_per_step": grown["flushes"] / steps,
        "operators_per_step": grown["operators_recorded"] / steps,
        "plan_hit_rate": hits / flushed if flushed else 1.0,
    }


def main() -> None:
    """Train as the command line says and report on the file descriptor given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--no-foreach", action="store_true")
    parser.add_argument("--report-to", type=int, required=True, help="a file descriptor")
    args = parser.parse_args()
    report = os.fdopen(args.report_to, "w", buffering=1)
    warm_up = WARM_UP if args.steps > 2 * WARM_UP else 0
    marks: list[tuple[float, dict[str, Any]]] = []
    text = train.load_text()
    before = reset_peak()
    model = train.make_model(args.device, args.dropout)
    if warm_up == 0:
        marks.append((time.perf_counter(), counters(args.device)))
    losses: list[float] = []
    for loss in train.train(model, text, args.device, args.steps, False if args.no_foreach else None):
        losses.append(loss)
        if len(losses) in (warm_up, args.steps):
            marks.append((time.perf_counter(), counters(args.device)))
        print(json.dumps({"step": len(losses), "loss": loss}), file=report)
    peak = resident("VmHWM") - before
    (first_time, first), (last_time, last) = marks
    result = {
        "losses": losses,
        "steps_per_second": (args.steps - warm_up) / (last_time - first_time),
        "peak_bytes": peak,
        "threads": torch.get_num_threads(),
        "warm_up_steps": warm_up,
        **steady(first, last, args.steps - warm_up),
        "stats": last,
        "fusion_report": torch.neuron.fusion_report() if args.device == "neuron" else None,
        "sample": train.generate(model, text, args.device),
    }
    print(json.dumps(result), file=report)


if __name__ == "__main__":
    main()
