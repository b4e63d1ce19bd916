from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from modes import run_everywhere
from opinfo import check_errors, check_samples, check_threads, find_op, meaningful_strides, same_error, with_errors
from recorded import no_fallback

OPS = [f"nn.functional.conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)]
DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.float16]

# Convolutions of each kind of cut: by the batch, by channels (large weight, one image), by groups, and none.
SHAPES: list[dict[str, Any]] = [
    {"batch": 8, "inner": 32, "outer": 48, "size": 20, "kernel": 3, "padding": 1},
    {"batch": 16, "inner": 16, "outer": 32, "size": 21, "kernel": 3, "stride": 2, "dilation": 2, "padding": 2},
    {"batch": 2, "inner": 256, "outer": 256, "size": 4, "kernel": 3, "padding": 1},
    {"batch": 1, "inner": 64, "outer": 96, "size": 28, "kernel": 3},
    {"batch": 1, "inner": 64, "outer": 128, "size": 28, "kernel": 3, "groups": 8},
    {"batch": 6, "inner": 64, "outer": 64, "size": 28, "kernel": 5, "groups": 64, "padding": 2},
    {"batch": 3, "inner": 5, "outer": 7, "size": 9, "kernel": 2},
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_samples_agree_with_the_cpu(name: str, dtype: torch.dtype) -> None:
    check_samples(find_op(name), dtype, grad_atol=1e-4)


@pytest.mark.parametrize("name", with_errors(OPS))
def test_wrong_arguments_raise_what_the_cpu_raises(name: str) -> None:
    check_errors(find_op(name))


def convolve(shape: dict[str, Any], device: str, *, transposed: bool = False, dims: int = 2) -> list[torch.Tensor]:
    """A convolution's result and its gradients, of numbers that do not depend on the device."""
    generator = torch.Generator().manual_seed(3)
    groups, inner, outer = shape.get("groups", 1), shape["inner"], shape["outer"]
    sizes = [(shape["batch"], inner, *[shape["size"]] * dims),
             (inner, outer // groups, *[shape["kernel"]] * dims) if transposed else
             (outer, inner // groups, *[shape["kernel"]] * dims), (outer,)]  # fmt: skip
    leaves = [torch.randn(size, generator=generator).to(device).requires_grad_() for size in sizes]
    options = {key: shape[key] for key in ("stride", "padding", "dilation", "groups") if key in shape}
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{dims}d")
    out = function(*leaves, **options)
    weights = torch.randn(out.shape, generator=generator).to(device)
    return [out.detach(), *torch.autograd.grad(out, leaves, weights)]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(str(n) for n in shape.values()))
def test_pieces_give_the_whole_without_a_fallback(shape: dict[str, Any], transposed: bool) -> None:
    with no_fallback():
        actual = convolve(shape, "neuron", transposed=transposed)
    for a, e in zip(actual, convolve(shape, "cpu", transposed=transposed), strict=True):
        size = e.abs().max().item()
        torch.testing.assert_close(a.cpu(), e, rtol=1e-4, atol=1e-5 * size)


def test_modes_do_not_change_bits() -> None:
    def program(device: str) -> list[torch.Tensor]:
        results = [convolve(shape, device) for shape in SHAPES[:3]]
        return [tensor.cpu() for result in results for tensor in result]

    run_everywhere(program, cpu=False)


def test_the_setting_for_one_dnn_is_that_of_the_call() -> None:
    def program(device: str) -> list[torch.Tensor]:
        x, w = (torch.ones(20, 3, 9, 9) / 3).to(device), (torch.ones(4, 3, 3, 3) / 7).to(device)
        with torch.backends.mkldnn.flags(enabled=False):
            y = F.conv2d(x, w)
        return [y, F.conv2d(x, w)]

    run_everywhere(program)


def test_threads_do_not_change_bits() -> None:
    check_threads("""
for groups in (1, 4):
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        x, w, b = randn(8, 32, 24, 24, dtype=dtype), randn(64, 32 // groups, 3, 3, dtype=dtype), randn(64, dtype=dtype)
        x.requires_grad_(), w.requires_grad_(), b.requires_grad_()
        y = F.conv2d(x, w, b, padding=1, groups=groups)
        y.pow(2).sum().backward()
        digest(y, x.grad, w.grad, b.grad)
v = randn(16, 32, 2000).requires_grad_()
y = F.conv_transpose1d(v, randn(32, 48, 5))
y.sum().backward()
digest(y, v.grad)
""")


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("transposed", "groups"), [(False, 1), (False, 4), (True, 1), (True, 2)])
def test_memory_formats_are_those_of_the_cpu(transposed: bool, groups: int, dtype: torch.dtype, dims: int) -> None:
    last = torch.channels_last if dims == 2 else torch.channels_last_3d
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(18, 4, *[7] * dims, generator=generator, dtype=dtype)
    w = torch.randn(4 if transposed else 8, (8 if transposed else 4) // groups, *[3] * dims, dtype=dtype)
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{dims}d")
    for x_last, w_last in itertools.product((False, True), repeat=2):
        results = []
        for device in ("cpu", "neuron"):
            leaves = [
                (tensor.contiguous(memory_format=last) if is_last else tensor).to(device).requires_grad_()
                for tensor, is_last in ((x, x_last), (w, w_last))
            ]
            out = function(*leaves, groups=groups)
            results.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
        for e, a in zip(*results, strict=True):
            assert meaningful_strides(a) == meaningful_strides(e), (x_last, w_last)
            torch.testing.assert_close(a.cpu(), e, rtol=1e-4, atol=1e-5 * e.abs().max().item())


def test_only_what_is_asked_for_gets_a_gradient() -> None:
    x, w = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    for wanted in range(2):
        grads = []
        for device in ("cpu", "neuron"):
            leaves = [x.detach().to(device), w.detach().to(device)]
            leaves[wanted].requires_grad_()
            F.conv2d(*leaves).square().sum().backward()
            assert leaves[1 - wanted].grad is None
            grads.append(leaves[wanted].grad.cpu())
        torch.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-4)


def test_gradients_of_gradients() -> None:
    def program(device: str) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(3)
        x = torch.randn(3, 4, 9, 9, generator=generator, dtype=torch.float64).to(device).requires_grad_()
        w = torch.randn(6, 2, 3, 3, generator=generator, dtype=torch.float64).to(device).requires_grad_()
        (grad,) = torch.autograd.grad(F.conv2d(x, w, groups=2, stride=2).pow(3).sum(), x, create_graph=True)
        return list(torch.autograd.grad(grad.square().sum(), [x, w]))

    for actual, expected in zip(program("neuron"), program("cpu"), strict=True):
        torch.testing.assert_close(actual.cpu(), expected)


def test_a_network_trains_as_on_the_cpu() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))  # fmt: skip
    images, labels = torch.randn(6, 3, 16, 16), torch.arange(6) % 4
    losses = {}
    for device in ("cpu", "neuron"):
        net = copy.deepcopy(model).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        losses[device] = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    torch.testing.assert_close(torch.tensor(losses["neuron"]), torch.tensor(losses["cpu"]), rtol=1e-4, atol=1e-4)


def test_shape_and_dtype_errors_come_at_the_call() -> None:
    x, w = torch.randn(2, 4, 8, 8), torch.randn(6, 4, 3, 3)
    for program in [
        lambda d: F.conv2d(x.to(d), torch.randn(6, 3, 3, 3).to(d)),
        lambda d: F.conv2d(x.to(d), w.double().to(d)),
        lambda d: F.conv2d(x.to(d), w.to(d), torch.randn(5).to(d)),
        lambda d: F.conv2d(x.to(d), w.to(d), groups=3),
        lambda d: F.conv2d(x.to(d), w.to(d), stride=0),
        lambda d: F.conv2d(x.to(d), w.to(d), padding=-1),
        lambda d: F.conv2d(x[..., :2].to(d), w.to(d)),
        lambda d: F.conv_transpose2d(x.to(d), torch.randn(4, 6, 3, 3).to(d), output_padding=2),
        lambda d: F.conv1d(x[0, 0].to(d), w.to(d)),
    ]:
        same_error(program)


def test_operands_on_two_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        F.conv2d(torch.ones(1, 1, 3, 3, device="neuron"), torch.ones(1, 1, 2, 2))


def test_an_empty_batch_has_an_empty_result() -> None:
    out = F.conv2d(torch.empty(0, 3, 8, 8, device="neuron"), torch.randn(4, 3, 3, 3).to("neuron"))
    assert out.shape == (0, 4, 6, 6)
    assert out.device.type == "neuron"
