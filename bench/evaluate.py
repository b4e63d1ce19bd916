"""From what contestants measured to medians, ratios and geometric means."""

from __future__ import annotations

import statistics
from typing import Any

OURS = ("adaptive", "unfused")
BASES = ("cpu", "cpu_jemalloc", "compile", "unfused")


def spread(values: list[float]) -> dict[str, float]:
    """Return the median and the range."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def cold_ratio(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any] | None:
    """Return how many times sooner we have made all cold steps; at least that, when the others were stopped before."""
    if not ours["complete"]:
        return None
    return {"ratio": theirs["seconds"] / ours["seconds"], "at_least": not theirs["complete"]}


def compare_losses(results: dict[str, Any]) -> dict[str, Any]:
    """Return how many losses both of our contestants gave, whether their bits are the same, and how far the CPU's are.

    The distance is relative and the largest of all steps; it says nothing where the device draws random numbers.
    """
    losses = {name: result.get("losses") for name, result in results.items()}
    out: dict[str, Any] = {"steps": 0, "identical": None, "from_cpu": None}
    if losses.get("adaptive") and losses.get("unfused"):
        pairs = list(zip(losses["adaptive"], losses["unfused"], strict=False))
        out |= {"steps": len(pairs), "identical": all(ours == theirs for ours, theirs in pairs)}
    if losses.get("adaptive") and losses.get("cpu"):
        pairs = zip(map(float.fromhex, losses["adaptive"]), map(float.fromhex, losses["cpu"]), strict=False)
        out["from_cpu"] = max(abs(ours - theirs) / max(abs(theirs), 1e-30) for ours, theirs in pairs)
    return out


def evaluate(results: dict[str, Any]) -> dict[str, Any]:
    """Add medians, and how many times as fast our contestants are as the others, round by round.

    Parameters
    ----------
    results
        Of a contestant's name: what it measured (``seconds`` of each round, ``peak_bytes``, ``first_step``, ``a_step``;
        ``cold`` and ``losses`` or None), or ``{"error": line}``.
    """
    out: dict[str, Any] = {"contestants": {}, "speedup": {}, "memory_ratio": {}, "first_step": {}, "cold": {}}
    for name, result in results.items():
        out["contestants"][name] = result | (
            {"seconds_per_step": spread(result["seconds"])} if "error" not in result else {}
        )
    out["losses"] = compare_losses(results)
    sound = {name: result for name, result in results.items() if "error" not in result}
    for name in OURS:
        for base in BASES:
            if name == base or not {name, base} <= sound.keys():
                continue
            ours, theirs, pair = sound[name], sound[base], f"{name}/{base}"
            rounds = zip(theirs["seconds"], ours["seconds"], strict=True)
            out["speedup"][pair] = spread([their / our for their, our in rounds])
            out["first_step"][pair] = theirs["first_step"] / ours["first_step"]
            if theirs["peak_bytes"] > 0:
                out["memory_ratio"][pair] = ours["peak_bytes"] / theirs["peak_bytes"]
            if ours["cold"] and theirs["cold"] and (ratio := cold_ratio(ours["cold"], theirs["cold"])):
                out["cold"][pair] = ratio
    return out


def geometric_means(workloads: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the geometric means of each kind of ratio over programs, with the number of those that have it."""
    values: dict[str, dict[str, list[float]]] = {}
    for result in (result for result in workloads.values() if not result["piece"]):
        for kind in ("speedup", "first_step", "cold", "memory_ratio"):
            for pair, ratio in result[kind].items():
                value = ratio if isinstance(ratio, float) else ratio.get("median", ratio.get("ratio"))
                if value > 0:
                    values.setdefault(kind, {}).setdefault(pair, []).append(value)

    def mean(ratios: list[float]) -> dict[str, float]:
        return {"mean": statistics.geometric_mean(ratios), "workloads": len(ratios)}

    return {kind: {pair: mean(ratios) for pair, ratios in pairs.items()} for kind, pairs in values.items()}
