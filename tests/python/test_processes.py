"""Whole processes: environment variables, reports with source lines, fork, threads and signals."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import textwrap
import threading

import pytest
import torch

from modes import bits, mode, run_script

# Environment ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NEURON_ADAPTIVE_EAGER", "yes"),
        ("NEURON_LAUNCH_BLOCKING", "2"),
        ("NEURON_EAGER_THREADS", "many"),
        ("NEURON_EAGER_THREADS", "0"),
        ("NEURON_FUSION_REPORT", "report.pdf"),
    ],
)
def test_an_unknown_value_of_a_variable_is_an_error_at_first_use(variable: str, value: str) -> None:
    result = run_script(
        """
        import torch
        assert torch.neuron.is_available()
        print("imported")
        try:
            torch.ones(2, device="neuron")
        except (RuntimeError, ValueError) as error:
            print(str(error).splitlines()[0])
        """,
        **{variable: value},
    )
    assert result.returncode == 0, result.stderr
    imported, message = result.stdout.splitlines()[:2]
    assert imported == "imported"
    assert variable in message
    assert value in message


def test_launch_blocking_raises_on_the_operators_own_line() -> None:
    result = run_script(
        """
        import torch
        import torch.nn.functional as F
        ids = torch.tensor([1, 2]).to("neuron") + 8
        table = torch.ones(4, 2).to("neuron")
        try:
            rows = F.embedding(ids, table)
        except IndexError:
            print("here")
        """,
        NEURON_LAUNCH_BLOCKING="1",
        NEURON_ADAPTIVE_EAGER="1",
    )
    assert result.stdout == "here\n", result.stderr


# Report --------------------------------------------------------------------------------------------------------------


def test_the_report_names_the_lines_that_forced_flushes(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train_loop.py"
    script.write_text(
        textwrap.dedent("""
        import torch
        torch.neuron.adaptive_eager(True)
        x = torch.ones(8, device="neuron")
        for i in range(5):
            x = x * 2 + 1
            x.sum().item()
        print(torch.neuron.fusion_report())
        """)
    )
    env = {key: value for key, value in os.environ.items() if not key.startswith("NEURON_")}
    result = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert f"{script.name}:7" in result.stdout, result.stdout


def test_an_error_that_depends_on_data_names_the_line_of_its_operator(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "lookup.py"
    script.write_text(
        textwrap.dedent("""
        import torch
        import torch.nn.functional as F
        torch.neuron.adaptive_eager(True)
        ids = torch.tensor([1, 2]).to("neuron") + 8
        table = torch.ones(4, 2).to("neuron")
        rows = F.embedding(ids, table)
        after = rows * 2
        try:
            print(after.tolist())
        except IndexError as error:
            print(error)
        """)
    )
    env = {key: value for key, value in os.environ.items() if not key.startswith("NEURON_")}
    result = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "index out of range" in result.stdout
    assert f"{script.name}:7" in result.stdout, result.stdout


def test_the_report_at_exit(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "report.json"
    result = run_script(
        "import torch; x = torch.ones(3, device='neuron') * 2 + 1; print(x.sum().item())",
        NEURON_FUSION_REPORT=str(path),
        NEURON_ADAPTIVE_EAGER="1",
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(path.read_text())
    assert report["operators_recorded"] >= 3
    assert report["launches"] >= 1


# Processes and threads -----------------------------------------------------------------------------------------------


def test_a_forked_child_is_told_what_to_do_and_the_parent_goes_on() -> None:
    result = run_script(
        """
        import os, torch
        x = torch.ones(3, device="neuron") + 1
        x.sum().item()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                torch.ones(3, device="neuron")
                text = "no error"
            except RuntimeError as error:
                text = str(error)
            os.write(write, text.encode())
            os._exit(0)
        os.close(write)
        print(os.fdopen(read).read().splitlines()[0])
        assert os.waitpid(child, 0)[1] == 0
        print((x + 1).tolist())
        """,
        NEURON_ADAPTIVE_EAGER="1",
    )
    assert result.returncode == 0, result.stderr
    message, values = result.stdout.splitlines()
    assert "fork" in message
    assert "spawn" in message
    assert values == "[3.0, 3.0, 3.0]"


def test_many_threads_record_at_once() -> None:
    start = torch.linspace(-2, 2, 64)
    errors: list[str] = []

    def work(number: int, device: str) -> torch.Tensor:
        x = start.to(device) + number
        for i in range(50):
            x = (x * 0.5 + i).relu()
            if i % 10 == number:
                x.sum().item()
        return x.cpu()

    def thread(number: int) -> None:
        value = work(number, "neuron")
        if not torch.equal(bits(value), bits(work(number, "cpu"))):
            errors.append(f"thread {number}: {value}")

    with mode("adaptive"):
        threads = [threading.Thread(target=thread, args=(number,)) for number in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert errors == []


def test_a_tensor_made_by_one_thread_is_read_by_another() -> None:
    with mode("adaptive"):
        made: list[torch.Tensor] = []
        maker = threading.Thread(target=lambda: made.append(torch.full((8,), 3.0, device="neuron") * 2))
        maker.start()
        maker.join()
        assert made[0].tolist() == [6.0] * 8


def test_an_interrupt_ends_a_wait() -> None:
    result = run_script(
        """
        import signal, time, torch
        x = torch.ones(2000, 2000, device="neuron", dtype=torch.float64)
        for _ in range(40):
            x = x @ x * 1e-4
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        def interrupt(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        start = time.monotonic()
        try:
            x.sum().item()
            print("finished early")
        except KeyboardInterrupt:
            print("interrupted" if time.monotonic() - start < 2 else "late")
        import os; os._exit(0)
        """,
        NEURON_ADAPTIVE_EAGER="1",
    )
    assert "interrupted" in result.stdout, (result.stdout, result.stderr)
