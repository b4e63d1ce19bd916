"""Random numbers of the device: seeds and states. Part of ``torch.neuron``."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torch_neuron_eager import _C

_Device = torch.device | str | int


def get_rng_state(device: _Device = "neuron") -> torch.Tensor:
    """Return the default generator's state, a CPU tensor of bytes."""
    return _C.default_generator().get_state()


def set_rng_state(new_state: torch.Tensor, device: _Device = "neuron") -> None:
    """Set the default generator's state to one that get_rng_state returned."""
    _C.default_generator().set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Set the states of all devices."""
    for state in new_states:
        set_rng_state(state)


def manual_seed(seed: int) -> None:
    """Set the seed; ``torch.manual_seed`` does that too."""
    _C.default_generator().manual_seed(int(seed))


manual_seed_all = manual_seed


def seed() -> None:
    """Set the seed to a random number."""
    _C.default_generator().seed()


seed_all = seed


def initial_seed() -> int:
    """Return the seed."""
    return _C.default_generator().initial_seed()
