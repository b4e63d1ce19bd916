"""The workloads of ``bench/`` in small: the same losses in every mode, what falls back, and shapes that change."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

from memory import settled_memory
from modes import mode, run_everywhere
from registry import Workload, find_workloads
from torch_neuron_eager import _testing
from workloads import gpt_generate, mlp, training
from workloads.llama import Llama
from workloads.recurrent import LSTM

STEPS = 4
GPT = {"width": 32, "heads": 2, "layers": 2, "context": 16, "batch": 2}
SMALL: dict[str, dict[str, int]] = {
    "accumulation": GPT | {"accumulated": 3},
    "adafactor": {"batch": 8, "width": 16, "layers": 3},
    "gpt_64": GPT,
    "gpt_128": GPT,
    "gpt_384": GPT | {"heads": 4},
    "gpt_generate": GPT | {"prompt": 8, "tokens": 6},
    "gpt_generate_sampled": GPT | {"prompt": 8, "tokens": 6},
    "gru_loop": {"batch": 4, "steps": 6, "inputs": 8, "width": 16},
    "gru_module": {"batch": 4, "steps": 6, "inputs": 8, "width": 16},
    "lion": {"batch": 8, "width": 16, "layers": 3},
    "llama": {"width": 32, "heads": 4, "groups": 2, "layers": 2, "context": 16, "batch": 2, "vocabulary": 64},
    "lstm_loop": {"batch": 4, "steps": 6, "inputs": 8, "width": 16},
    "lstm_module": {"batch": 4, "steps": 6, "inputs": 8, "width": 16},
    "mlp": {"batch": 16, "inputs": 16, "width": 32},
    "particles": {"particles": 32, "substeps": 3},
    "physics": {"points": 32, "edge": 8, "width": 16, "layers": 3},
    "recommender": {"batch": 16, "users": 50, "items": 40, "tags": 20, "width": 8, "hidden": 16},
    "resnet18": {"batch": 2, "image": 16, "width": 8},
    "unet": {"batch": 2, "image": 16, "channels": 16},
    "vae": {"batch": 4, "image": 16, "channels": 4, "code": 4},
    "vit": {"batch": 4, "image": 16, "width": 32, "heads": 2, "layers": 2},
}
PROGRAMS = {workload.name: workload for workload in find_workloads() if not workload.piece}

# Programs that draw random numbers on the device, which has others than the CPU.
RANDOM = {"gpt_64", "gpt_128", "gpt_384", "gpt_generate_sampled", "unet", "vae"}

# The operators that the CPU's fallback runs in each program: exactly these.
FALLBACKS: dict[str, set[str]] = {}

every_program = pytest.mark.parametrize("workload", PROGRAMS.values(), ids=PROGRAMS)


def losses(workload: Workload, device: str, steps: int = STEPS) -> list[object]:
    """What the steps return; nothing is read before the last one has been called, if the program does not read it."""
    step = workload.make(device, **SMALL[workload.name])
    return [step() for _ in range(steps)]


def test_every_program_has_small_sizes():
    assert SMALL.keys() == PROGRAMS.keys()
    assert FALLBACKS.keys() | RANDOM <= PROGRAMS.keys()


@every_program
def test_losses_have_the_same_bits_in_every_mode(workload: Workload):
    results = run_everywhere(lambda device: losses(workload, device), cpu=False)
    assert all(result.isfinite().all() for result in results)
    if workload.name not in RANDOM:
        torch.testing.assert_close(
            results, [torch.as_tensor(loss) for loss in losses(workload, "cpu")], rtol=1e-4, atol=1e-5
        )


@every_program
def test_what_falls_back_is_known(workload: Workload):
    before = torch.neuron.fusion_stats()["fallbacks"]
    with mode("adaptive"):
        losses(workload, "neuron", steps=2)
        torch.neuron.synchronize()
    after = torch.neuron.fusion_stats()["fallbacks"]
    fallen = {name for name, count in after.items() if count > before.get(name, 0)}
    assert fallen == FALLBACKS.get(workload.name, set())


def grown(run: Callable[[int], Tensor], known: Sequence[int], others: Sequence[int]) -> dict[str, int]:
    """Runs the known sizes a few times, then the others twice; returns what that added to counters and memory.

    Each result is read, as a program does that shows its loss. In one that never reads, flushes fall where the window
    is full, anywhere in a step, and what is cut there may need kernels of its own. No cuts are learned either: when
    that happens depends on the machine's load.
    """
    # What other tests left in cycles must not end in the middle: memory, and what a plan keeps, would change.
    gc.collect()
    with _testing.policy(adaptive=True, cuts_when_idle=False), contextlib.ExitStack() as after:
        gc.disable()
        after.callback(gc.enable)
        for size in 3 * list(known):
            run(size).item()
        first, memory = torch.neuron.fusion_stats(), settled_memory()
        for size in others:
            run(size).item()
        # autograd's thread may drop a tensor before or after a flush of this one: then another plan is the exact one.
        plans = []
        for _ in range(3):
            again = torch.neuron.fusion_stats()
            for size in others:
                run(size).item()
            last = torch.neuron.fusion_stats()
            plans.append(last["plans_made"] - again["plans_made"])
        return {
            "kernels": last["kernels_made"] - first["kernels_made"],
            "plans for sizes that came back": min(plans),
            "bytes": settled_memory() - memory,
        }


FLAT = {"kernels": 0, "plans for sizes that came back": 0, "bytes": 0}


def test_a_smaller_last_batch_makes_no_kernel():
    network = mlp.network(inputs=16, width=32, layers=2, classes=4).to("neuron")
    x, labels = torch.randn(32, 16, device="neuron"), torch.arange(32, device="neuron") % 4
    optimizer = torch.optim.Adam(network.parameters())
    count = 32
    step = training(optimizer, lambda: F.cross_entropy(network(x[:count]), labels[:count]))

    def run(size: int) -> Tensor:
        nonlocal count
        count = size
        return step()

    assert grown(run, [32, 20], [32, 32, 11, 32, 27, 13]) == FLAT


def test_a_sequence_length_that_differs_each_step_makes_no_kernel():
    model = Llama(vocabulary=64, width=32, heads=4, groups=2, layers=2).to("neuron")
    ids = torch.randint(64, (2, 40)).to("neuron")
    optimizer = torch.optim.AdamW(model.parameters())
    length = 0

    def loss() -> Tensor:
        return F.cross_entropy(model(ids[:, : length - 1]).flatten(0, 1), ids[:, 1:length].flatten())

    step = training(optimizer, loss)

    def run(size: int) -> Tensor:
        nonlocal length
        length = size
        return step()

    assert grown(run, [16, 23], range(9, 40, 3)) == FLAT


def test_a_loop_of_another_length_makes_no_kernel():
    model = LSTM(8, 16).to("neuron")
    sequence = torch.randn(4, 12, 8).to("neuron")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    length = 0
    step = training(optimizer, lambda: model(sequence[:, :length]).square().mean())

    def run(size: int) -> Tensor:
        nonlocal length
        length = size
        return step()

    assert grown(run, [5, 7], [3, 12, 9]) == FLAT


def test_a_growing_cache_of_keys_makes_no_kernel():
    model = gpt_generate.train.make_model("neuron", dropout=0.0, width=32, heads=2, layers=2, context=64).eval()
    ids = torch.randint(256, (2, 8)).to("neuron")
    with torch.no_grad(), mode("adaptive"):
        logits, cache = gpt_generate.forward(model, ids, [])
        kernels = []
        for _ in range(40):
            logits, cache = gpt_generate.forward(model, gpt_generate.choose(logits, sample=False), cache)
            logits.sum().item()
            kernels.append(torch.neuron.fusion_stats()["kernels_made"])
    assert kernels[2] == kernels[-1]
    assert cache[0][0].shape[2] == 48


def test_generating_again_takes_no_more_memory():
    step = PROGRAMS["gpt_generate"].make("neuron", **GPT | {"prompt": 4, "tokens": 12})
    assert grown(lambda _: step().sum(), [0], range(4)) == FLAT


def test_a_learning_rate_of_each_step_makes_no_plan():
    step = PROGRAMS["accumulation"].make("neuron", **SMALL["accumulation"])
    with _testing.policy(adaptive=True, cuts_when_idle=False):
        for _ in range(4):
            step().item()
        before = torch.neuron.fusion_stats()
        for _ in range(6):
            step().item()
        after = torch.neuron.fusion_stats()
    assert after["plans_made"] == before["plans_made"]
    assert after["kernels_made"] == before["kernels_made"]


def test_gradient_scaling_makes_no_kernel():
    """The scale grows after every second step, and an infinite gradient makes it smaller."""
    network = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 1)).to("neuron")
    x = torch.randn(8, 16).to("neuron")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("neuron", init_scale=4.0, growth_interval=2)
    scales = []

    def run(factor: int) -> Tensor:
        loss = network(x).square().mean() * (float("inf") if factor == 0 else factor)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        return loss

    assert grown(run, [1, 2], [1, 3, 0, 2, 1, 1]) == FLAT
    assert max(scales) > scales[0]
    assert any(after < before for before, after in pairwise(scales))


def test_learning_where_to_cut_comes_to_an_end():
    """Sizes take turns, and the trace of each is cut once the device has waited often enough."""
    network = mlp.network(inputs=16, width=32, layers=3, classes=4).to("neuron")
    x, labels = torch.randn(32, 16, device="neuron"), torch.arange(32, device="neuron") % 4
    optimizer = torch.optim.Adam(network.parameters())
    made = []
    with mode("adaptive"):
        for _ in range(40):
            for size in (32, 20, 32, 7):
                optimizer.zero_grad()
                F.cross_entropy(network(x[:size]), labels[:size]).backward()
                optimizer.step()
                next(network.parameters()).sum().item()
            stats = torch.neuron.fusion_stats()
            made.append((stats["plans_made"], stats["kernels_made"]))
    assert stats["flushes_by_reason"].get("device_idle", 0) > 0
    assert made[-1] == made[-10]
