"""What a cold process pays: importing torch with the device and without, the first operator, the demo's first steps.

Every figure is the median over processes of its own, which take turns. The steps are those of the demo's GPT, timed
from when torch is imported; what the device adds to the import has to stay below 60 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from evaluate import spread
from present import duration

STEPS = 200
WITHOUT = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
CONTESTANTS: dict[str, tuple[str, dict[str, str]]] = {
    "adaptive": ("neuron", {"NEURON_ADAPTIVE_EAGER": "1"}),
    "unfused": ("neuron", {"NEURON_ADAPTIVE_EAGER": "0"}),
    "cpu": ("cpu", WITHOUT),
}

IMPORT = """
import json, time
start, used = time.perf_counter(), time.process_time()
import torch
print(json.dumps([time.perf_counter() - start, time.process_time() - used]))
"""

OPERATOR = """
import sys, time
import torch
x = torch.ones(4, 4)
start = time.perf_counter()
y = x.to(sys.argv[1])
(y + y).cpu()
print(time.perf_counter() - start)
"""

TRAINING = """
import json, sys, time
import torch
sys.path.append(sys.argv[2])
import train
text = train.load_text()
ends, start = [], time.perf_counter()
model = train.make_model(sys.argv[1])
for _ in train.train(model, text, sys.argv[1], steps=int(sys.argv[3])):
    ends.append(time.perf_counter() - start)
print(json.dumps([ends[0], ends[-1]]))
"""


def run(script: str, *arguments: str, threads: int, environment: dict[str, str]) -> Any:
    """Run a script in a cold process and return what it printed."""
    settings = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NEURON_EAGER_THREADS"), str(threads))
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEURON_")}
    command = [sys.executable, "-c", script, *arguments]
    answer = subprocess.run(command, env=inherited | settings | environment, capture_output=True, text=True)
    if answer.returncode != 0:
        raise SystemExit(f"cold_start: a process ended with code {answer.returncode}:\n{answer.stderr[-2000:]}")
    return json.loads(answer.stdout)


def measure(processes: int, training: int, steps: int, threads: int) -> dict[str, dict[str, Any]]:
    """Return medians and ranges, by what was measured and by contestant."""
    imports: dict[str, list[Sequence[float]]] = {"with the device": [], "without": []}
    first: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    ends: dict[str, list[Sequence[float]]] = {name: [] for name in CONTESTANTS}
    for _ in track(range(processes), "import and first operator"):
        for name, environment in (("with the device", {}), ("without", WITHOUT)):
            imports[name].append(run(IMPORT, threads=threads, environment=environment))
        for name, (device, environment) in CONTESTANTS.items():
            first[name].append(run(OPERATOR, device, threads=threads, environment=environment))
    demo = str(Path(__file__).resolve().parents[1] / "python" / "torch_neuron_eager" / "demo")
    for _ in track(range(training), f"{steps} steps of the demo"):
        for name, (device, environment) in CONTESTANTS.items():
            answer = run(TRAINING, device, demo, str(steps), threads=threads, environment=environment)
            ends[name].append(answer)
    pairs = list(zip(*imports.values(), strict=True))
    return {
        "import": {name: spread([wall for wall, _ in values]) for name, values in imports.items()},
        "import, the device's share": {
            "time": spread([ours[0] - theirs[0] for ours, theirs in pairs]),
            "processor time": spread([ours[1] - theirs[1] for ours, theirs in pairs]),
        },
        "first operator": {name: spread(values) for name, values in first.items()},
        "first step": {name: spread([values[0] for values in runs]) for name, runs in ends.items()},
        f"first {steps} steps": {name: spread([values[1] for values in runs]) for name, runs in ends.items()},
    }


def show(report: dict[str, dict[str, Any]], console: Console) -> None:
    """Print the table."""
    table = Table(title="A cold process")
    for heading in ("what", "of", "median", "range"):
        table.add_column(heading, justify="right" if heading in ("median", "range") else "left", no_wrap=True)
    for what, figures in report.items():
        for name, values in figures.items():
            least, most = duration(values["min"]), duration(values["max"])
            table.add_row(what, name, duration(values["median"]), f"{least} - {most}")
        table.add_section()
    console.print(table)


def main() -> int:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=11, help="for the import and the first operator, each")
    parser.add_argument("--training", type=int, default=3, metavar="PROCESSES", help="for the steps of the demo, each")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if min(args.processes, args.training, args.steps, args.threads) < 1:
        parser.error("--processes, --training, --steps and --threads must be positive")
    report = measure(args.processes, args.training, args.steps, args.threads)
    show(report, Console())
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
