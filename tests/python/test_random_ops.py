"""Random operators: what depends on the seed, and the distributions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from opinfo import check_threads, same_error

COUNT = 200_000
FILLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "uniform": lambda t: t.uniform_(-1, 3), "normal": lambda t: t.normal_(2, 0.5), "random": lambda t: t.random_(10),
    "exponential": lambda t: t.exponential_(2), "bernoulli": lambda t: t.bernoulli_(0.3),
}  # fmt: skip


@pytest.mark.parametrize("name", FILLS)
def test_one_seed_gives_one_sequence(name: str) -> None:
    fill = FILLS[name]
    draws = []
    for _ in range(2):
        torch.manual_seed(11)
        first, second = fill(torch.empty(100, device="neuron")), fill(torch.empty(100, device="neuron"))
        draws.append((first.cpu(), second.cpu()))
    assert torch.equal(draws[0][0], draws[1][0])
    assert torch.equal(draws[0][1], draws[1][1])
    assert not torch.equal(draws[0][0], draws[0][1])


@pytest.mark.parametrize("name", FILLS)
def test_layout_does_not_change_which_number_an_element_gets(name: str) -> None:
    torch.manual_seed(5)
    plain = FILLS[name](torch.empty(6, 7, device="neuron"))
    torch.manual_seed(5)
    turned = FILLS[name](torch.empty(7, 6, device="neuron").t())
    assert torch.equal(plain.cpu(), turned.cpu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_distributions_have_their_moments(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    # Mean and standard deviation of each; five standard errors of the mean, and rounding of half types.
    expected = {"uniform": (1.0, 4 / 12**0.5), "normal": (2.0, 0.5), "random": (4.5, (99 / 12) ** 0.5),
                "exponential": (0.5, 0.5), "bernoulli": (0.3, 0.21**0.5)}  # fmt: skip
    for name, (mean, deviation) in expected.items():
        drawn = FILLS[name](torch.empty(COUNT, dtype=dtype, device="neuron")).cpu().double()
        assert abs(drawn.mean().item() - mean) < 5 * deviation / COUNT**0.5 + 2e-3, name
        assert abs(drawn.std().item() / deviation - 1) < 0.02, name


def test_ranges_are_kept() -> None:
    torch.manual_seed(2)
    for dtype in (torch.float32, torch.bfloat16):
        uniform = torch.empty(COUNT, dtype=dtype, device="neuron").uniform_().cpu()
        assert uniform.min() >= 0
        assert uniform.max() < 1
    assert torch.empty(COUNT, device="neuron").exponential_().cpu().min() > 0
    integers = torch.empty(COUNT, dtype=torch.int64, device="neuron").random_(-3, 4).cpu()
    assert sorted(set(integers.tolist())) == [-3, -2, -1, 0, 1, 2, 3]
    assert torch.empty(COUNT, dtype=torch.uint8, device="neuron").random_().cpu().unique().numel() == 256
    wide = torch.empty(1000, dtype=torch.int64, device="neuron").random_().cpu()
    assert wide.min() >= 0
    assert (wide > 2**33).any()


def test_bernoulli_of_a_tensor_of_probabilities() -> None:
    torch.manual_seed(3)
    p = torch.tensor([0.0, 0.25, 1.0]).to("neuron")
    drawn = torch.bernoulli(p.expand(30_000, 3)).cpu()
    assert drawn.dtype == torch.float32
    assert drawn.mean(0)[0] == 0
    assert drawn.mean(0)[2] == 1
    assert abs(drawn.mean(0)[1].item() - 0.25) < 0.02


def test_dropout_keeps_and_scales() -> None:
    torch.manual_seed(4)
    x = torch.ones(300, 400, device="neuron", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.2)
    y.sum().backward()
    kept = y.detach().cpu() != 0
    assert abs(kept.float().mean().item() - 0.8) < 0.01
    torch.testing.assert_close(y.detach().cpu(), kept.float() * 1.25)
    assert x.grad is not None
    torch.testing.assert_close(x.grad.cpu(), kept.float() * 1.25)


def test_dropout_takes_the_strides_of_its_input() -> None:
    x = torch.randn(3, 4, 5).permute(2, 0, 1)
    expected, mask = torch.native_dropout(x, 0.5, True)
    out, neuron_mask = torch.native_dropout(x.to("neuron"), 0.5, True)
    assert out.stride() == expected.stride()
    assert neuron_mask.stride() == mask.stride()


def test_a_generator_of_its_own_leaves_the_default_one_alone() -> None:
    torch.manual_seed(6)
    expected = torch.rand(10, device="neuron").cpu()
    torch.manual_seed(6)
    own = torch.Generator(device="neuron").manual_seed(6)
    first = torch.rand(10, device="neuron", generator=own).cpu()
    assert torch.equal(torch.rand(10, device="neuron").cpu(), expected)
    assert torch.equal(first, expected)


def test_invalid_parameters_raise_what_the_cpu_raises() -> None:
    same_error(lambda d: torch.empty(3, device=d).uniform_(2, 1))
    same_error(lambda d: torch.empty(3, device=d).normal_(0, -1))
    same_error(lambda d: torch.empty(3, device=d).random_(5, 5))
    same_error(lambda d: torch.empty(3, device=d).bernoulli_(1.5))
    same_error(lambda d: torch.empty(3, device=d).exponential_(0))
    same_error(lambda d: torch.empty(3, dtype=torch.int64, device=d).normal_())
    same_error(lambda d: torch.empty(1, device=d).expand(3).uniform_())


def test_threads_do_not_change_numbers() -> None:
    check_threads("""
torch.manual_seed(9)
digest(*[torch.empty(300_001, device="neuron").uniform_(), torch.empty(70, 1001, device="neuron").normal_()])
digest(torch.randperm(1000, device="neuron"), F.dropout(torch.ones(100_003, device="neuron")))
""")
