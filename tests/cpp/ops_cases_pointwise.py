"""Cases of `ops_cases` for activations, losses, special functions and factories."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

__all__ = ["add_pointwise_cases"]

Case = Callable[..., None]
aten = torch.ops.aten
f16, f32, f64, i64 = torch.float16, torch.float32, torch.float64, torch.int64


def activations(case: Case) -> None:
    """Activations and backwards on both sides of all their bends."""
    x = torch.tensor([-7.0, -3.0, -1.0, -0.2, 0.0, 0.3, 0.5, 3.0, 6.5, math.nan])
    g = torch.tensor([0.5, -1.0, 2.0, 1.0, -0.7, 3.0, 1.5, 1.0, 2.0, 1.0])
    for dtype in (f32, f64, f16):
        a, grad = x.to(dtype), g.to(dtype)
        for name in ("hardsigmoid", "hardswish", "mish"):
            case(name, [a], [getattr(aten, name)(a)])
            case(f"{name}_backward", [grad, a], [getattr(aten, f"{name}_backward")(grad, a)])
        case("hardtanh_backward", [grad, a, (f64, -1), (f64, 0.5)], [aten.hardtanh_backward(grad, a, -1, 0.5)])
        case("hardshrink", [a, (f64, 0.5)], [aten.hardshrink(a, 0.5)])
        many = a.repeat(8)[:64]  # the CPU's zeros have another sign in a vector's rest
        case("softshrink", [many, (f64, 0.5)], [aten.softshrink(many, 0.5)])
        case("shrink_backward", [grad, a, (f64, 0.5)], [aten.softshrink_backward(grad, a, 0.5)])
        for given in (0, 1):
            case("elu_backward", [grad, a, (f64, 1.5), (f64, 1.1), (f64, 0.7)],
                 [aten.elu_backward(grad, 1.5, 1.1, 0.7, bool(given), a)], attributes=[given])  # fmt: skip
        out, buffer = aten.log_sigmoid_forward(a)
        case("log_sigmoid", [a], [out, buffer])
        case("log_sigmoid_backward", [grad, a, buffer], [aten.log_sigmoid_backward(grad, a, buffer)])
        weight = torch.tensor([0.25], dtype=dtype)
        case("prelu", [a, weight], [aten._prelu_kernel(a, weight)])
        case("prelu_backward", [grad, a, weight], [*aten._prelu_kernel_backward(grad, a, weight)])
        first, second = grad[:, None], a[:, None]
        both = torch.cat([first, second], 1)
        case("glu", [first, second], [F.glu(both, 1)])
        case("glu_backward", [first, first, second], [aten.glu_backward(first, both, 1)[:, 1:]])
    p, g = torch.tensor([-0.1, 0.0, 0.2, 0.7, 1.0, 1.1]), torch.tensor([1.0, 2, 3, 4, 5, 6])
    case("logit_backward", [g, p, (f64, 0), (f64, 1)], [aten.logit_backward(g, p, None)], attributes=[1])
    case("logit_backward", [g, p, (f64, 0.25), (f64, 0.75)], [aten.logit_backward(g, p, 0.25)], attributes=[0])


def losses(case: Case, data: Callable[..., torch.Tensor]) -> None:
    """Losses of elements, and their backwards."""
    a, b, grad = data(8), data(8, seed=1), data(8, seed=2)
    for name, op, width in (("smooth_l1", "smooth_l1_loss", 0.5), ("huber", "huber_loss", 0.8)):
        for dtype in (f32, f16):
            x, y, g = a.to(dtype), b.to(dtype), grad.to(dtype)
            case(name, [x, y, (f64, width)], [getattr(aten, op)(x, y, 0, width)])
            case(f"{name}_backward", [x, y, g, (f64, width), (f64, 1)],
                 [getattr(aten, f"{op}_backward")(g, x, y, 0, width)])  # fmt: skip
    p, target = torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0, 1e-30]), torch.tensor([0.0, 1.0, 0.3, 0.9, 0.2, 1.0])
    for weight in ([], [data(6).abs()]):
        case("binary_cross_entropy", [p, target, *weight], [aten.binary_cross_entropy(p, target, *weight, reduction=0)])
        case("binary_cross_entropy_backward", [grad[:6], p, target, (f64, 1), *weight],
             [aten.binary_cross_entropy_backward(grad[:6], p, target, *(weight or [None]), 0)])  # fmt: skip


def special(case: Case) -> None:
    """Special functions at special values."""
    x = torch.tensor([-math.inf, -2.5, -1.0, -0.0, 0.0, 0.25, 0.5, 1.0, 2.5, 9.0, math.inf, math.nan])
    names = {"sinc": torch.sinc, "entr": torch.special.entr, "angle": torch.angle, "isposinf": torch.isposinf,
             "isneginf": torch.isneginf, "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh,
             "erfinv": torch.erfinv, "lgamma": torch.lgamma, "digamma": torch.digamma, "i0": torch.i0,
             "i0e": torch.special.i0e, "i1": torch.special.i1, "i1e": torch.special.i1e,
             "ndtri": torch.special.ndtri, "log_ndtr": torch.special.log_ndtr,
             "erfcx": torch.special.erfcx}  # fmt: skip
    for name, function in names.items():
        for dtype in (f32, f64):
            case(name, [x.to(dtype)], [function(x.to(dtype))], common=dtype, tolerance=1e-5 if dtype == f32 else 1e-9)
    case("trigamma", [x[5:11]], [torch.polygamma(1, x[5:11])], tolerance=1e-5)
    case("signbit", [x[:-1]], [torch.signbit(x[:-1])], common=f32)
    whole = torch.tensor([-3, 0, 5])
    for name in ("signbit", "isposinf"):
        case(name, [whole], [getattr(torch, name)(whole)], common=i64)
    a, b = x[:, None].expand(12, 12).reshape(-1), x.repeat(12)
    pairs = {"xlogy": torch.xlogy, "xlog1py": torch.special.xlog1py, "logaddexp": torch.logaddexp,
             "logaddexp2": torch.logaddexp2, "heaviside": torch.heaviside}  # fmt: skip
    for name, pair in pairs.items():
        case(name, [a, b], [pair(a, b)])
    case("heaviside", [whole, whole.flip(0)], [torch.heaviside(whole, whole.flip(0))])
    y = torch.tensor([1.2345, -2.345, 1234.56])
    for dtype in (f32, f16):
        case("round_decimals", [y.to(dtype), (f64, 100)], [y.to(dtype).round(decimals=2)], attributes=[0])
        case("round_decimals", [y.to(dtype), (f64, 100)], [y.to(dtype).round(decimals=-2)], attributes=[1])


def factories(case: Case) -> None:
    """Tensors made of positions."""
    for rows, columns in ((3, 3), (2, 5), (5, 2)):
        case("eye", [], [torch.eye(rows, columns)])
    for steps, step in ((5, 0.5), (2, 2.0)):
        case("linspace", [(f64, -1), (f64, 1), (f64, step), (i64, steps)], [torch.linspace(-1, 1, steps)])
    case("linspace", [(f64, 0), (f64, 10), (f64, 2.5), (i64, 5)], [torch.linspace(0, 10, 5, dtype=i64)])


def add_pointwise_cases(case: Case, data: Callable[..., Any]) -> None:
    """Add all cases of this module with `ops_cases.case`; ``data`` draws numbers."""
    activations(case)
    losses(case, data)
    special(case)
    factories(case)
