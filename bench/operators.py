"""What arrives at the device's dispatch key in one step of each workload, and what becomes of it.

A dispatch mode sits between autograd and the device and sees each operator. One that has no kernel of the device but is
composed of others in PyTorch is taken apart here, as PyTorch would below. Each of the others is then run by itself, and
the device's counters say what it was:

recorded
    one or more primitives in the trace, which fuse
library
    recorded too, but as a call of a kernel of PyTorch's CPU in canonical pieces
both
    recorded as primitives and such calls
fallback
    run by PyTorch's CPU through the boxed fallback, one at a time
nothing
    a view, or a question that metadata answers (shown with ``--all``)
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

os.environ.pop("NEURON_FUSION_REPORT", None)
os.environ["NEURON_ADAPTIVE_EAGER"] = "1"

import torch
from rich.console import Console
from rich.table import Table
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from registry import Workload, find_workloads
from torch_neuron_eager import _C

WARM_UP_STEPS = 2
PHASES = ("forward", "backward", "optimizer")
KINDS = ("fallback", "library", "both", "recorded", "nothing")
EXPLICIT = (
    torch._C.DispatchKey.CompositeExplicitAutograd,
    torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional,
)

# Of an operator's name: kind and phase to count.
Seen = dict[str, Counter[tuple[str, str]]]


def on_device(values: Any) -> bool:
    """Return whether there is a tensor of the device among nested values."""
    return any(isinstance(value, torch.Tensor) and value.device.type == "neuron" for value in tree_leaves(values))


def composition(operator: torch._ops.OpOverload) -> torch._C.DispatchKey | None:
    """Return the key under which PyTorch composes this operator of others, if the device leaves that to it."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if operator.is_view or has(operator.name(), torch._C.DispatchKey.PrivateUse1):
        return None
    return next((key for key in EXPLICIT if has(operator.name(), key)), None)


class Watch(TorchDispatchMode):
    """Notes every operator on the device, and what was done about it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Seen = {}
        self._optimizing = False

    @contextlib.contextmanager
    def watching(self) -> Iterator[Seen]:
        """Watch what happens inside; operators that optimizers call count as such."""

        def mark(optimizing: bool) -> Callable[..., None]:
            def hook(*_: object) -> None:
                self._optimizing = optimizing

            return hook

        hooks = [register_optimizer_step_pre_hook(mark(True)), register_optimizer_step_post_hook(mark(False))]
        try:
            with self:
                yield self.seen
        finally:
            for hook in hooks:
                hook.remove()

    def __torch_dispatch__(
        self, func: torch._ops.OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operator by itself and note what it was."""
        kwargs = kwargs or {}
        if (key := composition(func)) is not None and on_device((args, kwargs)):
            with self:
                return func._op_dk(key, *args, **kwargs)
        torch.neuron.synchronize()
        before = torch.neuron.fusion_stats()
        result = func(*args, **kwargs)
        torch.neuron.synchronize()
        after = torch.neuron.fusion_stats()
        if on_device((args, kwargs, result)):
            self._note(func, before, after)
        return result

    def _note(self, func: torch._ops.OpOverload, before: dict[str, Any], after: dict[str, Any]) -> None:
        phase = "backward" if torch._C._current_graph_task_id() != -1 else PHASES[2 * self._optimizing]
        names = Counter(after["fallbacks"])
        names.subtract(before["fallbacks"])
        names = +names
        kind = "nothing"
        if after["operators_recorded"] > before["operators_recorded"]:
            # It was flushed alone, so the last plan is its own; a library launch has no segments.
            library = {launch["segments"] == 0 for launch in _C.recent_launches()[0]}
            kind = "both" if len(library) > 1 else "library" if True in library else "recorded"
        own = func.name() if kind != "nothing" or not names else None
        for name, count in names.items():
            self.seen.setdefault(name, Counter())["fallback", phase] += count
        if own is not None and own not in names:
            self.seen.setdefault(own, Counter())[kind, phase] += 1


def operators(workload: Workload, **sizes: object) -> Seen:
    """Return what arrives in one step of a workload, after some steps that nobody watches."""
    step = workload.make("neuron", **sizes)
    for _ in range(WARM_UP_STEPS):
        step()
    torch.neuron.synchronize()
    with Watch().watching() as seen:
        step()
    return seen


def show(name: str, seen: Seen, everything: bool, console: Console) -> None:
    """Print one workload's table, fallbacks first."""
    totals = Counter(dict.fromkeys(KINDS, 0))
    rows = []
    for operator, counts in seen.items():
        for kind in KINDS:
            phases = [counts[kind, phase] for phase in PHASES]
            if sum(phases):
                totals[kind] += sum(phases)
                rows.append((KINDS.index(kind), -sum(phases), operator, kind, phases))
    title = f"{name}: " + ", ".join(f"{totals[kind]} {kind}" for kind in KINDS)
    table = Table(title=title, title_justify="left")
    table.add_column("operator", no_wrap=True)
    for phase in PHASES:
        table.add_column(phase, justify="right")
    table.add_column("what it is")
    for _, _, operator, kind, phases in sorted(rows):
        if everything or kind != "nothing":
            table.add_row(operator, *(str(count or "") for count in phases), kind)
    console.print(table)


def summarise(found: dict[str, Seen], console: Console) -> None:
    """Print every fallback that is left, with the workloads that meet it."""
    where: dict[str, list[str]] = {}
    for name, seen in found.items():
        for operator, counts in seen.items():
            if count := sum(counts["fallback", phase] for phase in PHASES):
                where.setdefault(operator, []).append(f"{name} {count}")
    console.print(f"{len(where)} operators fall back" if where else "No operator falls back.")
    for operator, workloads in sorted(where.items(), key=lambda item: -len(item[1])):
        console.print(f"  {operator}: {', '.join(workloads)}", highlight=False)


def main() -> int:
    """Print the tables of the workloads asked for."""
    workloads = {workload.name: workload for workload in find_workloads() if not workload.piece}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", metavar="NAME", default=list(workloads), help=", ".join(workloads))
    parser.add_argument("--all", action="store_true", help="views and questions about metadata too")
    args = parser.parse_args()
    if unknown := set(args.workloads) - set(workloads):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(workloads)}")
    console = Console() if sys.stdout.isatty() else Console(width=140)
    found: dict[str, Seen] = {}
    for name in args.workloads:
        found[name] = operators(workloads[name])
        show(name, found[name], args.all, console)
    summarise(found, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
