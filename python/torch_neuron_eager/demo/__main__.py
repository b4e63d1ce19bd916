"""``./dev demo``: the same training script unfused, adaptive and on PyTorch's CPU, side by side."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

FIGURES = ("losses", "launches_per_step", "steps_per_second", "peak_bytes")
STEADY = ("plan_hit_rate", "flushes_per_step", "operators_per_step")


@dataclass(frozen=True)
class Contestant:
    """One way to run the training script."""

    name: str
    device: str
    environment: dict[str, str] = field(default_factory=dict)


CONTESTANTS = (
    Contestant("unfused", "neuron", {"NEURON_ADAPTIVE_EAGER": "0"}),
    Contestant("adaptive", "neuron", {"NEURON_ADAPTIVE_EAGER": "1"}),
    Contestant("cpu", "cpu", {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}),
)


class ContestantFailed(RuntimeError):
    """A contestant's process ended without its results; the message has its last words."""


def run(contestant: Contestant, args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Run one contestant in its own process and return what it reported."""
    threads = str(args.threads or len(os.sched_getaffinity(0)))
    environment = os.environ | contestant.environment
    environment |= {"OMP_NUM_THREADS": threads, "NEURON_EAGER_THREADS": threads}
    environment.pop("NEURON_FUSION_REPORT", None)
    task = progress.add_task(contestant.name, total=args.steps, loss="")
    reader, writer = os.pipe()
    command = [sys.executable, str(Path(__file__).with_name("worker.py"))]
    command += ["--device", contestant.device, "--steps", str(args.steps), "--dropout", str(args.dropout)]
    command += ["--report-to", str(writer), *(["--no-foreach"] if args.no_foreach else [])]
    result: dict[str, Any] = {}
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, env=environment, pass_fds=[writer], stderr=errors) as process:
            os.close(writer)
            with os.fdopen(reader) as reports:
                for line in reports:
                    result = json.loads(line)
                    if "step" in result:
                        progress.update(task, completed=result["step"], loss=f"loss {result['loss']:.4f}")
        errors.seek(0)
        if process.returncode != 0 or "losses" not in result:
            ending = "\n".join(errors.read().strip().splitlines()[-12:])
            raise ContestantFailed(f"the {contestant.name} run ended with code {process.returncode}:\n{ending}")
    return result


def same_bits(results: dict[str, dict[str, Any]]) -> bool | None:
    """Return whether all losses of both runs on the device agree to the last bit, or None if they did not both run."""
    if not {"unfused", "adaptive"} <= results.keys():
        return None
    return [loss.hex() for loss in results["unfused"]["losses"]] == [
        loss.hex() for loss in results["adaptive"]["losses"]
    ]


def summary(results: dict[str, dict[str, Any]], args: argparse.Namespace) -> dict[str, Any]:
    """Return what ``--json`` writes."""
    out: dict[str, Any] = {"losses_identical": same_bits(results)}
    for figure in FIGURES:
        out[figure] = {c.name: results.get(c.name, {}).get(figure) for c in CONTESTANTS}
    for figure in STEADY:
        out[figure] = results.get("adaptive", {}).get(figure)
    out["operators_per_step_unfused"] = results.get("unfused", {}).get("operators_per_step")
    out["threads"] = next(iter(results.values()))["threads"]
    out["settings"] = {"steps": args.steps, "dropout": args.dropout, "foreach": not args.no_foreach}
    return out


def show(results: dict[str, dict[str, Any]], console: Console) -> None:
    """Print the table and what follows from it."""
    any_result = next(iter(results.values()))
    table = Table(title=f"{len(any_result['losses'])} steps, {any_result['threads']} threads")
    for column in ("run", "last loss", "steps/s", "launches/step", "peak memory"):
        table.add_column(column, justify="left" if column == "run" else "right")
    for name, result in results.items():
        launches = result["launches_per_step"]
        table.add_row(
            "torch CPU" if name == "cpu" else name,
            f"{result['losses'][-1]:.4f}",
            f"{result['steps_per_second']:.1f}",
            "-" if launches is None else f"{launches:.0f}",
            f"{result['peak_bytes'] / 2**20:.0f} MiB",
        )
    console.print(table)
    console.print(f"(steps/s and launches/step from step {any_result['warm_up_steps'] + 1} on)")
    identical = same_bits(results)
    if identical is not None:
        console.print(
            "[bold green]All losses of the unfused and the adaptive run are identical in their bits."
            if identical
            else "[bold red]The losses of the unfused and the adaptive run DIFFER."
        )
    if {"adaptive", "cpu"} <= results.keys():
        ratio = results["adaptive"]["steps_per_second"] / results["cpu"]["steps_per_second"]
        console.print(f"Adaptive makes {ratio:.2f} times as many steps a second as PyTorch's CPU eager mode.")
    if "adaptive" in results:
        console.print(f"\n{escape(results['adaptive']['fusion_report'])}", highlight=False)
    last = list(results.values())[-1] if "adaptive" not in results else results["adaptive"]
    console.print("\n[bold]A sample of what the model writes:")
    console.print(escape(last["sample"]), highlight=False)


def plot(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw the losses of all runs into a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    # The two runs on the device lie on top of each other: a wide line below, a thin one above.
    styles = {"unfused": {"linewidth": 4, "alpha": 0.4}, "adaptive": {"linewidth": 1.2}, "cpu": {"linestyle": "--"}}
    for name, result in results.items():
        label = "torch CPU" if name == "cpu" else name
        axes.plot(range(1, len(result["losses"]) + 1), result["losses"], label=label, **styles[name])
    axes.set(xlabel="step", ylabel="loss (nats a byte)")
    axes.legend()
    axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options; ends the process with one clear line on a wrong one."""
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--device", choices=("all", "neuron", "cpu"), default="all")
    parser.add_argument("--dropout", type=float, default=0.1, metavar="P")
    parser.add_argument("--no-foreach", action="store_true", help="let the optimizer update the parameters one by one")
    parser.add_argument("--threads", type=int, help="for every run; default: the cores this process may use")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder of the plot and the sample")
    args = parser.parse_args(arguments)
    if args.steps < 1:
        parser.error("--steps must be at least 1")
    if not 0 <= args.dropout < 1:
        parser.error("--dropout must be in [0, 1)")
    return args


def main() -> int:
    """Run the contestants one after the other and compare them."""
    args = parse()
    console = Console()
    columns = (
        TextColumn("{task.description:9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
    )
    results: dict[str, dict[str, Any]] = {}
    try:
        with Progress(*columns, console=console, refresh_per_second=4) as progress:
            for contestant in CONTESTANTS:
                if args.device in ("all", contestant.device):
                    results[contestant.name] = run(contestant, args, progress)
    except ContestantFailed as failure:
        console.print(f"demo: {failure}", style="red", markup=False)
        return 1
    show(results, console)
    plot(results, args.out / "losses.png")
    (args.out / "sample.txt").write_text("\n\n".join(f"--- {n}\n{r['sample']}" for n, r in results.items()) + "\n")
    if args.json:
        args.json.write_text(json.dumps(summary(results, args), indent=1) + "\n")
    console.print(f"The plot of the losses: {args.out / 'losses.png'}")
    return 0 if same_bits(results) is not False else 1


if __name__ == "__main__":
    sys.exit(main())
