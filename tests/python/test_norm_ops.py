from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from modes import mode, run_everywhere
from opinfo import DTYPES, check_errors, check_samples, check_threads, find_op, same_error, with_errors

OPS = [
    "nn.functional.layer_norm", "native_layer_norm", "nn.functional.rms_norm", "nn.functional.batch_norm",
    "native_batch_norm", "_native_batch_norm_legit", "nn.functional.group_norm", "nn.functional.instance_norm",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_samples_agree_with_the_cpu(name: str, dtype: torch.dtype) -> None:
    # A norm over one element divides a difference that is rounding alone by the square root of eps, on the CPU too.
    check_samples(find_op(name), dtype, grad_atol=5e-4)


@pytest.mark.parametrize("name", with_errors(OPS))
def test_wrong_arguments_raise_what_the_cpu_raises(name: str) -> None:
    check_errors(find_op(name))


@pytest.mark.parametrize("mask", [(True, True, True), (True, False, False), (False, True, False), (False, False, True)])
def test_the_backward_gives_what_its_mask_asks_for(mask: tuple[bool, bool, bool]) -> None:
    x, g, w, b = torch.randn(6, 3, 10), torch.randn(6, 3, 10), torch.randn(10), torch.randn(10)
    _, mean, rstd = torch.native_layer_norm(x, (10,), w, b, 1e-5)
    arguments = [g, x, (10,), mean, rstd, w, b, mask]
    expected = torch.ops.aten.native_layer_norm_backward(*arguments)
    moved = [a.to("neuron") if isinstance(a, torch.Tensor) else a for a in arguments]
    actual = torch.ops.aten.native_layer_norm_backward(*moved)
    for a, e, wanted in zip(actual, expected, mask, strict=True):
        if wanted:
            torch.testing.assert_close(a.cpu(), e)
        else:
            assert a is None or not a.defined if not isinstance(a, torch.Tensor) else a.numel() == 0


def test_half_activations_take_fp32_parameters() -> None:
    x, w, b = torch.randn(4, 32).bfloat16(), torch.randn(32), torch.randn(32)
    expected = torch.native_layer_norm(x, (32,), w, b, 1e-5)
    actual = torch.native_layer_norm(x.to("neuron"), (32,), w.to("neuron"), b.to("neuron"), 1e-5)
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype
        torch.testing.assert_close(a.cpu(), e, rtol=1e-2, atol=1e-2)


def test_one_row_and_no_batch_dimension() -> None:
    for shape in [(1, 8), (8,)]:
        results = {}
        for device in ("cpu", "neuron"):
            torch.manual_seed(0)
            x, w, b = (torch.randn(s).to(device).requires_grad_() for s in (shape, 8, 8))
            F.layer_norm(x, (8,), w, b).square().sum().backward()
            results[device] = [t.grad.cpu() for t in (x, w, b)]
        for a, e in zip(results["neuron"], results["cpu"], strict=True):
            torch.testing.assert_close(a, e)


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x, w, b = randn(1000, 384).requires_grad_(), randn(384).requires_grad_(), randn(384).requires_grad_()
y = F.layer_norm(x, (384,), w, b)
(y * randn(1000, 384)).sum().backward()
digest(y, x.grad, w.grad, b.grad)
""")


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "batch norm of rows": (lambda: nn.BatchNorm1d(6), (9, 6)),
    "batch norm of lines": (lambda: nn.BatchNorm1d(6), (4, 6, 11)),
    "batch norm of planes": (lambda: nn.BatchNorm2d(6), (4, 6, 5, 7)),
    "batch norm of volumes": (lambda: nn.BatchNorm3d(3), (2, 3, 4, 3, 5)),
    "no parameters": (lambda: nn.BatchNorm2d(6, affine=False), (4, 6, 5, 7)),
    "no statistics": (lambda: nn.BatchNorm2d(6, track_running_stats=False), (4, 6, 5, 7)),
    "cumulative average": (lambda: nn.BatchNorm2d(6, momentum=None), (4, 6, 5, 7)),
    "long reduction": (lambda: nn.BatchNorm2d(3), (8, 3, 64, 50)),
    "many channels": (lambda: nn.BatchNorm1d(300), (32, 300)),
    "group norm": (lambda: nn.GroupNorm(3, 6), (4, 6, 5, 7)),
    "group norm of rows": (lambda: nn.GroupNorm(3, 6), (4, 6)),
    "group norm without parameters": (lambda: nn.GroupNorm(2, 6, affine=False), (4, 6, 9)),
    "group norm of large groups": (lambda: nn.GroupNorm(1, 4), (2, 4, 80, 64)),
    "instance norm": (lambda: nn.InstanceNorm2d(6, affine=True), (4, 6, 5, 7)),
    "instance norm with statistics": (lambda: nn.InstanceNorm2d(6, track_running_stats=True), (4, 6, 5, 7)),
    "layer norm": (lambda: nn.LayerNorm((5, 7)), (4, 6, 5, 7)),
    "RMS norm": (lambda: nn.RMSNorm(7), (4, 6, 7)),
    "RMS norm of planes": (lambda: nn.RMSNorm((6, 7), eps=1e-3), (4, 6, 7)),
}  # fmt: skip


def use(name: str, device: str, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Two training steps and an evaluation, each with its backward: results, gradients and all statistics."""
    make, shape = MODULES[name]
    generator = torch.Generator().manual_seed(4)
    module = make().to(dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    module = module.to(device)
    seen = []
    for training in (True, True, False):
        module.train(training)
        x = (torch.randn(shape, generator=generator) * 2 + 1).to(dtype).to(device).requires_grad_()
        y = module(x)
        (y * torch.randn(shape, generator=generator).to(dtype).to(device)).sum().backward()
        seen += [y, x.grad, *(p.grad for p in module.parameters()), *module.buffers()]
        module.zero_grad()
    return [tensor.detach().cpu() for tensor in seen]


@pytest.mark.parametrize("name", MODULES)
def test_modules_give_what_the_cpu_gives_in_every_mode_without_a_fallback(name: str) -> None:
    torch.neuron.reset_fusion_stats()
    use(name, "neuron")
    assert torch.neuron.fusion_stats()["fallbacks"] == {}
    unfused = run_everywhere(lambda device: use(name, device), cpu=False)
    for actual, expected in zip(unfused, use(name, "cpu"), strict=True):
        torch.testing.assert_close(actual, expected, rtol=2e-5, atol=2e-4 if "large" in name else 2e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["batch norm of planes", "group norm", "RMS norm", "no parameters"])
def test_modules_of_other_dtypes(name: str, dtype: torch.dtype) -> None:
    tolerance = {"rtol": 5e-2, "atol": 0.15} if dtype == torch.bfloat16 else {}
    for actual, expected in zip(use(name, "neuron", dtype), use(name, "cpu", dtype), strict=True):
        torch.testing.assert_close(actual, expected, **tolerance)


def test_half_batches_with_fp32_parameters() -> None:
    x, g = torch.randn(4, 6, 5, 5).bfloat16(), torch.randn(4, 6, 5, 5).bfloat16()
    results = {}
    for device in ("cpu", "neuron"):
        module = nn.BatchNorm2d(6).to(device)
        leaf = x.to(device).detach().requires_grad_()
        y = module(leaf)
        y.backward(g.to(device))
        results[device] = [t.cpu() for t in (y, leaf.grad, module.weight.grad, module.bias.grad, *module.buffers())]
    for actual, expected in zip(results["neuron"], results["cpu"], strict=True):
        assert actual.dtype == expected.dtype
        torch.testing.assert_close(actual, expected, rtol=2e-2, atol=2e-2)


def test_channels_last_stays_channels_last() -> None:
    x = torch.randn(4, 6, 5, 7).to(memory_format=torch.channels_last)
    for make in (lambda: nn.BatchNorm2d(6), lambda: nn.BatchNorm2d(6).eval()):
        leaf = x.to("neuron").requires_grad_()
        expected_leaf = x.clone(memory_format=torch.preserve_format).requires_grad_()
        y, expected = make().to("neuron")(leaf), make()(expected_leaf)
        y.sin().sum().backward()
        expected.sin().sum().backward()
        assert y.stride() == expected.stride()
        torch.testing.assert_close(y.cpu(), expected)
        torch.testing.assert_close(leaf.grad.cpu(), expected_leaf.grad)


def test_rms_norm_differentiates_twice() -> None:
    results = {}
    for device in ("cpu", "neuron"):
        torch.manual_seed(1)
        x, w = torch.randn(4, 8).to(device).requires_grad_(), torch.randn(8).to(device).requires_grad_()
        (slope,) = torch.autograd.grad(F.rms_norm(x, (8,), w).pow(3).sum(), x, create_graph=True)
        results[device] = [g.cpu() for g in torch.autograd.grad(slope.square().sum(), (x, w))]
    torch.testing.assert_close(results["neuron"], results["cpu"], rtol=1e-4, atol=1e-4)


def test_batch_norm_with_wrong_sizes_raises_what_the_cpu_raises() -> None:
    same_error(lambda d: nn.BatchNorm2d(3).to(d)(torch.ones(2, 4, 3, 3, device=d)))
    same_error(lambda d: nn.BatchNorm1d(3).to(d)(torch.ones(1, 3, device=d)))
    same_error(lambda d: F.group_norm(torch.ones(2, 4, 3, device=d), 3))
    same_error(lambda d: F.rms_norm(torch.ones(2, 4, device=d), (3,)))
    same_error(lambda d: F.rms_norm(torch.ones(2, 4, device=d), (4,), torch.ones(3, device=d)))


def test_a_small_norm_is_one_launch_with_what_follows_and_a_large_one_is_passes() -> None:
    with mode("adaptive"):
        for make, shape, most in [(nn.BatchNorm1d, (32, 64), 1), (nn.BatchNorm2d, (32, 64, 32, 32), 4)]:
            module, x = make(64).to("neuron"), torch.randn(shape).to("neuron")
            torch.neuron.synchronize()
            torch.neuron.reset_fusion_stats()
            y = F.relu(module(x))
            torch.neuron.synchronize()
            assert torch.neuron.fusion_stats()["launches"] <= most
            assert y.min().item() == 0


def test_threads_do_not_change_bits_of_batch_and_group_norm() -> None:
    check_threads("""
import torch.nn as nn
for module, shape in [(nn.BatchNorm2d(5), (16, 5, 40, 40)), (nn.BatchNorm1d(200), (64, 200)),
                      (nn.GroupNorm(4, 16), (8, 16, 32, 32)), (nn.RMSNorm(512), (300, 512))]:
    module, x = module.to("neuron"), randn(*shape).requires_grad_()
    y = module(x)
    (y * randn(*shape)).sum().backward()
    digest(y, x.grad, *(p.grad for p in module.parameters()), *module.buffers())
""")
