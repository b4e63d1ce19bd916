"""``./dev bench``: workloads side by side on the neuron device and on PyTorch's CPU.

Each contestant is a process of its own that makes the workload once and runs rounds on command. Rounds alternate, so a
noisy machine is noisy for all; ratios are taken round by round.
"""

from __future__ import annotations

import argparse
import glob
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

BENCH = Path(__file__).resolve().parent  # also the first place where this script's imports are looked for


@dataclass(frozen=True)
class Contestant:
    """One way to run a workload."""

    name: str
    device: str
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """A file in ``workloads/`` with the arguments of its ``make``."""

    name: str
    module: str
    arguments: dict[str, object]


class ContestantFailed(RuntimeError):
    """A contestant's process ended too early; the message has its last words."""


class Process:
    """A running contestant."""

    def __init__(self, contestant: Contestant, workload: Workload, threads: int) -> None:
        self.contestant = contestant
        environment = os.environ | dict.fromkeys(
            ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NEURON_EAGER_THREADS"), str(threads)
        )
        environment.pop("NEURON_FUSION_REPORT", None)
        reader, writer = os.pipe()
        command = [sys.executable, str(BENCH / "contestant.py"), "--workload", workload.module]
        command += ["--arguments", json.dumps(workload.arguments), "--device", contestant.device]
        command += ["--report-to", str(writer)]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command,
            env=environment | contestant.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=[writer],
            text=True,
        )
        os.close(writer)
        self._reports = os.fdopen(reader)

    def ask(self, **command: object) -> dict[str, Any]:
        """Give the process a command and return its answer."""
        assert self._process.stdin is not None
        try:
            print(json.dumps(command), file=self._process.stdin, flush=True)
            answer = self._reports.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self._process.wait()
            self._errors.seek(0)
            words = self._errors.read().strip().splitlines()[-6:]
            raise ContestantFailed(f"{self.contestant.name} ended with code {code}:\n" + "\n".join(words))
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reports.close()
        self._process.wait()
        self._errors.close()


def find_workloads() -> list[Workload]:
    """Return all workloads there are."""
    found = []
    for path in sorted((BENCH / "workloads").glob("[!_]*.py")):
        module = importlib.import_module(f"workloads.{path.stem}")
        for name, arguments in getattr(module, "VARIANTS", {path.stem: {}}).items():
            found.append(Workload(name, path.stem, arguments))
    return found


def find_contestants(console: Console) -> list[Contestant]:
    """Return the contestants; the one with jemalloc only where that is installed."""
    cpu = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    contestants = [
        Contestant("adaptive", "neuron", {"NEURON_ADAPTIVE_EAGER": "1"}),
        Contestant("unfused", "neuron", {"NEURON_ADAPTIVE_EAGER": "0"}),
        Contestant("cpu", "cpu", cpu),
    ]
    libraries = glob.glob("/usr/lib/*/libjemalloc.so.2") + glob.glob("/usr/lib*/libjemalloc.so.2")
    if libraries:
        contestants.append(Contestant("cpu_jemalloc", "cpu", cpu | {"LD_PRELOAD": libraries[0]}))
    else:
        console.print("bench: jemalloc is not installed (Debian: libjemalloc2); going on without that contestant")
    return contestants


def run(
    workload: Workload, contestants: list[Contestant], args: argparse.Namespace, progress: Progress
) -> dict[str, Any]:
    """Run one workload with all contestants and return seconds a step and peaks of memory."""
    task = progress.add_task(workload.name, total=args.rounds)
    processes: list[Process] = []
    try:
        processes += [Process(contestant, workload, args.threads) for contestant in contestants]
        step = {process.contestant.name: process.ask(do="warm up")["seconds"] for process in processes}
        results = {name: {"seconds": [], "peak_bytes": 0} for name in step}
        for turn in range(args.rounds):
            # Nobody always comes right after the same neighbour has warmed or emptied the caches.
            first = turn % len(processes)
            for process in processes[first:] + processes[:first]:
                name = process.contestant.name
                answer = process.ask(do="round", seconds=args.seconds, step=step[name])
                results[name]["seconds"].append(answer["seconds"])
                results[name]["peak_bytes"] = answer["peak_bytes"]
            progress.update(task, completed=turn + 1)
        return results
    finally:
        for process in processes:
            process.close()


def busy_share(seconds: float = 0.5) -> float:
    """Return the share of the machine's processor time that others use, watched for some seconds."""

    def reading() -> tuple[int, int]:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]  # all; idle and waiting for a disk

    total, idle = reading()
    time.sleep(seconds)
    total_after, idle_after = reading()
    return 1 - (idle_after - idle) / max(1, total_after - total)


def spread(values: list[float]) -> dict[str, float]:
    """Return the median and the range."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def evaluate(results: dict[str, Any]) -> dict[str, Any]:
    """Add medians, and how many times as fast each contestant is as the others, round by round."""
    out: dict[str, Any] = {"contestants": {}, "speedup": {}, "memory_ratio": {}}
    for name, result in results.items():
        out["contestants"][name] = result | {"seconds_per_step": spread(result["seconds"])}
    for name in ("adaptive", "unfused"):
        for base in ("cpu", "cpu_jemalloc", "unfused"):
            if name == base or not {name, base} <= results.keys():
                continue
            pairs = zip(results[base]["seconds"], results[name]["seconds"], strict=True)
            out["speedup"][f"{name}/{base}"] = spread([theirs / ours for theirs, ours in pairs])
            if results[base]["peak_bytes"] > 0:
                out["memory_ratio"][f"{name}/{base}"] = results[name]["peak_bytes"] / results[base]["peak_bytes"]
    return out


def duration(seconds: float) -> str:
    """Return seconds in a unit that fits."""
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.{1 if seconds < 0.1 else 0}f} ms"


def show(report: dict[str, Any], contestants: list[Contestant], args: argparse.Namespace, console: Console) -> None:
    """Print the table."""
    names = [contestant.name for contestant in contestants]
    title = f"Median time of a step and peak memory; {args.threads} threads, {args.rounds} rounds"
    table = Table(title=title, caption="A/B: how many times as fast A is as B, median and range over rounds")
    table.add_column("workload", no_wrap=True)
    bases = [pair for pair in ("adaptive/cpu", "adaptive/cpu_jemalloc", "unfused/cpu") if pair.split("/")[1] in names]
    for heading in (*names, *(pair.replace("/", "\n/") for pair in bases), "peak memory\nadaptive/cpu"):
        table.add_column(heading, justify="right", no_wrap=True)
    for workload, result in report["workloads"].items():
        cells = []
        for name in names:
            figures = result["contestants"][name]
            peak = figures["peak_bytes"] / 2**20
            cells.append(f"{duration(figures['seconds_per_step']['median'])}\n{peak:.0f} MiB")
        for pair in bases:
            figures = result["speedup"].get(pair)
            cells.append(
                f"{figures['median']:.2f}\n({figures['min']:.2f}-{figures['max']:.2f})" if figures is not None else "-"
            )
        memory = result["memory_ratio"].get("adaptive/cpu")
        table.add_row(workload, *cells, "-" if memory is None else f"{memory:.2f}")
    console.print(table)


def parse(workloads: list[str]) -> argparse.Namespace:
    """Return the options; ends the process with one clear line on a wrong one."""
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", metavar="NAME", default=workloads, help=", ".join(workloads))
    parser.add_argument("--contestants", nargs="+", metavar="NAME", help="adaptive, unfused, cpu, cpu_jemalloc")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one contestant's round, about")
    parser.add_argument(
        "--threads", type=int, default=min(2, len(os.sched_getaffinity(0))), help="for every contestant"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if unknown := set(args.workloads) - set(workloads):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(workloads)}")
    if args.rounds < 1 or args.threads < 1 or args.seconds <= 0:
        parser.error("--rounds, --threads and --seconds must be positive")
    return args


def main() -> int:
    """Run the workloads asked for and print and write what came out."""
    workloads = {workload.name: workload for workload in find_workloads()}
    args = parse(list(workloads))
    # A file or a pipe has no width: the table takes what it needs.
    console = Console() if sys.stdout.isatty() else Console(width=140)
    contestants = find_contestants(console)
    if args.contestants:
        if unknown := set(args.contestants) - {contestant.name for contestant in contestants}:
            console.print(f"bench: no contestant {', '.join(sorted(unknown))}")
            return 2
        contestants = [contestant for contestant in contestants if contestant.name in args.contestants]
    settings = {"rounds": args.rounds, "threads": args.threads, "seconds": args.seconds}
    busy = busy_share()
    report: dict[str, Any] = {
        "settings": settings,
        "machine": platform.platform(),
        "busy_before": busy,
        "workloads": {},
    }
    failures = []
    with Progress(console=console, refresh_per_second=1) as progress:
        for name in args.workloads:
            try:
                report["workloads"][name] = evaluate(run(workloads[name], contestants, args, progress))
            except ContestantFailed as failure:
                failures.append(f"bench: {name}: {failure}")
    show(report, contestants, args, console)
    if busy > 0.1:
        console.print(f"Other processes used {busy:.0%} of the machine when this began: do not trust the ratios.")
    for failure in failures:
        console.print(failure, style="red", markup=False)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
