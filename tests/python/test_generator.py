"""Generators and seeds."""

from __future__ import annotations

import pytest
import torch


def draw(**options: object) -> list[float]:
    return torch.rand(8, device="neuron", **options).tolist()


def test_manual_seed_repeats_the_numbers():
    torch.manual_seed(5)
    first = draw()
    second = draw()
    assert first != second
    torch.manual_seed(5)
    assert [draw(), draw()] == [first, second]
    torch.neuron.manual_seed_all(5)
    assert draw() == first


def test_a_generator_of_its_own_leaves_the_default_one_alone():
    torch.manual_seed(5)
    expected = draw()
    torch.manual_seed(5)
    generator = torch.Generator(device="neuron").manual_seed(9)
    assert generator.initial_seed() == 9
    own = draw(generator=generator)
    assert draw() == expected
    assert draw(generator=generator.manual_seed(9)) == own


def test_a_state_is_saved_and_set():
    torch.neuron.manual_seed(1)
    draw()
    state = torch.neuron.get_rng_state()
    expected = draw()
    torch.neuron.set_rng_state(state)
    assert draw() == expected
    clone = torch.Generator(device="neuron")
    clone.set_state(state)
    assert draw(generator=clone) == expected


def test_a_state_of_another_kind_is_refused():
    with pytest.raises(RuntimeError, match="16 bytes"):
        torch.neuron.set_rng_state(torch.get_rng_state())


def test_fork_rng_puts_the_state_back():
    torch.manual_seed(3)
    expected = draw()
    torch.manual_seed(3)
    with torch.random.fork_rng(device_type="neuron"):
        draw()
    assert draw() == expected


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.multinomial(torch.ones(20, device="neuron"), 5),
        lambda: torch.poisson(torch.full((8,), 4.0, device="neuron")),
        lambda: torch.nn.functional.rrelu(torch.full((8,), -1.0, device="neuron"), training=True),
        lambda: torch._standard_gamma(torch.full((8,), 4.0, device="neuron")),
    ],
)
def test_random_operators_of_the_fallback_follow_the_devices_seed(program):
    torch.manual_seed(7)
    host_state = torch.get_rng_state()
    first, second = program().tolist(), program().tolist()
    assert first != second
    assert torch.equal(torch.get_rng_state(), host_state)
    torch.neuron.manual_seed(7)
    assert [program().tolist(), program().tolist()] == [first, second]


def test_a_generator_of_another_device_is_refused():
    with pytest.raises(RuntimeError, match="Expected a 'neuron' device type for generator but found 'cpu'"):
        torch.rand(3, device="neuron", generator=torch.Generator())
