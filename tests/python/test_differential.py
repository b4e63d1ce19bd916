"""Random programs give the same bits however their traces are cut and on any number of threads, and the CPU's values.

The operators come from the device's registrations: one without a rule for its arguments, or one that no program calls,
fails. `programs.py` runs many more programs from the command line.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
import sys

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import program_generator
import program_runner
import programs
from operator_rules import NOT_DRAWN, base_of, rule_of

NAMES = program_runner.registered()


def test_every_registered_operator_has_a_rule() -> None:
    assert len(NAMES) > 300, "the registrations were not found"
    assert [name for name in NAMES if rule_of(name) is None] == []


def test_what_is_not_drawn_is_registered() -> None:
    everything = {
        base_of(n)
        for n in torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
        if n.startswith("aten::")
    }
    assert everything >= NOT_DRAWN


@pytest.mark.parametrize("name", NAMES)
def test_each_registered_operator(name: str) -> None:
    g = program_generator.draw_for(name, random.Random(name))
    assert name in g.drawn
    program_runner.check_and_explain(g.program)


# The program itself is made short when it fails (program_runner.minimize): that keeps its lines whole.
@settings(
    max_examples=80, derandomize=True, deadline=None, phases=[Phase.generate], database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)  # fmt: skip
@given(st.randoms(use_true_random=False))
def test_random_programs(source: random.Random) -> None:
    program_runner.check_and_explain(program_generator.draw_program(source, NAMES, length=14).program)


@pytest.mark.parametrize("adaptive", ["0", "1"])
def test_threads_and_kinds_of_kernels_give_the_same_bits(adaptive: str, tmp_path: pathlib.Path) -> None:
    texts = []
    for i in range(12):
        source = random.Random(f"threads {i}")
        g = program_generator.draw_program(source, NAMES, length=10, large=i % 4 != 3)
        texts.append(program_runner.script(g.program))
    file = tmp_path / "programs.json"
    file.write_text(json.dumps(texts))
    digests = {}
    for threads, kernels in (("1", "tile"), ("2", "tile"), ("2", "native")):
        env = os.environ | {
            "NEURON_EAGER_THREADS": threads,
            "NEURON_EAGER_KERNELS": kernels,
            "NEURON_ADAPTIVE_EAGER": adaptive,
        }
        result = subprocess.run(
            [sys.executable, programs.__file__, "--digest", str(file)],
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert result.returncode == 0, result.stderr
        digests[threads, kernels] = json.loads(result.stdout)
    different = [text for text, *found in zip(texts, *digests.values(), strict=True) if len(set(found)) > 1]
    assert not different, f"programs whose results depend on {list(digests)}:\n{different[0]}"


def test_a_planted_difference_is_found_and_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    real = program_runner.run

    def wrong(program: program_runner.Program, device: str, seed: int = 0) -> program_runner.Results:
        seen, variables = real(program, device, seed)
        if any("aten.mul.Tensor" in line.text for line in program) and program_runner._C.settings()["period"] == 3:
            variables = {name: (form, value + 1) for name, (form, value) in variables.items()}
        return seen, variables

    monkeypatch.setattr(program_runner, "run", wrong)
    g = program_generator.draw_program(random.Random(5), ["aten::add.Tensor", "aten::sub.Tensor"], length=8)
    g.line(f"aten.mul.Tensor({g.fresh((2,), torch.float32)}, 2)")
    with pytest.raises(AssertionError) as error:
        program_runner.check_and_explain(g.program)
    assert "flush every 3 against unfused" in str(error.value)
    assert len(str(error.value).split("FILE):\n")[1].splitlines()) == 2
