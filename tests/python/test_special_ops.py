"""Special functions, rare ones, factories and moves of elements: PyTorch's own samples and what they do not ask."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import check_errors, name_of, same_error
from recorded import cases_of, check_recorded_samples, no_fallback

NAMES = """
    acosh asinh atanh erfinv lgamma digamma i0 sinc angle logaddexp2 signbit heaviside gcd lcm isposinf isneginf isclose
    isfinite isreal rad2deg deg2rad special.i0e special.i1 special.i1e special.ndtr special.ndtri special.log_ndtr
    special.entr special.erfcx special.zeta polygamma special.polygamma igamma igammac mvlgamma
    special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 special.modified_bessel_i0
    special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1
    special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.spherical_bessel_j0 special.airy_ai
    special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.hermite_polynomial_h
    special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p
    flip fliplr flipud rot90 roll round frexp
"""
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64]
# The CPU has no backward for half types here, or one that is not accurate in floats.
NO_BACKWARD = {
    torch.bfloat16: {"special.i1", "special.i1e", "special.modified_bessel_i0"},
    torch.float32: {"special.log_ndtr"},
}
# The CPU's trigamma has an error of 2e-5 in floats: doubles are compared.
TRIGAMMA = {"digamma", "polygamma", "special.polygamma"}
CASES = [(op, dtype) for op, dtype in cases_of(NAMES, DTYPES) if dtype != torch.float32 or op.name not in TRIGAMMA]
# Sums of nothing, which come up in gradients of empty tensors that were broadcast, are another family's.
SUMS_OF_NOTHING = "xlogy special.xlog1py logaddexp nextafter"


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=name_of)
def test_samples_agree_with_the_cpu_and_are_recorded(op: OpInfo, dtype: torch.dtype) -> None:
    check_recorded_samples(op, dtype, backward=op.name not in NO_BACKWARD.get(dtype, set()))


@pytest.mark.parametrize(("op", "dtype"), cases_of(SUMS_OF_NOTHING, [torch.float32, torch.float64]), ids=name_of)
def test_samples_of_broadcasting_functions_agree_with_the_cpu(op: OpInfo, dtype: torch.dtype) -> None:
    check_recorded_samples(op, dtype, backward=False)


@pytest.mark.parametrize("op", [op for op, _ in cases_of(NAMES, [torch.float32]) if op.error_inputs_func], ids=name_of)
def test_wrong_arguments_raise_what_the_cpu_raises(op: OpInfo) -> None:
    check_errors(op)


EDGES = [-math.inf, -1e30, -300.0, -7.5, -3, -2.5, -1, -0.75, -1e-3, -1e-40, -0.0, 0.0, 1e-40, 1e-3, 0.25, 0.5, 0.75,
         1, 1.5, 2, 2.5, 8, 9, 30, 300, 1e30, math.inf, math.nan]  # fmt: skip
UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "acosh": torch.acosh, "asinh": torch.asinh, "atanh": torch.atanh, "erfinv": torch.erfinv, "lgamma": torch.lgamma,
    "digamma": torch.digamma, "i0": torch.i0, "i0e": torch.special.i0e, "i1": torch.special.i1,
    "i1e": torch.special.i1e, "ndtri": torch.special.ndtri, "log_ndtr": torch.special.log_ndtr,
    "erfcx": torch.special.erfcx, "entr": torch.special.entr, "sinc": torch.sinc, "angle": torch.angle,
    "signbit": torch.signbit, "isposinf": torch.isposinf, "isneginf": torch.isneginf,
    "round_to_hundredths": lambda x: x.round(decimals=2), "round_to_hundreds": lambda x: x.round(decimals=-2),
    "nan_to_num": torch.nan_to_num, "logit": torch.logit,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_edges_are_the_cpus_in_every_mode(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(EDGES, dtype=dtype)
    if name == "signbit":
        x = x.nan_to_num(1.0, math.inf, -math.inf)
    with no_fallback():
        run_everywhere(lambda device: UNARY[name](x.to(device)))


BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "xlogy": torch.xlogy, "xlog1py": torch.special.xlog1py, "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2, "heaviside": torch.heaviside, "nextafter": torch.nextafter,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_edges_are_the_cpus_in_every_mode(name: str) -> None:
    x = torch.tensor(EDGES)
    with no_fallback():
        run_everywhere(lambda device: BINARY[name](x.to(device)[:, None], x.to(device)))


def test_trigamma_is_the_cpus() -> None:
    x = torch.tensor([0.1, 0.5, 1, 2.5, 7, 40, 1e6, -0.3, -1.5])
    with no_fallback():
        run_everywhere(lambda device: torch.polygamma(1, x.double().to(device)))
        actual = torch.polygamma(1, x.to("neuron")).cpu()
    torch.testing.assert_close(actual, torch.polygamma(1, x.double()).float())


def test_in_place_and_out_forms() -> None:
    x = torch.tensor([0.1, 0.4, 0.9])
    for name in ("erfinv", "lgamma", "digamma", "i0", "asinh", "atanh", "sinc"):
        y = x.to("neuron")
        assert getattr(y, f"{name}_")() is y
        torch.testing.assert_close(y.cpu(), getattr(torch, name)(x))
        out = torch.empty(2, 3, device="neuron")[0]
        getattr(torch, name)(x.to("neuron"), out=out)
        torch.testing.assert_close(out.cpu(), getattr(torch, name)(x))


# Division by integers: whether a divisor is zero may only be known later.


def test_integers_are_divided_without_a_fallback() -> None:
    a, b = torch.tensor([7, -7, 5, 0]), torch.tensor([2, 2, -3, 9])
    with no_fallback():
        run_everywhere(lambda d: [a.to(d) // (b.to(d) + 1), a.to(d) % b.to(d), torch.fmod(a.to(d), b.to(d)),
                                  torch.div(a.to(d), b.to(d), rounding_mode="trunc"), 5 % b.to(d),
                                  a.int().to(d) // b.int().to(d), a.to(d).clone().remainder_(b.to(d))],
                       exact=True)  # fmt: skip


def test_a_zero_from_the_host_raises_at_the_call() -> None:
    for function in (torch.floor_divide, torch.remainder, torch.fmod):
        same_error(lambda d, f=function: f(torch.tensor([1, 2]).to(d), torch.tensor([3, 0]).to(d)))


def test_a_zero_that_is_computed_raises_at_the_next_read_and_changes_nothing() -> None:
    a = torch.tensor([6, 8]).to("neuron")
    b = torch.tensor([1, 2]).to("neuron") - 1
    a.floor_divide_(b)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.neuron.synchronize()
    assert a.tolist() == [6, 8]
    a.floor_divide_(b + 2)
    assert a.tolist() == [3, 2]


# Factories


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8], ids=str)
def test_factories_give_what_the_cpu_gives(dtype: torch.dtype) -> None:
    programs: list[Callable[[str], torch.Tensor]] = [
        *(lambda d, n=n: torch.linspace(-3, 11, n, dtype=dtype, device=d)
          for n in (0, 1, 2, 5, 10) if dtype != torch.uint8),
        lambda d: torch.linspace(1, 8, 6, dtype=dtype, device=d),
        lambda d: torch.logspace(0, 2, 5, base=2, dtype=dtype, device=d),
        *(lambda d, s=s: torch.eye(*s, dtype=dtype, device=d) for s in ((3,), (0,), (2, 5), (5, 2))),
        lambda d: torch.full((2, 3), 7, dtype=dtype, device=d),
        lambda d: torch.arange(1, 9, 2, dtype=dtype, device=d),
        lambda d: torch.eye(4, dtype=dtype, device=d).tril(-1),
    ]  # fmt: skip
    for program in programs:
        with no_fallback():
            run_everywhere(program)


def test_indices_of_triangles_are_on_the_device() -> None:
    with no_fallback():
        for function in (torch.tril_indices, torch.triu_indices):
            actual = function(4, 3, 1, device="neuron")
            assert actual.device.type == "neuron"
            assert torch.equal(actual.cpu(), function(4, 3, 1))


def test_range_warns_and_counts_both_ends() -> None:
    with pytest.warns(UserWarning, match="deprecated"):
        assert torch.range(1, 4, device="neuron").tolist() == [1, 2, 3, 4]


def test_flip_and_roll_move_elements_of_any_layout() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    with no_fallback():
        run_everywhere(
            lambda d: [x.to(d).mT.flip(0, 2), x.to(d).roll(5), x.to(d).roll((1, -2), (0, 2)), x.to(d).mT.roll(1, 1),
                       x.to(d)[:, ::2].roll(3), x.to(d).rot90(1, (1, 2)), x.to(d).half().flip(1).roll(2, 0)],
            exact=True,
        )  # fmt: skip
    same_error(lambda d: torch.ones(2, 3, device=d).flip(0, 0))
    same_error(lambda d: torch.ones(2, 3, device=d).flip(2))
    same_error(lambda d: torch.ones(2, 3, device=d).roll(1, 2))
