"""Interpolation, sampling on a grid, columns of images, padding."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import check_samples, check_threads, meaningful_strides, name_of, same_error
from recorded import cases_of, no_fallback

NAMES = """
    nn.functional.interpolate nn.functional.upsample_nearest nn.functional.upsample_bilinear nn.functional.grid_sample
    grid_sampler_2d grid_sampler_3d nn.functional.unfold nn.functional.pad
    nn.functional.pixel_shuffle nn.functional.pixel_unshuffle nn.functional.channel_shuffle constant_pad_nd
"""
DTYPES = [torch.float32, torch.float64, torch.bfloat16]
PLAIN = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,),
         "trilinear": (3,)}  # fmt: skip


@pytest.mark.parametrize(("op", "dtype"), cases_of(NAMES, DTYPES), ids=name_of)
def test_samples_agree_with_the_cpu(op: OpInfo, dtype: torch.dtype) -> None:
    check_samples(op, dtype, grad_atol=1e-4)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize(("mode", "dims"), [(mode, n) for mode, dims in PLAIN.items() for n in dims])
@pytest.mark.parametrize("options", [{"scale_factor": 1.7}, {"size": 11}], ids=str)
def test_images_in_both_formats(mode: str, dims: int, batch: int, last: bool, options: dict[str, float]) -> None:
    x = torch.randn(batch, 24, *[{1: 400, 2: 32, 3: 12}[dims]] * dims)
    if last and dims > 1:
        x = x.contiguous(memory_format=torch.channels_last if dims == 2 else torch.channels_last_3d)

    def program(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        leaf = x.to(device).requires_grad_()
        out = F.interpolate(leaf, mode=mode, **options)
        (grad,) = torch.autograd.grad(out, leaf, torch.cos(out.detach()))
        return out.detach(), grad

    with no_fallback():
        actual = program("neuron")
    for a, e in zip(actual, program("cpu"), strict=True):
        assert meaningful_strides(a) == meaningful_strides(e)
        torch.testing.assert_close(a.cpu(), e, rtol=1e-4, atol=1e-4)


def test_modes_do_not_change_bits() -> None:
    x, grid = torch.randn(4, 16, 24, 24), torch.rand(4, 20, 20, 2) * 2.2 - 1.1

    def program(device: str) -> list[torch.Tensor]:
        leaf, where = x.to(device).requires_grad_(), grid.to(device).requires_grad_()
        y = F.interpolate(leaf * 2, scale_factor=2, mode="bilinear")
        z = F.grid_sample(F.pad(y, (1, 2, 3, 4), mode="reflect"), where, align_corners=False)
        w = F.unfold(F.pad(z, (1, 1, 1, 1), mode="replicate"), 3, stride=2)
        return [w, *torch.autograd.grad(w.square().mean(), [leaf, where])]

    run_everywhere(program)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_sampling_is_recorded(dims: int, mode: str, padding: str) -> None:
    x, grid = torch.randn(3, 5, *[9] * dims), torch.rand(3, *[7] * dims, dims) * 2.4 - 1.2

    def program(device: str, wanted: int) -> list[torch.Tensor]:
        leaves = [x.to(device), grid.to(device)]
        leaves[wanted].requires_grad_()
        out = F.grid_sample(*leaves, mode=mode, padding_mode=padding, align_corners=True)
        return [out.detach(), *torch.autograd.grad(out.square().sum(), leaves[wanted])]

    for wanted in range(2):
        with no_fallback():
            actual = program("neuron", wanted)
        for a, e in zip(actual, program("cpu", wanted), strict=True):
            torch.testing.assert_close(a.cpu(), e, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
@pytest.mark.parametrize("shape", [(4, 40, 300), (4, 20, 30, 30), (20, 30, 30), (2, 8, 12, 12, 12)], ids=str)
def test_padding_is_recorded(mode: str, shape: tuple[int, ...], last: bool) -> None:
    dims = {3: 1 if shape[0] == 4 else 2, 4: 2, 5: 3}[len(shape)]
    if mode == "circular" and len(shape) == dims + 1:
        pytest.skip("needs a batch")
    x, amounts = torch.randn(shape), [1, 2, 3, 1, 2, 2][: 2 * dims]
    if last:
        if len(shape) < 4:
            pytest.skip("no such format")
        x = x.contiguous(memory_format=torch.channels_last if dims == 2 else torch.channels_last_3d)

    def program(device: str) -> list[torch.Tensor]:
        leaf = x.to(device).requires_grad_()
        out = F.pad(leaf, amounts, mode=mode)
        return [out.detach(), *torch.autograd.grad(out, leaf, torch.cos(out.detach()))]

    with no_fallback():
        actual = program("neuron")
    for a, e in zip(actual, program("cpu"), strict=True):
        assert meaningful_strides(a) == meaningful_strides(e)
        torch.testing.assert_close(a.cpu(), e)


def test_folding_is_the_gradient_of_unfolding() -> None:
    x = torch.randn(3, 4 * 9, 20 * 22)

    def program(device: str) -> list[torch.Tensor]:
        leaf = x.to(device).requires_grad_()
        out = F.fold(leaf, (20, 22), 3, padding=1)
        return [out.detach(), *torch.autograd.grad(out.square().sum(), leaf)]

    with no_fallback():
        actual = program("neuron")
    for a, e in zip(actual, program("cpu"), strict=True):
        torch.testing.assert_close(a.cpu(), e)


def test_bytes_are_interpolated_as_on_the_cpu() -> None:
    x = torch.randint(0, 256, (2, 3, 20, 20), dtype=torch.uint8)
    for mode in ("nearest", "bilinear", "bicubic"):
        with no_fallback():
            actual = F.interpolate(x.to("neuron"), size=(31, 17), mode=mode).cpu()
        assert (actual.int() - F.interpolate(x, size=(31, 17), mode=mode).int()).abs().max() <= 1


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x = randn(8, 24, 40, 44).requires_grad_()
for mode in ("nearest", "bilinear", "bicubic"):
    y = F.interpolate(x, scale_factor=1.5, mode=mode)
    digest(y, *torch.autograd.grad(y.square().sum(), x))
grid = (randn(8, 30, 30, 2) / 2).requires_grad_()
y = F.grid_sample(F.pad(x, (2, 2, 2, 2), mode="reflect"), grid, align_corners=False)
digest(y, *torch.autograd.grad(y.square().sum(), [x, grid]))
""")


def test_errors_come_at_the_call() -> None:
    x = torch.randn(2, 3, 8, 8)
    for program in [
        lambda d: torch.ops.aten.upsample_nearest2d(x.to(d), [4]),
        lambda d: torch.ops.aten.upsample_bilinear2d(x.to(d), [0, 4], False),
        lambda d: torch.ops.aten.upsample_bilinear2d(x[0].to(d), [4, 4], False),
        lambda d: torch.ops.aten.upsample_nearest2d(x.bool().to(d), [4, 4]),
        lambda d: F.pad(x.to(d), (8, 8, 1, 1), mode="reflect"),
        lambda d: F.pad(x.to(d), (-9, 0, 0, 0), mode="replicate"),
        lambda d: F.unfold(x.to(d), 9),
        lambda d: F.fold(torch.randn(2, 12, 5).to(d), (4, 4), 2),
        lambda d: F.grid_sample(x.to(d), torch.rand(3, 4, 4, 2).to(d)),
        lambda d: F.grid_sample(x.to(d), torch.rand(2, 4, 4, 3).to(d)),
        lambda d: F.grid_sample(x.to(d), torch.rand(2, 4, 4, 2).double().to(d)),
    ]:
        same_error(program)
