"""What all Python tests share."""

from __future__ import annotations

import os
import pathlib
import sys

# Tests import each other's helpers by name, in every import mode of pytest.
sys.path.insert(0, str(pathlib.Path(__file__).parent))

# One report at the end of a test process would drown pytest's.
os.environ.pop("NEURON_FUSION_REPORT", None)
