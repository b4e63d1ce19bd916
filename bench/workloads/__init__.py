"""The workloads of ``compare.py``, one file each.

A workload has ``make(device) -> step``; with ``VARIANTS``, a dict of names to keyword arguments of ``make``, it is
several. A step does its work and returns what must stay alive until the device has finished.
"""

import sys
from pathlib import Path

# The demo's folder is found without importing the package, which the contestants on PyTorch's CPU must never see.
sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "torch_neuron_eager"))


class Seconds(float):
    """What a step returns that takes its own time, instead of being timed from its start to the device's end."""
