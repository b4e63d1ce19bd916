"""The tables and the picture of ``compare.py``."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

PAIRS = ("adaptive/cpu", "adaptive/cpu_jemalloc", "adaptive/compile", "unfused/cpu")
COLORS = {"adaptive": "#d1495b", "unfused": "#edae49", "cpu_jemalloc": "#8d96a3", "compile": "#00798c"}
LABELS = {"cpu_jemalloc": "torch CPU, jemalloc", "compile": "torch.compile"}


def duration(seconds: float) -> str:
    """Return seconds in a unit that fits."""
    size = abs(seconds)
    if size >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e6:.0f} us" if size < 1e-3 else f"{seconds * 1e3:.{1 if size < 0.1 else 0}f} ms"


def _rows(table: Table, report: dict[str, Any], cells: Callable[[dict[str, Any]], Iterable[str]]) -> None:
    for workload, result in report["workloads"].items():
        table.add_row(workload, *cells(result))


def _table(title: str, headings: Iterable[str], caption: str | None = None) -> Table:
    table = Table(title=title, caption=caption)
    table.add_column("workload", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _pairs(report: dict[str, Any], kind: str) -> list[str]:
    return [pair for pair in PAIRS if any(pair in result[kind] for result in report["workloads"].values())]


def _of(result: dict[str, Any], name: str, text: Callable[[dict[str, Any]], str]) -> str:
    """Return a contestant's figure, if it has one."""
    figures = result["contestants"].get(name)
    if figures is None or "error" in figures:
        return "-" if figures is None else "refused" if name == "compile" else "failed"
    return text(figures)


def _means(table: Table, report: dict[str, Any], before: int, columns: list[tuple[str, str]]) -> None:
    means = report["geometric_means"]
    cells = [means.get(kind, {}).get(pair) for kind, pair in columns]
    table.add_section()
    texts = [f"{cell['mean']:.2f}\n(of {cell['workloads']})" if cell else "-" for cell in cells]
    table.add_row("geometric mean", *[""] * before, *texts)


def show_speed(report: dict[str, Any], names: list[str], console: Console) -> None:
    """Print the time of a step and the ratios."""
    settings, pairs = report["settings"], _pairs(report, "speedup")
    table = _table(
        f"Median time of a step; {settings['threads']} threads, {settings['rounds']} rounds",
        (*names, *(pair.replace("/", "\n/") for pair in pairs)),
        "A/B: how many times as fast A is as B, median and range over rounds. Means leave out pieces of programs.",
    )

    def ratio(figures: dict[str, float] | None) -> str:
        return f"{figures['median']:.2f}\n({figures['min']:.2f}-{figures['max']:.2f})" if figures else "-"

    _rows(
        table,
        report,
        lambda result: [
            *(_of(result, name, lambda figures: duration(figures["seconds_per_step"]["median"])) for name in names),
            *(ratio(result["speedup"].get(pair)) for pair in pairs),
        ],
    )
    _means(table, report, len(names), [("speedup", pair) for pair in pairs])
    console.print(table)


def show_beginning(report: dict[str, Any], names: list[str], console: Console) -> None:
    """Print what a cold process takes, import not counted."""
    steps = report["settings"]["cold_steps"]
    kind, title = "first_step", "A cold process, from torch imported to the end of step 1"
    if steps:
        kind, title = "cold", f"{title} and, below, of step {steps}; ratios are of the latter"
    pairs = _pairs(report, kind)
    headings = (*names, *(pair.replace("/", "\n/") for pair in pairs))
    table = _table(title, headings, "> : stopped at the limit, before the last step" if steps else None)

    def beginning(figures: dict[str, Any]) -> str:
        first = duration(figures["first_step"])
        if not steps:
            return first
        return f"{first}\n{'' if figures['cold']['complete'] else '> '}{duration(figures['cold']['seconds'])}"

    def ratio(entry: dict[str, Any] | float | None) -> str:
        if isinstance(entry, dict):
            return f"{'> ' if entry['at_least'] else ''}{entry['ratio']:.2f}"
        return "-" if entry is None else f"{entry:.2f}"

    _rows(
        table,
        report,
        lambda result: [
            *(_of(result, name, beginning) for name in names),
            *(ratio(result[kind].get(pair)) for pair in pairs),
        ],
    )
    _means(table, report, len(names), [(kind, pair) for pair in pairs])
    console.print(table)


def show_work(report: dict[str, Any], names: list[str], console: Console) -> None:
    """Print operators and launches a step, and the peaks of memory."""
    ours = [name for name in ("adaptive", "unfused") if name in names]
    pairs = [pair for pair in _pairs(report, "memory_ratio") if pair.endswith("/cpu")]
    headings = [f"{name}\n{what}" for name in ours for what in ("launches", "fallbacks")]
    headings += ["losses like\nunfused", "losses\nfrom cpu"]
    headings += [f"{name}\npeak" for name in names] + [f"{pair}\npeak".replace("/", "\n/") for pair in pairs]
    table = _table(
        "Launches and fallbacks a step; losses of the first steps; peak memory over what the process had before",
        headings,
    )

    def losses(figures: dict[str, Any]) -> tuple[str, str]:
        same, distance = figures["identical"], figures["from_cpu"]
        bits = "-" if same is None else f"{figures['steps']} same" if same else "DIFFERENT"
        return bits, "-" if distance is None else f"{distance:.0e}"

    _rows(
        table,
        report,
        lambda result: [
            *(
                _of(result, name, lambda figures, key=key: f"{figures['a_step'][key]:.0f}")
                for name in ours
                for key in ("launches", "fallbacks")
            ),
            *losses(result["losses"]),
            *(_of(result, name, lambda figures: f"{figures['peak_bytes'] / 2**20:.0f} MiB") for name in names),
            *(f"{result['memory_ratio'][pair]:.2f}" if pair in result["memory_ratio"] else "-" for pair in pairs),
        ],
    )
    _means(table, report, 2 * len(ours) + 2 + len(names), [("memory_ratio", pair) for pair in pairs])
    console.print(table)


def show(report: dict[str, Any], names: list[str], console: Console) -> None:
    """Print everything."""
    show_speed(report, names, console)
    show_beginning(report, names, console)
    show_work(report, names, console)
    for workload, result in report["workloads"].items():
        for name, figures in result["contestants"].items():
            if "error" in figures:
                console.print(f"{workload}: {name}: {figures['error']}", style="red", markup=False, highlight=False)


def _steady(result: dict[str, Any], name: str) -> float | None:
    figures, base = result["contestants"].get(name, {}), result["contestants"].get("cpu", {})
    if "seconds_per_step" not in figures or "seconds_per_step" not in base:
        return None
    return base["seconds_per_step"]["median"] / figures["seconds_per_step"]["median"]


def _cold(result: dict[str, Any], name: str) -> float | None:
    figures, base = (result["contestants"].get(key, {}).get("cold") for key in (name, "cpu"))
    if not figures or not base or not figures["complete"] or not base["complete"]:
        return None
    return base["seconds"] / figures["seconds"]


def _rows_of_plot(report: dict[str, Any], names: list[str], value: Callable[..., float | None]) -> dict[str, list[Any]]:
    """Return each contestant's ratios: all workloads', then the geometric mean over the programs that have one."""
    rows: dict[str, list[float | None]] = {}
    for name in names:
        rows[name] = [value(result, name) for result in report["workloads"].values()]
        programs = [value(result, name) for result in report["workloads"].values() if not result["piece"]]
        known = [ratio for ratio in programs if ratio is not None]
        rows[name].append(statistics.geometric_mean(known) if known else None)
    return rows


def plot(report: dict[str, Any], names: list[str], path: Path) -> None:
    """Draw how many times as fast as torch CPU eager each contestant is, and the cold steps if they were measured."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = [("a step, times as fast as torch CPU eager", _steady)]
    if steps := report["settings"]["cold_steps"]:
        panels.append((f"the first {steps} steps of a process, times as fast as torch CPU eager", _cold))
    shown = [name for name in names if name != "cpu"]
    labels = [*report["workloads"], "geometric mean"]
    size = (5 * len(panels) + 2, 1.2 + 0.36 * len(labels))
    figure, axes = pyplot.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False, layout="constrained")
    ticks = [2**i for i in range(-4, 8)]
    height = 0.8 / max(1, len(shown))
    for ax, (title, value) in zip(axes[0], panels, strict=True):
        for i, (name, ratios) in enumerate(_rows_of_plot(report, shown, value).items()):
            drawn = [(row + i * height - 0.4, ratio - 1) for row, ratio in enumerate(ratios) if ratio is not None]
            places, widths = [place for place, _ in drawn], [width for _, width in drawn]
            label = LABELS.get(name, name)
            ax.barh(places, widths, height, left=1, align="edge", color=COLORS[name], label=label)
        ax.axvline(1, color="black", linewidth=0.8)
        ax.set(xscale="log", xlabel=title)
        limits = ax.get_xlim()
        ax.set_xticks(ticks, labels=[f"1/{round(1 / tick)}" if tick < 1 else str(tick) for tick in ticks])
        ax.set_xlim(limits)
        ax.minorticks_off()
        ax.grid(axis="x", alpha=0.3)
    axes[0][0].set_yticks(range(len(labels)), labels=labels)
    axes[0][0].invert_yaxis()
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=max(1, len(shown)))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
