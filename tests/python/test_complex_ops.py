"""Operators on complex tensors, which kernels see as pairs of real numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from modes import assert_same_bits, mode, run_everywhere
from opinfo import check_samples, find_op, mirror_of, name_of, same_error
from recorded import cases_of, check_recorded_samples, no_fallback

DTYPES = [torch.complex64, torch.complex128]
NAMES = """
    neg reciprocal abs angle sgn eq ne where addcmul addcdiv lerp sum mean conj conj_physical real imag
    exp log log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh sigmoid isnan isinf isfinite logical_not
    tril triu fill zero_ clone contiguous view_as_real cat flip roll norm count_nonzero positive
"""
# Gradients of empty tensors that were broadcast are sums of nothing, which fall back.
BROADCASTING = "add sub rsub mul true_divide masked_fill float_power"
# Composed by the CPU fallback as a whole.
OTHERS = "prod cumsum var std mm matmul exp2 expm1 asinh acos any all square"


# The nuclear norm is a sum of singular values, with a backward of its own.
RECORDED = [(op, dtype) for op, dtype in cases_of(NAMES, DTYPES) if op.variant_test_name != "nuc"]


@pytest.mark.parametrize(("op", "dtype"), RECORDED, ids=name_of)
def test_samples_agree_with_the_cpu_and_are_recorded(op: OpInfo, dtype: torch.dtype) -> None:
    check_recorded_samples(op, dtype)


@pytest.mark.parametrize(("op", "dtype"), cases_of(BROADCASTING, DTYPES), ids=name_of)
def test_samples_of_broadcasting_operators_agree_with_the_cpu(op: OpInfo, dtype: torch.dtype) -> None:
    check_recorded_samples(op, dtype, backward=False)
    check_samples(op, dtype)


@pytest.mark.parametrize(("op", "dtype"), cases_of(OTHERS, DTYPES), ids=name_of)
def test_samples_of_other_operators_agree_with_the_cpu(op: OpInfo, dtype: torch.dtype) -> None:
    check_samples(op, dtype)


def test_powers_are_at_most_one_ulp_off() -> None:
    """In complex64 the CPU is off by more than comparing allows: the results of complex128 are compared."""
    check_samples(find_op("pow"), torch.complex128)
    for sample in find_op("pow").sample_inputs("cpu", torch.complex64):
        if not isinstance(sample.args[0], torch.Tensor) or not sample.args[0].is_complex():
            continue
        mirror = mirror_of(sample)
        exact = torch.pow(sample.input.to(torch.complex128), sample.args[0].to(torch.complex128))
        error = (torch.pow(mirror.input, mirror.args[0]).cpu() - exact).abs() / exact.abs()
        assert not (error > 2**-23).any()


def numbers(*shape: int, dtype: torch.dtype = torch.complex64, seed: int = 3) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def formula(device: str) -> list[torch.Tensor]:
    z, w = (numbers(5, 37, seed=seed).to(device).requires_grad_() for seed in (3, 4))
    result = (z * w + z.abs()) / (w - 2j) + torch.exp(1j * z.real) * z.conj()
    (result.abs().square().mean() + result.imag.sum()).backward()
    return [result.detach(), z.grad, w.grad]


def views(device: str) -> list[torch.Tensor]:
    z = numbers(6, 8).to(device)
    z.real.mul_(2)
    z[:, ::2].imag.add_(z[:, 1::2].real)
    pairs = torch.view_as_real(z)
    pairs[2:4, :, 0] = pairs[:2, :, 1]
    z.t()[3] *= 1j
    z.conj()[0].mul_(2 - 1j)
    back = torch.view_as_complex(pairs * 3)
    return [z, back + z.conj(), z.conj().imag, (z * torch.arange(8, device=device)).sum(0), z.resolve_conj()]


def mixed(device: str) -> list[torch.Tensor]:
    z, x, i = numbers(4, 1).to(device), torch.linspace(-1, 2, 9).to(device), torch.arange(9).to(device)
    out = torch.empty(4, 9, dtype=torch.complex128, device=device)
    torch.add(z, x, alpha=2 - 1j, out=out)
    wide = (z.to(torch.complex128) * x.double() - i).add_(1.5j)
    wide[1].zero_()
    wide[2:, 3] = 7 - 2j
    return [out, wide, x + 1j, i * (2 + 1j), z == z.real, torch.where(x > 0, z, x), torch.complex(x, -x),
            torch.polar(x.abs(), x), z.expand(4, 3).sum(), z.mean(0)]  # fmt: skip


@pytest.mark.parametrize("program", [formula, views, mixed])
def test_modes_do_not_change_bits(program: Callable[[str], list[torch.Tensor]]) -> None:
    torch.testing.assert_close(run_everywhere(program, cpu=False), [t.resolve_conj() for t in program("cpu")])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_has_the_same_bits_wherever_it_stands(dtype: torch.dtype) -> None:
    z = numbers(70, dtype=dtype).to("neuron")
    whole = (z * z + z).div(z - 1).exp()
    for size in range(1, 70):
        for start in (0, 70 - size):
            part = z[start : start + size]
            again = (part * part + part).div(part - 1).exp()
            assert_same_bits([again.cpu()], [whole[start : start + size].cpu()], f"{size} from {start}")


def test_a_chain_is_one_launch() -> None:
    z, w = numbers(50, 40).to("neuron"), numbers(50, 40, seed=8).to("neuron")
    torch.neuron.synchronize()
    with mode("adaptive"), no_fallback():
        before = torch.neuron.fusion_stats()["launches"]
        result = (z * w + z.abs() - 2j).div_(w).sum(1)
        torch.neuron.synchronize()
        launches = torch.neuron.fusion_stats()["launches"]
    assert launches - before == 1
    torch.testing.assert_close(result.cpu(), ((z.cpu() * w.cpu() + z.cpu().abs() - 2j) / w.cpu()).sum(1))


@pytest.mark.parametrize(
    "program",
    [
        lambda z: z < z,
        lambda z: torch.maximum(z, z),
        lambda z: z.clamp(0, 1),
        lambda z: z.floor(),
        lambda z: z.relu(),
        lambda z: z % 2,
        lambda z: z.real.add_(z),
        lambda z: torch.complex(z, z),
        lambda z: z.amax(),
        lambda z: z.view(7),
    ],
)
def test_what_complex_numbers_do_not_have_raises_what_the_cpu_raises(program: Callable[[torch.Tensor], object]) -> None:
    same_error(lambda device: program(numbers(3).to(device)))
