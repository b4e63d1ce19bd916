"""The device as programs see it: torch.neuron, torch.accelerator, streams, the environment, processes and threads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, without our variables but those given."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("NEURON_")}
    return subprocess.run(
        [sys.executable, "-c", code], env=clean | environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_import_torch_alone_finds_the_device_and_does_not_start_it():
    result = run_python("import torch; print(torch.neuron.is_available(), torch.neuron.is_initialized())")
    assert result.stdout.split() == ["True", "False"]
    assert result.stderr == ""


def test_a_cpu_program_does_not_start_the_device():
    result = run_python("import torch; torch.manual_seed(1); torch.randn(9) + 1; print(torch.neuron.is_initialized())")
    assert result.stdout.split() == ["False"]


def test_a_torch_of_another_version_gives_a_message_and_import_torch_still_works():
    code = (
        "import torch, torch_neuron_eager as e\n"
        "e._TORCH = '2.12.'; e._done = False; e._autoload(); print(torch.ones(2))"
    )
    result = run_python(code)
    assert result.returncode == 0
    assert "built for torch 2.12.*" in result.stderr
    assert "tensor([1., 1.])" in result.stdout


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEURON_ADAPTIVE_EAGER", "yes"),
        ("NEURON_LAUNCH_BLOCKING", "2"),
        ("NEURON_EAGER_THREADS", "0"),
        ("NEURON_EAGER_WINDOW", "many"),
        ("NEURON_EAGER_KERNELS", "fast"),
        ("NEURON_EAGER_FLUSH_PERIOD", "-1"),
        ("NEURON_FUSION_REPORT", "report.pdf"),
    ],
)
def test_an_unknown_value_in_the_environment_is_an_error_at_first_use(name: str, value: str):
    code = "import torch; print('imported', flush=True); torch.zeros(1, device='neuron')"
    result = run_python(code, **{name: value})
    assert result.stdout.split() == ["imported"]
    assert f"ValueError: [neuron] {name} is '{value}'" in result.stderr


def test_the_environment_sets_the_policy():
    code = "import torch; torch.zeros(1, device='neuron'); from torch_neuron_eager import _C; print(_C.settings())"
    result = run_python(code, NEURON_ADAPTIVE_EAGER="1", NEURON_EAGER_WINDOW="17", NEURON_EAGER_FLUSH_PERIOD="3")
    assert "'adaptive': True, 'window': 17" in result.stdout
    assert "'period': 3" in result.stdout


def test_launch_blocking_runs_unfused_and_leaves_nothing_pending():
    code = (
        "import torch; x = torch.ones(4, device='neuron') + 1; from torch_neuron_eager import _C\n"
        "print(_C.pending(), _C.settings()['adaptive'])"
    )
    result = run_python(code, NEURON_ADAPTIVE_EAGER="1", NEURON_LAUNCH_BLOCKING="1")
    assert result.stdout.split() == ["0", "False"]


def test_the_report_is_written_at_exit(tmp_path):
    code = "import torch; print((torch.ones(4, device='neuron') * 3).sum().item())"
    assert "Fusion report" in run_python(code, NEURON_FUSION_REPORT="1").stderr
    path = tmp_path / "report.json"
    assert run_python(code, NEURON_FUSION_REPORT=str(path)).stderr == ""
    assert json.loads(path.read_text())["operators_recorded"] > 0


def test_a_forked_child_is_told_to_spawn_instead():
    code = (
        "import os, torch\nx = torch.ones(4, device='neuron')\n"
        "if os.fork() == 0:\n"
        "    try: torch.ones(4, device='neuron')\n"
        "    except RuntimeError as error: print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()"
    )
    assert "'spawn'" in run_python(code).stdout


def test_a_signal_interrupts_a_wait():
    matrix = torch.randn(2500, 2500, device="neuron")

    def raise_interrupt(*_: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, raise_interrupt)
    try:
        for _ in range(20):
            matrix = matrix @ matrix * 1e-3
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        start = time.perf_counter()
        with pytest.raises(InterruptedError):
            torch.neuron.synchronize()
        assert time.perf_counter() - start < 1.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        torch.neuron.synchronize()


def test_two_threads_one_asking_for_addresses_do_not_deadlock():
    """Case 35, for two seconds."""
    end = time.monotonic() + 2
    rounds = [0, 0]

    def ask() -> None:
        x = torch.ones(64, device="neuron")
        while time.monotonic() < end:
            (x + 1).data_ptr()
            rounds[0] += 1

    def flush() -> None:
        x = torch.ones(64, device="neuron")
        while time.monotonic() < end:
            for _ in range(20):
                storage = (x * 2).untyped_storage()
                del storage
            torch.neuron.synchronize()
            rounds[1] += 1

    threads = [threading.Thread(target=target, daemon=True) for target in (ask, flush)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)
    assert min(rounds) > 10


def test_accelerator_knows_the_device():
    assert torch.accelerator.current_accelerator() == torch.device("neuron")
    assert torch.accelerator.device_count() == 1
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.synchronize()


def test_there_is_one_device():
    with pytest.raises(RuntimeError, match="there is one device"):
        torch.zeros(1, device="neuron:1")
    with pytest.raises(RuntimeError, match="there is one device"):
        torch.neuron.set_device(3)
    with torch.neuron.device(0):
        assert torch.neuron.current_device() == 0


def test_events_are_in_stream_order_and_measure_time():
    first, second = torch.neuron.Event(enable_timing=True), torch.neuron.Event(enable_timing=True)
    first.record()
    torch.ones(1000, device="neuron").sum()
    second.record()
    second.synchronize()
    assert first.query()
    assert first.elapsed_time(second) > 0
    stream = torch.neuron.Stream()
    stream.synchronize()
    assert stream.query()


def test_adaptive_eager_switches_and_switches_back():
    from torch_neuron_eager import _C

    torch.neuron.init()
    before = _C.settings()["adaptive"]
    with torch.neuron.adaptive_eager(not before):
        assert _C.settings()["adaptive"] is not before
    assert _C.settings()["adaptive"] is before


def test_adaptive_mode_keeps_operators_until_they_are_needed():
    from torch_neuron_eager import _testing

    with torch.neuron.adaptive_eager(True):
        torch.neuron.synchronize()
        x = torch.ones(8, device="neuron") * 2
        assert _testing.pending() == 2
        assert x.tolist() == [2.0] * 8
        assert _testing.pending() == 0


def test_statistics_count_from_the_last_reset():
    with torch.neuron.adaptive_eager(True):
        torch.neuron.synchronize()
        torch.neuron.reset_fusion_stats()
        assert torch.neuron.fusion_stats()["operators_recorded"] == 0
        x = torch.ones(8, device="neuron")
        x.add_(1)
        assert x.sum().item() == 16
        stats = torch.neuron.fusion_stats()
    assert stats["operators_recorded"] == 3
    assert stats["operators_flushed"] == 3
    assert stats["flushes_by_reason"] == {"value_read": 1}
    assert stats["operators_per_launch"] == 3 / stats["launches"]
    assert "operators recorded" in torch.neuron.fusion_report()


def test_the_report_names_the_line_that_forced_a_flush():
    with torch.neuron.adaptive_eager(True):
        torch.neuron.reset_fusion_stats()
        (torch.ones(8, device="neuron") * 5).sum().item()
        lines = [entry["line"] for entry in torch.neuron.fusion_stats()["flushes_by_line"]]
    assert any(line.startswith(__file__ + ":") for line in lines)


def test_a_module_moves_to_the_device_and_trains():
    model = torch.nn.Linear(3, 1).to("neuron")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(4, 3, device="neuron")
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert model.weight.grad.device.type == "neuron"


def test_backward_accumulates_gradients():
    weight = torch.zeros(3, device="neuron", requires_grad=True)
    (weight * 2).sum().backward()
    (weight * 3).sum().backward()
    assert weight.grad.tolist() == [5.0] * 3


def test_writing_to_a_leaf_before_backward_raises_the_version_error():
    weight = torch.ones(3, device="neuron", requires_grad=True)
    loss = (weight * weight).sum()
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_autocast_region_runs():
    x = torch.ones(2, 2, device="neuron")
    with torch.autocast("neuron", dtype=torch.bfloat16):
        assert (x + x).tolist() == [[2.0, 2.0], [2.0, 2.0]]
