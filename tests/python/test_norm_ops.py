from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from opinfo import DTYPES, check_errors, check_samples, check_threads, find_op, with_errors

OPS = ["nn.functional.layer_norm", "native_layer_norm", "nn.functional.rms_norm"]


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
