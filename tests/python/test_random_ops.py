"""Random operators: what depends on the seed, and the distributions."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from modes import run_everywhere
from opinfo import check_threads, same_error
from recorded import no_fallback

COUNT = 200_000
FILLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "uniform": lambda t: t.uniform_(-1, 3), "normal": lambda t: t.normal_(2, 0.5), "random": lambda t: t.random_(10),
    "exponential": lambda t: t.exponential_(2), "bernoulli": lambda t: t.bernoulli_(0.3),
    "geometric": lambda t: t.geometric_(0.4), "log_normal": lambda t: t.log_normal_(0.2, 0.5),
    "cauchy": lambda t: t.cauchy_(1, 2),
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
                "exponential": (0.5, 0.5), "bernoulli": (0.3, 0.21**0.5), "geometric": (2.5, 0.6**0.5 / 0.4),
                "log_normal": (math.exp(0.325), math.exp(0.325) * math.expm1(0.25) ** 0.5)}  # fmt: skip
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_cauchy_numbers_have_their_quartiles(dtype: torch.dtype) -> None:
    torch.manual_seed(8)
    drawn = torch.empty(COUNT, dtype=dtype, device="neuron").cauchy_(1, 2).cpu().double()
    quartiles = drawn.quantile(torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64))
    torch.testing.assert_close(quartiles, torch.tensor([-1.0, 1, 3], dtype=torch.float64), rtol=0, atol=0.06)


def test_whole_numbers_of_a_geometric_distribution() -> None:
    torch.manual_seed(8)
    drawn = torch.empty(COUNT, dtype=torch.int64, device="neuron").geometric_(0.25).cpu()
    assert drawn.min() == 1
    assert abs((drawn == 1).double().mean().item() - 0.25) < 0.006
    assert abs(drawn.double().mean().item() - 4) < 0.04


DRAWS: dict[str, Callable[[str], torch.Tensor]] = {
    "randperm": lambda d: torch.randperm(50, device=d),
    "randperm of int32": lambda d: torch.randperm(50, dtype=torch.int32, device=d),
    "multinomial": lambda d: torch.multinomial(torch.arange(1.0, 9).to(d).repeat(5, 1), 4),
    "one": lambda d: torch.multinomial(torch.arange(1.0, 9).to(d).repeat(5, 1), 1),
    "with replacement": lambda d: torch.multinomial(torch.arange(1.0, 9).to(d), 30, replacement=True),
    "poisson": lambda d: torch.poisson(torch.full((40,), 4.0).to(d)),
    "binomial": lambda d: torch.binomial(torch.full((40,), 9.0).to(d), torch.full((40,), 0.4).to(d)),
    "gamma": lambda d: torch._standard_gamma(torch.full((40,), 2.0).to(d)),
    "dirichlet": lambda d: torch._sample_dirichlet(torch.full((8, 5), 2.0).to(d)),
    "normal": lambda d: torch.normal(torch.zeros(6, 1).to(d), torch.ones(7).to(d)),
    "normal of means": lambda d: torch.normal(torch.zeros(6).to(d), 2.0),
    "normal of deviations": lambda d: torch.normal(1.0, torch.ones(6).to(d)),
    "like": lambda d: torch.rand_like(torch.ones(5).to(d)) + torch.randn_like(torch.ones(5).to(d)),
    "integers like": lambda d: torch.randint_like(torch.ones(50).to(d), 3, 9),
    **{name: lambda d, fill=fill: fill(torch.empty(30, device=d)) for name, fill in FILLS.items()},
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_recorded_and_have_the_same_bits_in_every_mode(name: str) -> None:
    def program(device: str) -> list[torch.Tensor]:
        first = DRAWS[name](device)
        state = torch.neuron.get_rng_state()
        return [first, DRAWS[name](device), state]

    with no_fallback():
        first, second, _ = run_everywhere(program, cpu=False, seed=4)
    torch.manual_seed(4)
    expected = DRAWS[name]("cpu")
    assert first.shape == expected.shape
    assert first.dtype == expected.dtype
    assert not torch.equal(first, second)


def test_permutations_hold_every_number_once() -> None:
    for count in (0, 1, 2, 1000):
        assert sorted(torch.randperm(count, device="neuron").tolist()) == list(range(count))
    torch.manual_seed(1)
    firsts = torch.stack([torch.randperm(4, device="neuron")[0] for _ in range(4000)]).cpu()
    assert (firsts.bincount(minlength=4) / 4000 - 0.25).abs().max() < 0.035


@pytest.mark.parametrize(("count", "replacement"), [(1, False), (1, True), (2, False), (5, True)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_multinomial_draws_by_weight(count: int, replacement: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    weights = torch.tensor([0.0, 1, 2, 5], dtype=dtype, device="neuron")
    drawn = torch.multinomial(weights.expand(20_000, 4), count, replacement).cpu()
    assert drawn.shape == (20_000, count)
    shares = drawn[:, 0].bincount(minlength=4) / 20_000
    assert shares[0] == 0
    assert (shares - torch.tensor([0, 1, 2, 5]) / 8).abs().max() < 0.015
    if not replacement:
        assert (drawn.sort(1)[0].diff(dim=1) > 0).all()


def test_other_distributions_have_their_moments() -> None:
    torch.manual_seed(1)
    n = 50_000
    ones = torch.ones(n, device="neuron")
    # Mean and variance of each.
    for drawn, mean, variance in [
        (torch.poisson(ones * 3), 3, 3), (torch.binomial(ones * 10, ones * 0.3), 3, 2.1),
        (torch._standard_gamma(ones * 2), 2, 2),
        (torch._sample_dirichlet(torch.ones(n, 2).to("neuron"))[:, 0], 0.5, 1 / 12),
        (torch.normal(ones * 2, ones * 3), 2, 9), (torch.normal(ones * 2, 3.0), 2, 9),
        (torch.normal(2.0, ones * 3), 2, 9),
    ]:  # fmt: skip
        values = drawn.cpu().double()
        assert abs(values.mean().item() - mean) < 5 * (variance / n) ** 0.5
        assert abs(values.var().item() / variance - 1) < 0.05


def test_bad_probabilities_and_deviations_raise_at_the_next_read() -> None:
    for bad, text in [([0.0, 0.0], "sum of probabilities <= 0"), ([-1.0, 1.0], "element < 0"),
                      ([float("nan"), 1.0], "element < 0"), ([float("inf"), 1.0], "element < 0")]:  # fmt: skip
        drawn = torch.multinomial(torch.tensor(bad).to("neuron"), 1)
        with pytest.raises(RuntimeError, match=text):
            drawn.tolist()
    drawn = torch.normal(0.0, torch.tensor([-1.0]).to("neuron"))
    with pytest.raises(RuntimeError, match=r"normal expects all elements of std >= 0\.0"):
        drawn.tolist()
    drawn = torch.poisson(torch.tensor([-1.0]).to("neuron"))
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        drawn.tolist()
    torch.neuron.synchronize()


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
    same_error(lambda d: torch.empty(3, device=d).geometric_(1.0))
    same_error(lambda d: torch.empty(3, device=d).log_normal_(0, -1))
    same_error(lambda d: torch.empty(3, device=d).cauchy_(0, 0))
    same_error(lambda d: torch.multinomial(torch.ones(3).to(d), 4))
    same_error(lambda d: torch.multinomial(torch.ones(3).to(d).long(), 1))
    same_error(lambda d: torch.randperm(-1, device=d))
    same_error(lambda d: torch.normal(torch.ones(2).to(d), -1.0))
    same_error(lambda d: torch.empty(3, dtype=torch.int64, device=d).normal_())
    same_error(lambda d: torch.empty(1, device=d).expand(3).uniform_())


def test_threads_do_not_change_numbers() -> None:
    check_threads("""
torch.manual_seed(9)
digest(*[torch.empty(300_001, device="neuron").uniform_(), torch.empty(70, 1001, device="neuron").normal_()])
digest(torch.randperm(1000, device="neuron"), F.dropout(torch.ones(100_003, device="neuron")))
""")
