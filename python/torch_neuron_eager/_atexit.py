"""What happens when the process ends: the fusion report, and no launch left running."""

from __future__ import annotations

import atexit
import html
import json
import os
import sys
from pathlib import Path

from torch_neuron_eager import _C, report


def register() -> None:
    """Arrange for what happens at exit."""
    atexit.register(_C.shutdown)
    if os.environ.get("NEURON_FUSION_REPORT", "0") not in ("", "0"):
        atexit.register(write_report, os.environ["NEURON_FUSION_REPORT"])


def write_report(target: str) -> None:
    """Write the fusion report of a process that used the device.

    Parameters
    ----------
    target
        ``"1"`` for standard error, else a path whose ending chooses the format (.txt, .json or .html).
    """
    if not _C.is_initialized():
        return
    text = report.fusion_report()
    if target == "1":
        print(text, file=sys.stderr)
        return
    path = Path(target)
    if path.suffix == ".json":
        text = json.dumps(report.fusion_stats(), indent=2)
    elif path.suffix == ".html":
        text = f"<!DOCTYPE html><title>Fusion report</title><pre>{html.escape(text)}</pre>"
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        print(f"[neuron] the fusion report was not written: {error}", file=sys.stderr)
