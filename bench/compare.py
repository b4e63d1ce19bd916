"""``./dev bench``: workloads side by side on the neuron device, on PyTorch's CPU and under torch.compile.

Each contestant is a process of its own that makes the workload once and runs rounds on command. Rounds alternate, so a
noisy machine is noisy for all; ratios are taken round by round. The first step, and with ``--cold`` the first 200, are
timed from when the process has imported torch; what compiling takes is in there, and not in the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from evaluate import evaluate, geometric_means
from present import plot, show
from processes import ContestantFailed, Process
from registry import Contestant, Workload, find_contestants, find_workloads


class Race:
    """One workload with all its contestants."""

    def __init__(self, workload: Workload, contestants: list[Contestant], args: argparse.Namespace) -> None:
        self._args = args
        self._processes: dict[str, Process] = {}
        self._step: dict[str, float] = {}
        self.results: dict[str, Any] = {}
        for contestant in contestants:
            if workload.compiles or not contestant.compiled:
                self._processes[contestant.name] = Process(contestant, workload, args.threads, args.patience)

    def _drop(self, name: str, failure: ContestantFailed) -> None:
        self.results[name] = {"error": str(failure)}
        self._processes.pop(name).close()

    def begin(self) -> None:
        """Let each contestant run its first steps, while the others sleep."""
        for name, process in list(self._processes.items()):
            try:
                process.ready()
            except ContestantFailed as failure:
                self._drop(name, failure)
        steps = self._args.cold_steps or self._args.warm_up
        for name, process in list(self._processes.items()):
            try:
                first = process.ask(do="begin", steps=steps, limit=self._args.cold_limit, warm_up=self._args.warm_up)
            except ContestantFailed as failure:
                self._drop(name, failure)
                continue
            self._step[name] = first["seconds"]
            cold = {"seconds": first["all_steps"], "steps": first["steps"], "complete": first["steps"] == steps}
            self.results[name] = {
                "seconds": [],
                "first_step": first["first_step"],
                "losses": first["losses"],
                "cold": cold if self._args.cold_steps else None,
            }

    def round(self, turn: int) -> None:
        """Let each contestant run for a while; nobody always comes right after the same neighbour."""
        names = list(self._processes)
        first = turn % max(1, len(names))
        for name in names[first:] + names[:first]:
            try:
                answer = self._processes[name].ask(do="round", seconds=self._args.seconds, step=self._step[name])
            except ContestantFailed as failure:
                self._drop(name, failure)
                continue
            self.results[name]["seconds"].append(answer["seconds"])
            self.results[name] |= {key: answer[key] for key in ("peak_bytes", "a_step")}

    def close(self) -> None:
        """End all processes."""
        for process in self._processes.values():
            process.close()


def run(
    workload: Workload, contestants: list[Contestant], args: argparse.Namespace, progress: Progress
) -> dict[str, Any]:
    """Run one workload with all contestants and return what each measured."""
    task = progress.add_task(workload.name, total=args.rounds + 1)
    race = Race(workload, contestants, args)
    try:
        race.begin()
        for turn in range(args.rounds):
            progress.advance(task)
            race.round(turn)
        progress.advance(task)
    finally:
        race.close()
    order = [contestant.name for contestant in contestants]
    return {name: race.results[name] for name in order if name in race.results}


def busy_share(seconds: float = 0.5) -> float:
    """Return the share of the machine's processor time that others use, watched for some seconds."""

    def reading() -> tuple[int, int]:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]  # all; idle and waiting for a disk

    total, idle = reading()
    time.sleep(seconds)
    total_after, idle_after = reading()
    return 1 - (idle_after - idle) / max(1, total_after - total)


def names(text: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name for name in text.split(",") if name]


def parse(workloads: list[str], contestants: list[str]) -> argparse.Namespace:
    """Return the options; ends the process with one clear line on a wrong one."""
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", type=names, metavar="NAME", help=", ".join(workloads))
    parser.add_argument("--contestants", nargs="+", type=names, metavar="NAME", help=", ".join(contestants))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one contestant's round, about")
    parser.add_argument(
        "--threads", type=int, default=min(2, len(os.sched_getaffinity(0))), help="for every contestant"
    )
    # Seven are enough for plans to be known and for torch.compile to have seen what changes.
    parser.add_argument("--warm-up", type=int, default=7, metavar="STEPS", help="before the rounds; compares losses")
    parser.add_argument(
        "--cold", action="store_const", const=200, default=0, dest="cold_steps", help="time the first 200 steps"
    )
    parser.add_argument("--cold-limit", type=float, default=180, help="seconds after which no cold step is timed")
    parser.add_argument("--patience", type=float, default=900, help="seconds in which a contestant must answer")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    args = parser.parse_args()
    for option, known in (("workloads", workloads), ("contestants", contestants)):
        chosen = [name for group in getattr(args, option) or [known] for name in group]
        setattr(args, option, chosen)
        if unknown := set(chosen) - set(known):
            parser.error(f"no {option[:-1]} {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    for option in ("rounds", "threads", "seconds", "warm_up", "cold_limit", "patience"):
        if getattr(args, option) <= 0:
            parser.error(f"--{option.replace('_', '-')} must be positive")
    return args


def main() -> int:
    """Run the workloads asked for and print and write what came out."""
    workloads = {workload.name: workload for workload in find_workloads()}
    contestants = {contestant.name: contestant for contestant in find_contestants()}
    args = parse(list(workloads), list(contestants))
    # A file or a pipe has no width: the table takes what it needs.
    console = Console() if sys.stdout.isatty() else Console(width=180)
    if "cpu_jemalloc" not in contestants:
        console.print("bench: jemalloc is not installed (Debian: libjemalloc2); going on without that contestant")
    settings = {
        key: getattr(args, key) for key in ("rounds", "threads", "seconds", "warm_up", "cold_steps", "cold_limit")
    }
    busy = busy_share()
    report: dict[str, Any] = {"settings": settings, "machine": platform.platform(), "busy_before": busy}
    results = report["workloads"] = {}
    with Progress(console=console, refresh_per_second=1) as progress:
        for name in args.workloads:
            chosen = [contestants[contestant] for contestant in args.contestants]
            results[name] = evaluate(run(workloads[name], chosen, args, progress)) | {"piece": workloads[name].piece}
            report["geometric_means"] = geometric_means(results)
            if args.json:  # now, so that an hour's work is not lost with what comes after
                args.json.write_text(json.dumps(report, indent=1) + "\n")
    show(report, args.contestants, console)
    if busy > 0.1:
        console.print(f"Other processes used {busy:.0%} of the machine when this began: do not trust the ratios.")
    if args.plot:
        plot(report, args.contestants, args.plot)
    # torch.compile may refuse a program; everybody else has to run it.
    failed = [
        name
        for result in results.values()
        for name, figures in result["contestants"].items()
        if "error" in figures and not contestants[name].compiled
    ]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
