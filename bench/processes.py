"""Contestants as processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from typing import Any

from registry import BENCH, Contestant, Workload


class ContestantFailed(RuntimeError):
    """A contestant cannot go on; the message is one line, or the last words of its process."""


class Process:
    """A running contestant. It has imported torch, and waits, when it has been made."""

    def __init__(self, contestant: Contestant, workload: Workload, threads: int, patience: float) -> None:
        self.contestant = contestant
        self._patience = patience
        # What torch.compile made before is not there for it to find.
        self._cache = tempfile.TemporaryDirectory()
        environment = os.environ | dict.fromkeys(
            ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NEURON_EAGER_THREADS"), str(threads)
        )
        environment["TORCHINDUCTOR_CACHE_DIR"] = self._cache.name
        environment.pop("NEURON_FUSION_REPORT", None)
        reader, writer = os.pipe()
        command = [sys.executable, str(BENCH / "contestant.py"), "--workload", workload.module]
        command += ["--arguments", json.dumps(workload.arguments), "--device", contestant.device]
        command += ["--report-to", str(writer), *(["--compile"] if contestant.compiled else [])]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command,
            env=environment | contestant.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=[writer],
            text=True,
        )
        os.close(writer)
        self._reports = os.fdopen(reader)

    def ready(self) -> None:
        """Wait until the process has imported what it needs."""
        self._answer()

    def ask(self, **command: object) -> dict[str, Any]:
        """Give the process a command and return its answer."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # there is no answer then
            print(json.dumps(command), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        if not select.select([self._reports], [], [], self._patience)[0]:
            self._process.kill()
            raise ContestantFailed(f"{self.contestant.name} gave no answer within {self._patience:.0f} s")
        line = self._reports.readline()
        if not line:
            code = self._process.wait()
            self._errors.seek(0)
            words = self._errors.read().strip().splitlines()[-6:]
            raise ContestantFailed(f"{self.contestant.name} ended with code {code}:\n" + "\n".join(words))
        answer = json.loads(line)
        if "error" in answer:
            raise ContestantFailed(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended before it had read its last command
            self._process.stdin.close()
        self._reports.close()
        self._process.wait()
        self._errors.close()
        self._cache.cleanup()
