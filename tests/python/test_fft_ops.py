from __future__ import annotations

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import (
    check_errors,
    check_samples,
    check_threads,
    find_op,
    meaningful_strides,
    name_of,
    same_error,
    with_errors,
)
from recorded import cases_of, no_fallback

KINDS = [
    f"{inverse}{kind}{dims}" for inverse in ("", "i") for kind in ("fft", "rfft", "hfft") for dims in ("", "2", "n")
]
NAMES = " ".join(f"fft.{kind}" for kind in KINDS)


@pytest.mark.parametrize(("op", "dtype"), cases_of(NAMES, [torch.float32, torch.float64, torch.complex64]), ids=name_of)
def test_samples_agree_with_the_cpu(op: OpInfo, dtype: torch.dtype) -> None:
    check_samples(op, dtype, grad_atol=1e-4)


@pytest.mark.parametrize("name", with_errors(NAMES.split()))
def test_wrong_arguments_raise_what_the_cpu_raises(name: str) -> None:
    check_errors(find_op(name))


@pytest.mark.parametrize("dims", [(-1,), (0,), (1,), (0, 2), (2, 1), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_values_and_strides_of_all_dimensions(kind: str, dims: tuple[int, ...], turned: bool) -> None:
    x = torch.randn(12, 30, 64, dtype=torch.float32 if kind == "rfftn" else torch.complex64)
    x = x.permute(2, 0, 1) if turned else x
    transform = getattr(torch.fft, kind)
    expected = transform(x, dim=dims)
    with no_fallback():
        actual = transform(x.to("neuron"), dim=dims)
    assert meaningful_strides(actual) == meaningful_strides(expected)
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-3)


def test_modes_do_not_change_bits() -> None:
    x = torch.randn(16, 24, 128)

    def program(device: str) -> list[torch.Tensor]:
        leaf = x.to(device).requires_grad_()
        spectrum = torch.fft.rfft2(leaf * 0.5, norm="ortho")
        power = torch.view_as_real(spectrum).square().sum(-1)
        back = torch.fft.irfft2(spectrum, s=x.shape[1:], norm="ortho")
        return [power.detach(), back.detach(), *torch.autograd.grad(power.sum() + back.pow(3).sum(), leaf)]

    for actual, expected in zip(run_everywhere(program, cpu=False), program("cpu"), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-3)


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x = randn(32, 48, 100)
y = torch.fft.rfft(x)
digest(torch.view_as_real(y), torch.view_as_real(torch.fft.fft2(y)), torch.fft.irfft(y), torch.fft.irfftn(y))
""")


def test_errors_come_at_the_call() -> None:
    x = torch.randn(4, 8)
    for program in [
        lambda d: torch.fft.fft(x.to(d), dim=3),
        lambda d: torch.fft.fft(x.to(d), n=0),
        lambda d: torch.fft.fftn(x.to(d), dim=(0, 0)),
        lambda d: torch.fft.rfft(x.to(torch.complex64).to(d)),
        lambda d: torch.fft.fft(x.bfloat16().to(d)),
        lambda d: torch.fft.irfft(x.to(d), norm="other"),
    ]:
        same_error(program)
