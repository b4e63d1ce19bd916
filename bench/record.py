"""Run the benchmarks of recording (``bench/cpp/torch``) in a process where torch has the neuron device."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

os.environ.setdefault("NEURON_ADAPTIVE_EAGER", "1")

import torch


def main() -> None:
    """Load the library from the build folder named first and give it the other arguments."""
    folder, *arguments = sys.argv[1:]
    torch.ones(1).to("neuron")  # the device is set up by its first use
    library = ctypes.CDLL(str(Path(folder) / "libae_bench_record.so"))
    argv = [argument.encode() for argument in ("record", *arguments)]
    library.ae_bench_record(len(argv), (ctypes.c_char_p * (len(argv) + 1))(*argv, None))


if __name__ == "__main__":
    main()
