"""Activation functions: PyTorch's own samples, forward and backward, and what the samples do not ask."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import check_errors, name_of, same_error
from recorded import cases_of, check_recorded_samples, no_fallback

NAMES = """
    nn.functional.celu nn.functional.elu nn.functional.gelu nn.functional.glu nn.functional.hardshrink
    nn.functional.hardsigmoid nn.functional.hardswish nn.functional.hardtanh nn.functional.leaky_relu
    nn.functional.logsigmoid nn.functional.mish nn.functional.prelu nn.functional.relu nn.functional.relu6
    nn.functional.selu nn.functional.silu nn.functional.softplus nn.functional.softshrink
    nn.functional.softsign nn.functional.tanhshrink nn.functional.threshold logit sigmoid tanh
"""
CASES = cases_of(NAMES, [torch.float32, torch.bfloat16, torch.float64])


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=name_of)
def test_samples_agree_with_the_cpu_and_are_recorded(op: OpInfo, dtype: torch.dtype) -> None:
    check_recorded_samples(op, dtype)


@pytest.mark.parametrize("op", [op for op, dtype in CASES if dtype == torch.float32 and op.error_inputs_func],
                         ids=name_of)  # fmt: skip
def test_wrong_arguments_raise_what_the_cpu_raises(op: OpInfo) -> None:
    check_errors(op)


EDGES = torch.tensor([-math.inf, -100.0, -6, -3, -1, -0.5, -0.0, 0.0, 0.5, 1, 3, 6, 100, math.inf, math.nan])
FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu6": F.relu6, "hardtanh": F.hardtanh, "leaky_relu": F.leaky_relu, "elu": F.elu, "celu": F.celu,
    "selu": F.selu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
    "mish": F.mish, "softplus": F.softplus, "softshrink": F.softshrink, "hardshrink": F.hardshrink,
    "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "logsigmoid": F.logsigmoid, "sigmoid": torch.sigmoid,
    "tanh": torch.tanh, "prelu": lambda x: F.prelu(x, torch.full((1,), 0.25, dtype=x.dtype, device=x.device)),
    "rrelu": F.rrelu, "threshold": lambda x: F.threshold(x, 0.5, -1.0), "softsign": F.softsign,
    "tanhshrink": F.tanhshrink, "glu": lambda x: F.glu(torch.stack([x, x.flip(0)])[:, None], 0),
    "logit": lambda x: torch.logit(x, 1e-3), "elu_of_result": lambda x: F.elu(x * 1, 1.5, inplace=True),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges_and_their_gradients_are_the_cpus_in_every_mode(name: str, dtype: torch.dtype) -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = EDGES.to(dtype).clone()
        if name in ("gelu", "glu"):  # the CPU's gradients at infinity depend on the place in the tensor
            x.clamp_(-100, 100)
        x = x.to(device).requires_grad_()
        y = FUNCTIONS[name](x)
        y.backward(torch.full_like(y, 0.75))
        assert x.grad is not None
        return [y, x.grad]

    with no_fallback():
        run_everywhere(program)


def test_in_place_forms_write_to_their_argument() -> None:
    for function in (F.hardswish, F.hardsigmoid, F.mish, F.hardtanh, F.elu, F.leaky_relu, F.silu, F.rrelu):
        x = EDGES.to("neuron")
        assert function(x, inplace=True) is x
        torch.testing.assert_close(x.cpu(), function(EDGES), equal_nan=True)


def test_rrelu_in_training_has_slopes_within_its_bounds_and_their_gradient() -> None:
    x = -torch.ones(1000, device="neuron")
    x[::2] = 2
    x.requires_grad_()
    with no_fallback():
        y = F.rrelu(x, 0.1, 0.3, training=True)
        y.sum().backward()
    assert x.grad is not None
    slopes = x.grad.cpu()
    assert (slopes[::2] == 1).all()
    assert (slopes[1::2] >= 0.1).all()
    assert (slopes[1::2] <= 0.3).all()
    assert slopes[1::2].unique().numel() > 100
    torch.testing.assert_close(y.detach().cpu()[1::2], -slopes[1::2])


def test_integers_are_clamped_by_hardtanh_and_refused_by_others() -> None:
    x = torch.tensor([-3, 0, 9])
    assert F.hardtanh(x.to("neuron"), -1, 1).tolist() == [-1, 0, 1]
    for function in (F.hardswish, F.mish, F.softplus, F.silu, F.gelu, F.elu, F.logsigmoid, F.glu):
        same_error(lambda d, f=function: f(torch.ones(2, dtype=torch.int64, device=d)))


def test_prelu_has_a_gradient_for_each_channel() -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = torch.linspace(-2, 2, 24).reshape(2, 3, 4).to(device).requires_grad_()
        weight = torch.tensor([0.1, 0.2, 0.3]).to(device).requires_grad_()
        F.prelu(x, weight).square().sum().backward()
        assert x.grad is not None
        assert weight.grad is not None
        return [x.grad, weight.grad]

    with no_fallback():
        run_everywhere(program)
