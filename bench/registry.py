"""The workloads and the contestants that there are."""

from __future__ import annotations

import glob
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

BENCH = Path(__file__).resolve().parent  # also the first place where the scripts' imports are looked for


@dataclass(frozen=True)
class Workload:
    """A file in ``workloads/`` with the arguments of its ``make``."""

    name: str
    module: str
    arguments: dict[str, object]
    piece: bool  # of a program, and not one itself
    compiles: bool  # it means something under torch.compile

    def make(self, device: str, **sizes: object) -> Callable[[], object]:
        """Return the step; `sizes` come in place of the workload's own."""
        return importlib.import_module(f"workloads.{self.module}").make(device, **self.arguments | sizes)


@dataclass(frozen=True)
class Contestant:
    """One way to run a workload, with torch.compile around its step or without."""

    name: str
    device: str
    environment: dict[str, str] = field(default_factory=dict)
    compiled: bool = False


def find_workloads() -> list[Workload]:
    """Return all workloads there are."""
    found = []
    for path in sorted((BENCH / "workloads").glob("[!_]*.py")):
        module = importlib.import_module(f"workloads.{path.stem}")
        piece, compiles = getattr(module, "PIECE", False), getattr(module, "COMPILES", True)
        for name, arguments in getattr(module, "VARIANTS", {path.stem: {}}).items():
            found.append(Workload(name, path.stem, arguments, piece, compiles))
    return found


def find_contestants() -> list[Contestant]:
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
    contestants.append(Contestant("compile", "cpu", cpu, compiled=True))
    return contestants
