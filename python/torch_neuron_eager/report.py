"""What the device did: counters as a dict, and as a text to read."""

from __future__ import annotations

from collections import Counter
from typing import Any

from torch_neuron_eager import _C

__all__ = ["fusion_report", "fusion_stats", "reset_fusion_stats"]

_LINES = 10  # of the most frequent forced flushes, in the report

# Counters since the last reset are the engine's, which only grow, less these.
_before: dict[str, Any] = {}


def _less(now: Any, before: Any) -> Any:
    if isinstance(now, dict):
        before = before or {}
        counts = {key: value - before.get(key, 0) for key, value in now.items()}
        return {key: value for key, value in counts.items() if value}
    return now - (before or 0)


def _counters() -> dict[str, Any]:
    raw = _C.statistics()
    raw["flushes_by_line"] = {(reason, line): count for reason, line, count in raw["flushes_by_line"]}
    return raw


def fusion_stats() -> dict[str, Any]:
    """Return what was recorded, fused and launched since the start or the last reset.

    Returns
    -------
    dict
        ``operators_recorded``, ``operators_flushed``; ``operators_plan_hit`` (flushed through a plan that was known)
        and ``plan_hit_rate``, its share; ``launches`` and ``operators_per_launch``; ``flushes``,
        ``flushes_by_reason`` (name to count) and ``flushes_by_line`` (a list of ``{"reason", "line", "count"}``, the
        most frequent first, forced flushes only); ``kernels_made``, ``plans_made``; ``bytes_not_written`` (results
        that never reached memory); ``fallbacks`` (operators run by the CPU, name to count); ``seconds_recording``
        (in our recorder, estimated from one operator of 64), ``seconds_planning``, ``seconds_executing`` (by the
        stream's worker), ``seconds_waiting`` (for it).
    """
    stats = {key: _less(value, _before.get(key)) for key, value in _counters().items()}
    by_line = sorted(stats["flushes_by_line"].items(), key=lambda item: -item[1])
    stats["flushes_by_line"] = [{"reason": key[0], "line": key[1], "count": count} for key, count in by_line]
    flushed, launches = stats["operators_flushed"], stats["launches"]
    stats["plan_hit_rate"] = stats["operators_plan_hit"] / flushed if flushed else 0.0
    stats["operators_per_launch"] = flushed / launches if launches else 0.0
    return stats


def reset_fusion_stats() -> None:
    """Count from zero from here on."""
    global _before
    _before = _counters()


def _launches() -> list[str]:
    """Return what the largest of the plans flushed last became: its fused launches, and why there are not fewer."""
    plan = max(_C.recent_launches(), key=lambda launches: sum(launch["operators"] for launch in launches), default=[])
    if not plan:
        return []
    operators = sum(launch["operators"] for launch in plan)
    lines = [f"The largest of the last plans: {operators:,} operators in {len(plan):,} launches"]
    for launch in sorted(plan, key=lambda launch: -launch["operators"])[:_LINES]:
        where = ", ".join(dict.fromkeys(launch["lines"][:3])) or "backward"
        lines.append(f"  {launch['operators']:>12,}  {launch['name']}  ({where})")
    lines.append("Why a launch was begun")
    reasons = Counter(launch["why_not_more"] or "the first use of its data" for launch in plan)
    lines += [f"  {count:>12,}  {reason}" for reason, count in reasons.most_common()]
    return lines


def fusion_report() -> str:
    """Return the counters as a text: what was fused, why it was flushed and where, and what ran on the CPU."""
    stats = fusion_stats()
    lines = [
        "Fusion report of the neuron device",
        f"  operators recorded     {stats['operators_recorded']:>12,}",
        f"  launches               {stats['launches']:>12,}   ({stats['operators_per_launch']:.1f} operators each)",
        f"  flushes                {stats['flushes']:>12,}",
        f"  plan hit rate          {stats['plan_hit_rate']:>12.1%}   ({stats['plans_made']:,} plans made)",
        f"  kernels made           {stats['kernels_made']:>12,}",
        f"  bytes not written      {stats['bytes_not_written']:>12,}",
        f"  seconds recording      {stats['seconds_recording']:>12.3f}",
        f"  seconds planning       {stats['seconds_planning']:>12.3f}",
        f"  seconds executing      {stats['seconds_executing']:>12.3f}",
        f"  seconds waiting        {stats['seconds_waiting']:>12.3f}",
    ]
    texts = _C.reason_texts()
    lines.append("Flushes by reason")
    for name, count in sorted(stats["flushes_by_reason"].items(), key=lambda item: -item[1]):
        lines.append(f"  {count:>12,}  {name}: {texts[name]}")
    if stats["flushes_by_line"]:
        lines.append("Where they were forced")
        for entry in stats["flushes_by_line"][:_LINES]:
            lines.append(f"  {entry['count']:>12,}  {entry['line'] or '(no Python line)'}  ({entry['reason']})")
    lines += _launches()
    lines.append("Operators run by the CPU" if stats["fallbacks"] else "No operator was run by the CPU.")
    for name, count in sorted(stats["fallbacks"].items(), key=lambda item: -item[1]):
        lines.append(f"  {count:>12,}  {name}")
    return "\n".join(lines)
