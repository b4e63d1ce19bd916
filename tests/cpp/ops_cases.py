"""Write ops_cases.inc: operators' inputs and the outputs that torch's CPU kernels give for them.

Run with the project's Python whenever a case is added: ``python tests/cpp/ops_cases.py``.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from ops_cases_pointwise import add_pointwise_cases

NAMES = {
    torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32",
    torch.int64: "i64", torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
}  # fmt: skip
TOLERANCE = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 2e-6, torch.float64: 1e-13}
f16, bf16, f32, f64, i8, i32, i64, u8, b8 = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int32, torch.int64, torch.uint8,
    torch.bool,
)  # fmt: skip

lines: list[str] = []


def number(value, dtype=f64) -> str:
    """Shortest text that gives the number back."""
    if dtype in (f16, f32):
        return str(np.dtype("f2" if dtype == f16 else "f4").type(value))
    return repr(int(value) if not dtype.is_floating_point else float(value))


def counted(items) -> str:
    """Text of a list: its length and its items."""
    items = list(items)
    return " ".join([str(len(items)), *items])


def operand(x, shape) -> str:
    """Text of a tensor seen over `shape`, or of a scalar (a pair of dtype and value)."""
    if isinstance(x, tuple):
        return f"scalar {NAMES[x[0]]} {number(x[1])}"
    strides = map(str, x.contiguous().expand(shape).stride())
    values = counted(number(v, x.dtype) for v in x.flatten().tolist())
    return f"tensor {NAMES[x.dtype]} {' '.join(strides)} {values}"


def words(text: str) -> list[str]:
    """Split at blanks."""
    return text.split()


def case(opcode, inputs, outputs, common=None, attributes=(), reduced=(), tolerance=None) -> None:
    """Add a case; the node's shape is what all operands broadcast to."""
    tensors = [x for x in [*inputs, *outputs] if not isinstance(x, tuple)]
    shape = torch.broadcast_shapes(*(t.shape for t in tensors))
    common = common or outputs[0].dtype
    if tolerance is None:
        tolerance = max(TOLERANCE.get(o.dtype, 0) for o in outputs)
    mask = sum(1 << (d % len(shape)) for d in reduced)
    lines.append(
        f"{opcode} {NAMES[common]} {tolerance} {mask} {counted(map(str, attributes))} {counted(map(str, shape))} "
        f"{counted(operand(x, shape) for x in inputs)} {counted(operand(x, shape) for x in outputs)}"
    )


def data(*shape, dtype=f32, seed=0, scale=1.0) -> torch.Tensor:
    """Reproducible normal numbers."""
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale).to(dtype)


def unary() -> None:
    x = torch.tensor([-2.5, -1.0, -0.3, 0.0, 0.4, 0.5, 1.5, 2.5, math.nan, math.inf, -math.inf])
    positive = torch.tensor([0.01, 0.3, 0.5, 1.0, 2.0, 30.0, math.inf])
    inside = torch.tensor([-1.0, -0.6, -0.1, 0.0, 0.2, 0.9, 1.0, 1.5])
    anywhere = words(
        "neg abs sign floor ceil trunc round exp exp2 expm1 sin cos tan atan sinh cosh tanh erf erfc sigmoid "
        "logical_not isnan isinf square frac"
    )
    for name in anywhere:
        for dtype in (f32, f64, bf16):
            y = x.to(dtype)
            out = getattr(torch, name)(y)
            case(name, [y], [out], common=dtype)
    for name in words("sqrt rsqrt log log2 log10 log1p reciprocal"):
        case(name, [positive], [getattr(torch, name)(positive)])
    for name in words("asin acos"):
        case(name, [inside], [getattr(torch, name)(inside)])
    ints = torch.tensor([-128, -7, 0, 3, 127], dtype=i8)
    for name in words("neg abs sign floor bitwise_not square logical_not isnan"):
        case(name, [ints], [getattr(torch, name)(ints)], common=i8)
    truth = torch.tensor([False, True])
    for name in words("bitwise_not logical_not"):
        case(name, [truth], [getattr(torch, name)(truth)], common=b8)


def binary() -> None:
    a = torch.tensor([1.5, -2.0, 7.25, -7.25, math.nan, 0.0, 3.0, math.inf])
    b = torch.tensor([2.0, 0.5, -2.0, 2.0, 1.0, math.nan, 3.0, 2.0])
    names = words(
        "add sub mul div remainder fmod atan2 hypot maximum minimum fmax fmin eq ne lt le gt ge copysign "
        "logical_and logical_or logical_xor"
    )
    for name in names:
        case(name, [a, b], [getattr(torch, name)(a, b)], common=f32)
        case(name, [a.half(), b.half()], [getattr(torch, name)(a.half(), b.half())], common=f16)
    base = torch.tensor([2.0, 0.5, 9.0, -3.0, 0.0])
    exponent = torch.tensor([3.0, -2.0, 0.5, 3.0, 2.0])
    case("pow", [base, exponent], [torch.pow(base, exponent)])
    case("floor_div", [a, b], [torch.floor_divide(a, b)])
    case("trunc_div", [a, b], [torch.div(a, b, rounding_mode="trunc")])
    m = torch.tensor([7, -7, 7, -7, 100, -128], dtype=i32)
    n = torch.tensor([2, 2, -2, -2, 7, 3], dtype=i32)
    for name in words("add sub mul remainder fmod maximum minimum eq lt bitwise_and bitwise_or bitwise_xor"):
        case(name, [m, n], [getattr(torch, name)(m, n)], common=i32)
    case("floor_div", [m, n], [torch.floor_divide(m, n)])
    case("trunc_div", [m, n], [torch.div(m, n, rounding_mode="trunc")])
    small = torch.tensor([3, -3, 2, 1], dtype=i64)
    power = torch.tensor([4, 3, 10, 9], dtype=i64)
    case("pow", [small, power], [torch.pow(small, power)])
    case("shift_left", [m, (i32, 3)], [m << 3])
    case("shift_right", [m, (i32, 2)], [m >> 2])
    p, q = torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    for name in words("add mul maximum minimum eq bitwise_xor logical_or"):
        case(name, [p, q], [getattr(torch, name)(p, q)], common=b8)
    case("add", [a, m.to(i64)[:1]], [a + m[:1].float()])  # promoted
    halves = data(6, dtype=f16)
    case("mul", [halves, (f32, 0.1)], [halves * 0.1], tolerance=0)  # the scalar is not rounded to half
    case("eq", [torch.tensor([0.1], dtype=bf16), (f64, 0.1)], [torch.tensor([True])], common=bf16)
    case("add_scaled", [data(5), data(5, seed=1), (f64, 2.5)], [torch.add(data(5), data(5, seed=1), alpha=2.5)])
    case("sub_scaled", [m, n, (i64, 3)], [torch.sub(m, n, alpha=3)])


def activations() -> None:
    x = torch.tensor([-3.0, -1.0, -0.2, 0.0, 0.3, 1.0, 25.0, math.nan])
    g = torch.tensor([0.5, -1.0, 2.0, 1.0, -0.7, 3.0, 1.5, 1.0])
    for dtype in (f32, f64, f16):
        a, grad = x.to(dtype), g.to(dtype)
        case("relu", [a], [torch.relu(a)])
        case("threshold", [a, (f32, 0.25), (f32, 7)], [F.threshold(a, 0.25, 7)])
        case("threshold_backward", [a, grad, (f32, 0)], [torch.ops.aten.threshold_backward(grad, a, 0)])
        case("leaky_relu", [a, (f64, 0.01)], [F.leaky_relu(a, 0.01)])
        case("leaky_relu_backward", [a, grad, (f64, 0.01)],
             [torch.ops.aten.leaky_relu_backward(grad, a, 0.01, False)])  # fmt: skip
        case("elu", [a, (f64, 1.5), (f64, 1.1), (f64, 0.7)], [torch.ops.aten.elu(a, 1.5, 1.1, 0.7)])
        case("silu", [a], [F.silu(a)])
        case("silu_backward", [grad, a], [torch.ops.aten.silu_backward(grad, a)])
        for attribute, form in enumerate(["none", "tanh"]):
            case("gelu", [a], [F.gelu(a, approximate=form)], attributes=[attribute])
            case("gelu_backward", [grad, a], [torch.ops.aten.gelu_backward(grad, a, approximate=form)],
                 attributes=[attribute])  # fmt: skip
        case("softplus", [a, (f64, 2), (f64, 20)], [F.softplus(a, 2, 20)])
        case("softplus_backward", [grad, a, (f64, 2), (f64, 20)],
             [torch.ops.aten.softplus_backward(grad, a, 2, 20)])  # fmt: skip
        out = torch.tanh(a)
        case("tanh_backward", [grad, out], [torch.ops.aten.tanh_backward(grad, out)])
        out = torch.sigmoid(a)
        case("sigmoid_backward", [grad, out], [torch.ops.aten.sigmoid_backward(grad, out)])
    p = torch.tensor([0.1, 0.5, 0.9, 0.0, 1.0, 1.5])
    case("logit", [p], [torch.logit(p)])
    case("relu", [torch.tensor([-3, 4])], [torch.relu(torch.tensor([-3, 4]))])


def ternary() -> None:
    a, b, c = data(6), data(6, seed=1), data(6, seed=2)
    a[0] = math.nan
    condition = torch.tensor([True, False, True, False, False, True])
    case("where", [condition, a, b], [torch.where(condition, a, b)])
    case("where", [condition, a.half(), (f64, 0.1)], [torch.where(condition, a.half(), 0.1)], common=f16)
    case("clamp", [a, (f64, -0.5), (f64, 0.5)], [a.clamp(-0.5, 0.5)])
    case("clamp", [a, (f64, 0.5), (f64, -0.5)], [a.clamp(0.5, -0.5)])
    case("clamp_min", [a, b], [a.clamp_min(b)])
    case("clamp_max", [a, b], [a.clamp_max(b)])
    for weight, side in ((0.2, 1), (0.8, 2), (0.5, 2)):
        for attribute in (0, side):
            case("lerp", [a, b, (f64, weight)], [torch.lerp(a, b, weight)], attributes=[attribute], tolerance=1e-5)
    case("addcmul", [a, b, c, (f64, 0.7)], [torch.addcmul(a, b, c, value=0.7)])
    case("addcdiv", [a, b, c, (f64, 0.7)], [torch.addcdiv(a, b, c, value=0.7)])
    case("addcmul", [a.half(), b.half(), c.half(), (f64, 0.7)],
         [torch.addcmul(a.half(), b.half(), c.half(), value=0.7)])  # fmt: skip
    x = torch.tensor([math.nan, math.inf, -math.inf, 2.0])
    case("nan_to_num", [x, (f64, 1), (f64, 5), (f64, -6)], [torch.nan_to_num(x, 1, 5, -6)])
    case("mse", [a, b], [F.mse_loss(a, b, reduction="none")])
    case("scaled_difference", [c, a, b, (f64, 2)], [torch.ops.aten.mse_loss_backward(c, a, b, 0)])
    case("masked_scale", [a, condition, (f64, 1.25)], [torch.ops.aten.native_dropout_backward(a, condition, 1.25)])


def indices() -> None:
    a = torch.tensor([-1.5, 0.0, 2.5, 300.25, math.nan])
    case("copy", [a], [a.half()], common=f32)
    case("copy", [a[:3]], [a[:3].to(i32)])
    case("copy", [a], [a.bool()])
    case("copy", [torch.tensor([-1, 255, 256])], [torch.tensor([-1, 255, 256]).to(u8)])
    case("fill", [(f64, 0.1)], [torch.full((2, 3), 0.1)])
    case("fill", [(i64, 7)], [torch.full((3,), 7, dtype=i64)])
    case("arange", [(f64, 0.5), (f64, 0.1)], [torch.arange(0.5, 1.2, 0.1)])
    case("arange", [(i64, 3), (i64, -2)], [torch.arange(3, -9, -2)])
    m = data(2, 3, 4)
    for diagonal in (-1, 0, 1):
        case("tril", [m], [torch.tril(m, diagonal)], attributes=[diagonal])
        case("triu", [m], [torch.triu(m, diagonal)], attributes=[diagonal])


def reductions() -> None:
    x = data(3, 20)
    for dtype in (f32, f64, bf16):
        a = x.to(dtype)
        for name in words("sum prod amax amin mean"):
            extra = [(i64, 20)] if name == "mean" else []
            case(name, [a, *extra], [getattr(torch, name)(a, 1, keepdim=True)], reduced=[1])
        case("sum", [a], [a.sum(0, keepdim=True)], reduced=[0])
        case("sum", [a], [a.sum().reshape(1, 1)], reduced=[0, 1])
        case("logsumexp", [a], [torch.logsumexp(a, 1, keepdim=True)], reduced=[1])
        for attribute, order in ((0, 2), (1, 1), (2, math.inf), (3, -math.inf), (4, 0)):
            case("norm", [a], [torch.linalg.vector_norm(a, order, 1, keepdim=True)], attributes=[attribute],
                 reduced=[1])  # fmt: skip
    case("norm", [x, (f64, 3)], [torch.linalg.vector_norm(x, 3, 1, keepdim=True)], attributes=[5], reduced=[1])
    case("sum", [x.bfloat16()], [x.bfloat16().sum(1, keepdim=True, dtype=f32)], reduced=[1])
    counts = torch.tensor([[100, -50, 27], [127, 127, -3]], dtype=i8)
    case("sum", [counts], [counts.sum(1, keepdim=True)], reduced=[1])
    case("prod", [counts], [counts.prod(1, keepdim=True)], reduced=[1])
    case("amax", [counts], [counts.amax(1, keepdim=True)], reduced=[1])
    truth = torch.tensor([[True, False], [False, False], [True, True]])
    for name, function in (("amax", torch.amax), ("amin", torch.amin), ("any", torch.any), ("all", torch.all)):
        case(name, [truth], [function(truth, 1, keepdim=True)], reduced=[1])
    case("sum", [truth], [truth.sum(1, keepdim=True)], reduced=[1])
    floats = torch.tensor([[0.0, math.nan], [0.0, -0.0], [1.0, 0.0]])
    case("any", [floats], [floats.any(1, keepdim=True)], common=f32, reduced=[1])
    bytes_ = torch.tensor([[0, 3], [2, 4]], dtype=u8)
    case("all", [bytes_], [bytes_.all(1, keepdim=True)], reduced=[1])
    case("amax", [floats], [floats.amax(1, keepdim=True)], reduced=[1])
    for correction in (0, 1):
        for attribute, function in enumerate((torch.var_mean, torch.std_mean)):
            case("var", [x, (i64, 20), (f64, 20 - correction)], [*function(x, 1, correction=correction, keepdim=True)],
                 attributes=[attribute], reduced=[1])  # fmt: skip
    infinite = torch.tensor([[-math.inf, -math.inf], [math.inf, 1.0], [0.0, -math.inf]])
    case("logsumexp", [infinite], [torch.logsumexp(infinite, 1, keepdim=True)], reduced=[1])


def softmaxes() -> None:
    for dtype in (f32, f64, f16):
        a, grad = data(3, 9, dtype=dtype, scale=3.0), data(3, 9, dtype=dtype, seed=1)
        for dim in (0, 1):
            out, log_out = torch.softmax(a, dim), torch.log_softmax(a, dim)
            case("softmax", [a], [out], reduced=[dim])
            case("log_softmax", [a], [log_out], reduced=[dim])
            case("softmax_backward", [grad, out], [torch.ops.aten._softmax_backward_data(grad, out, dim, dtype)],
                 reduced=[dim], tolerance=2e-3 if dtype == f16 else None)  # fmt: skip
            case("log_softmax_backward", [grad, log_out],
                 [torch.ops.aten._log_softmax_backward_data(grad, log_out, dim, dtype)], reduced=[dim],
                 tolerance=2e-3 if dtype == f16 else None)  # fmt: skip
    masked = torch.tensor([[-math.inf, 0.0, 1.0], [-math.inf, -math.inf, -math.inf]])
    case("softmax", [masked], [torch.softmax(masked, 1)], reduced=[1])


def norms() -> None:
    x, grad = data(2, 3, 10, scale=2.0), data(2, 3, 10, seed=3)
    weight, bias = data(10, seed=1), data(10, seed=2)
    count, eps = (i64, 10), (f64, 1e-5)
    for bits in range(4):
        w, b = weight if bits & 1 else None, bias if bits & 2 else None
        out, mean, rstd = torch.native_layer_norm(x, [10], w, b, 1e-5)
        given = [t for t in (w, b) if t is not None]
        case("layer_norm", [x, count, eps, *given], [out, mean, rstd], attributes=[bits], reduced=[2], tolerance=1e-5)
    half = x.bfloat16()
    out, mean, rstd = torch.native_layer_norm(half, [10], weight, bias, 1e-5)
    case("layer_norm", [half, count, eps, weight, bias], [out, mean, rstd], common=bf16, attributes=[3], reduced=[2],
         tolerance=1.6e-2)  # fmt: skip
    out, mean, rstd = torch.native_layer_norm(x, [10], weight, bias, 1e-5)
    for w in (weight, None):
        affine = w is not None
        results = torch.ops.aten.native_layer_norm_backward(
            grad, x, [10], mean, rstd, w, bias if affine else None, [True, affine, affine]
        )
        given = [] if w is None else [w]
        case("layer_norm_backward", [grad, x, mean, rstd, count, *given], [results[0]], reduced=[2], tolerance=1e-5)
        if affine:
            grads = [g.reshape(1, 1, 10) for g in results[1:]]
            for bits in (1, 2, 3):
                outs = [g for k, g in enumerate(grads) if bits >> k & 1]
                case("layer_norm_backward_affine", [grad, x, mean, rstd], outs, attributes=[bits], reduced=[0, 1],
                     tolerance=1e-5)  # fmt: skip
    for w in (weight, None):
        rrms = torch.rsqrt((x * x).mean(2, keepdim=True) + 1e-5)
        given = [] if w is None else [w]
        case("rms_norm", [x, count, eps, *given], [F.rms_norm(x, [10], w, 1e-5), rrms], reduced=[2], tolerance=1e-5)


def decomposed_norms() -> None:
    """Batch, group and RMS norm, node by node; flags as in fusion/ops/norm.cpp."""
    x, grad = data(3, 4, 10, scale=2.0), data(3, 4, 10, seed=3)
    weight, bias = data(4, seed=1), data(4, seed=2)
    mean, var = data(4, seed=4), data(4, seed=5).square()
    count, eps, channels = (f64, 30), (f64, 1e-5), {"reduced": [0, 2], "tolerance": 1e-5}

    def along(vector):
        return vector[:, None]

    for w in (None, weight):
        for running in (False, True):
            old_mean, old_var = mean.clone(), var.clone()
            _, m, r = torch.native_batch_norm(x, w, bias, mean if running else None, var if running else None, True,
                                              0.1, 1e-5)  # fmt: skip
            given = [] if w is None else [along(w)]
            after = [along(mean.clone()), along(var.clone())] if running else []
            numbers = [along(old_mean), along(old_var), (f32, 0.1), (f32, 0.9), (f32, 29)] if running else []
            case("norm_rstd", [x, along(m), count, eps, *given, *numbers],
                 [along(r), along(r * (1 if w is None else w)), *after],
                 attributes=[8 | (0 if w is None else 1) | (16 if running else 0)], **channels)  # fmt: skip
    out, m, r = torch.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5)
    case("norm_apply", [x, along(m), along(r), along(weight), along(bias)], [out], attributes=[3], tolerance=1e-5)
    case("norm_apply", [x, along(m), along(r * weight)], [out - along(bias)], attributes=[0], tolerance=1e-5)
    case("norm_scale", [var, eps], [torch.rsqrt(var + 1e-5)])
    case("norm_scale", [var, eps, weight], [torch.rsqrt(var + 1e-5) * weight])
    grad_x, grad_w, grad_b = torch.ops.aten.native_batch_norm_backward(
        grad, x, weight, None, None, m, r, True, 1e-5, [True, True, True]
    )
    slope, offset, scale = grad_w * r / 30, grad_b / 30, r * weight
    results = [along(t) for t in (slope, offset, grad_w, grad_b, scale)]
    case("norm_backward_coefficients", [grad, x, along(m), along(r), count, along(weight)], results,
         attributes=[13], **channels)  # fmt: skip
    case("norm_backward_input", [grad, x, along(scale), along(slope), along(m), along(offset)], [grad_x],
         attributes=[4], tolerance=1e-5)  # fmt: skip
    leaf, factor = x.clone().requires_grad_(), data(10, seed=6)
    F.rms_norm(leaf, [10], factor, 1e-5).backward(grad)
    rrms = torch.rsqrt((x * x).mean(2, keepdim=True) + 1e-5)
    slope = (grad * factor * x).sum(2, keepdim=True) * rrms * rrms / 10
    case("norm_backward_coefficients", [grad, x, rrms, (f64, 10), factor], [slope], attributes=[1], reduced=[2],
         tolerance=1e-5)  # fmt: skip
    case("norm_backward_input", [grad, x, rrms, slope, factor], [leaf.grad], attributes=[1], tolerance=1e-5)
    case("layer_norm_backward_affine", [grad, x, rrms], [(grad * x * rrms).sum((0, 1), keepdim=True)], attributes=[5],
         reduced=[0, 1], tolerance=1e-5)  # fmt: skip


def extremes() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0, -1.0], [2.0, math.nan, 5.0, math.nan], [-math.inf] * 4])
    for dtype in (f32, bf16):
        a = x.to(dtype)
        for dim in (0, 1):
            for name in ("max", "min"):
                values, indices = getattr(torch, name)(a, dim, keepdim=True)
                case("first_index", [a, values], [indices], common=dtype, attributes=[dim], reduced=[dim])
        case("first_index", [a, a.amax().reshape(1, 1)], [a.argmax().reshape(1, 1)], common=dtype, attributes=[12],
             reduced=[0, 1])  # fmt: skip
        case("nansum", [a], [a.nansum(1, keepdim=True)], reduced=[1])
        case("count_nonzero", [a], [torch.count_nonzero(a, 1)[:, None]], reduced=[1])
    whole = torch.tensor([[0, 7, 7], [3, 3, 0]])
    case("first_index", [whole, whole.amax(1, keepdim=True)], [whole.argmax(1, keepdim=True)], attributes=[1],
         common=i64, reduced=[1])  # fmt: skip
    case("count_nonzero", [whole], [torch.count_nonzero(whole, 0)[None]], reduced=[0])


def cells() -> None:
    """Steps of LSTM and GRU against the CPU's, which are composed of other operators."""
    batch, size = 3, 4
    gates = [data(batch, 4 * size, seed=k).double() for k in (1, 2)]
    biases = [data(4 * size, seed=k).double() for k in (3, 4)]
    state, grad_h, grad_c = (data(batch, size, seed=k).double() for k in (5, 6, 7))

    def parts(tensor, count):
        return list(tensor.chunk(count, -1))

    for given in ([], biases):
        leaves = [t.clone().requires_grad_() for t in (*gates, state, *given)]
        total = leaves[0] + leaves[1] + sum(leaves[3:])
        i, f, c, o = total.chunk(4, 1)
        i, f, c, o = i.sigmoid(), f.sigmoid(), c.tanh(), o.sigmoid()
        cy = f * leaves[2] + i * c
        hy = o * cy.tanh()
        flat = [p for t in leaves[:2] for p in parts(t.detach(), 4)] + [state]
        flat += [p for t in given for p in parts(t, 4)]
        case("lstm_cell", flat, [t.detach() for t in (hy, cy, i, f, c, o)])
        if given:
            continue
        for attribute, outputs in ((1, [(hy, grad_h)]), (2, [(cy, grad_c)]), (3, [(hy, grad_h), (cy, grad_c)])):
            grads = torch.autograd.grad([a for a, _ in outputs], [total, leaves[2]], [b for _, b in outputs],
                                        retain_graph=True)  # fmt: skip
            saved = [t.detach() for t in (i, f, c, o, state, cy)]
            case("lstm_cell_backward", [*saved, *(b for _, b in outputs)], [*parts(grads[0], 4), grads[1]],
                 attributes=[attribute])  # fmt: skip
    gates = [g[:, : 3 * size] for g in gates]
    biases = [b[: 3 * size] for b in biases]
    for given in ([], biases):
        leaves = [t.clone().requires_grad_() for t in (*gates, state, *given)]
        from_input, from_hidden = (leaves[k] + (leaves[3 + k] if given else 0) for k in (0, 1))
        (ir, iz, n_in), (hr, hz, hidden) = from_input.chunk(3, 1), from_hidden.chunk(3, 1)
        r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
        n = (n_in + r * hidden).tanh()
        hy = n + z * (leaves[2] - n)
        flat = [p for t in leaves[:2] for p in parts(t.detach(), 3)] + [state]
        flat += [p for t in given for p in parts(t, 3)]
        case("gru_cell", flat, [t.detach() for t in (hy, r, z, n, state, hidden)])
        if not given:
            grads = torch.autograd.grad(hy, leaves, grad_h)
            case("gru_cell_backward", [grad_h, *(t.detach() for t in (r, z, n, state, hidden))],
                 [*parts(grads[0], 3), *parts(grads[1], 3), grads[2]])  # fmt: skip


def losses() -> None:
    logp = torch.log_softmax(data(4, 5), 1)
    logp[0, 3] = -math.inf  # of a class that is not picked
    target = torch.tensor([1, 4, -100, 0])
    weight = torch.tensor([1.0, 2.0, 0.5, 3.0, 0.25])
    for w in (None, weight):
        loss = F.nll_loss(logp, target, w, reduction="none", ignore_index=-100)
        row_weight = torch.where(target == -100, 0.0, (torch.ones(5) if w is None else w)[target.clamp(min=0)])
        given = [] if w is None else [w]
        case("nll_gather", [logp, target[:, None], (i64, -100), *given], [loss[:, None], row_weight[:, None]],
             attributes=[1], reduced=[1])  # fmt: skip
    grad, total = data(4, seed=1), torch.tensor([3.0])
    for reduction, g in ((0, grad), (1, grad[:1])):
        for w in (None, weight):
            backward = torch.ops.aten.nll_loss_backward(
                g if reduction == 0 else g[0], logp, target, w, reduction, -100, total[0]
            )
            given = ([total] if reduction == 1 else []) + ([] if w is None else [w])
            bits = reduction | (0 if w is None else 2)
            case("nll_backward", [g[:, None], target[:, None], (i64, -100), *given], [backward], attributes=[bits, -1])
    planes = torch.log_softmax(data(2, 3, 4), 1)
    picked = torch.tensor([[0, 2, 1, 0], [2, 2, 0, 1]])
    loss = F.nll_loss(planes, picked, reduction="none")
    case("nll_gather", [planes, picked[:, None], (i64, -100)], [loss[:, None], torch.ones(2, 1, 4)], attributes=[-2],
         reduced=[1])  # fmt: skip


def optimizers() -> None:
    shape, lr, beta2, decay, eps, step = (5,), 0.01, 0.95, 0.1, 1e-8, 3.0
    for flags in range(16):
        for beta1 in (0.9, 0.4) if flags == 0 else (0.9,):
            amsgrad, maximize, adam, scaled = (bool(flags >> k & 1) for k in range(4))
            param, grad, m, v = data(*shape), data(*shape, seed=1), data(*shape, seed=2), data(*shape, seed=3).square()
            max_v = data(*shape, seed=4).square()
            tensors = [param, grad, m, v] + ([max_v] if amsgrad else [])
            scale = torch.tensor(4.0) if scaled else None
            before = [t.clone() for t in tensors]
            function = torch._fused_adam_ if adam else torch._fused_adamw_
            function([param], [grad], [m], [v], [max_v] if amsgrad else [], [torch.tensor(step)], amsgrad=amsgrad,
                     lr=lr, beta1=beta1, beta2=beta2, weight_decay=decay, eps=eps, maximize=maximize,
                     grad_scale=scale, found_inf=None)  # fmt: skip
            outputs = [param, m, v] + ([max_v] if amsgrad else []) + ([grad] if scaled else [])
            numbers = [(f64, lr), (f64, beta1), (f64, beta2), (f64, decay), (f64, eps)]
            last = [scale.reshape(1)] if scaled else []
            attribute = flags | (32 if 1 - beta1 >= 0.5 else 0)
            corrections = [(f64, 1 - beta1**step), (f64, math.sqrt(1 - beta2**step))]
            case("fused_adamw", [*before, torch.tensor([step]), *numbers, *last], outputs, attributes=[attribute],
                 tolerance=1e-5)  # fmt: skip
            case("fused_adamw", [*before, *corrections, *numbers, *last], outputs, attributes=[attribute | 16],
                 tolerance=1e-5)  # fmt: skip


def simple_optimizers() -> None:
    """SGD, Adagrad, steps that are skipped, and the gradient scaler."""
    lr, decay, momentum, dampening, eps = 0.05, 0.1, 0.9, 0.3, 1e-8
    one = torch.tensor(1.0)
    for maximize, scaled, found, decays in [(0, 0, None, 1), (1, 1, 0.0, 0), (0, 1, 1.0, 1)]:
        common = (2 if maximize else 0) | (8 if scaled else 0) | (0 if decays else 64) | (0 if found is None else 128)
        options = {
            "weight_decay": decay * decays,
            "lr": lr,
            "maximize": bool(maximize),
            "grad_scale": one * 4 if scaled else None,
            "found_inf": None if found is None else one * found,
        }
        last = ([torch.tensor([4.0])] if scaled else []) + ([] if found is None else [torch.tensor([found])])
        for form in (0, 256, 256 | 1024, 256 | 512):
            param, grad, buffer = data(5), data(5, seed=1), data(5, seed=2)
            given = [param, grad] + ([buffer] if form else [])
            before = [t.clone() for t in given]
            torch._fused_sgd_([param], [grad], [buffer] if form else [], momentum=momentum if form else 0.0,
                              dampening=dampening, nesterov=bool(form & 1024), is_first_step=bool(form & 512),
                              **options)  # fmt: skip
            numbers = [(f32, lr), (f32, decay * decays), (f32, momentum), (f32, 1 - dampening)]
            outputs = [param] + ([buffer] if form else []) + ([grad] if scaled else [])
            case("fused_sgd", [*before, *numbers, *last], outputs, attributes=[common | form], tolerance=1e-5)
        param, grad, total = data(5), data(5, seed=1), data(5, seed=2).square()
        before = [t.clone() for t in (param, grad, total)]
        torch._fused_adagrad_([param], [grad], [total], [torch.tensor(3.0)], lr_decay=0.2, eps=eps, **options)
        numbers = [(f64, lr / (1 + 2 * 0.2)), (f32, decay * decays), (f32, eps)]
        case("fused_adagrad", [*before, *numbers, *last], [param, total] + ([grad] if scaled else []),
             attributes=[common], tolerance=1e-5)  # fmt: skip
        param, grad, m, v = data(5), data(5, seed=1), data(5, seed=2), data(5, seed=3).square()
        before = [t.clone() for t in (param, grad, m, v)]
        torch._fused_adamw_([param], [grad], [m], [v], [], [torch.tensor(3.0)], amsgrad=False, beta1=0.9, beta2=0.95,
                            eps=eps, **options)  # fmt: skip
        numbers = [(f64, 1 - 0.9**3), (f64, math.sqrt(1 - 0.95**3)), (f64, lr), (f64, 0.9), (f64, 0.95),
                   (f64, decay * decays), (f64, eps)]  # fmt: skip
        case("fused_adamw", [*before, *numbers, *last], [param, m, v] + ([grad] if scaled else []),
             attributes=[common | 16], tolerance=1e-5)  # fmt: skip
    for scale, successes, found in [(8.0, 0, 0.0), (8.0, 1, 0.0), (8.0, 1, 1.0), (3e38, 1, 0.0)]:
        before = [torch.tensor([scale]), torch.tensor([successes], dtype=i32)]
        after = [t.clone() for t in before]
        torch._amp_update_scale_(*after, torch.tensor([found]), 2.0, 0.5, 2)
        case("amp_update_scale", [*before, torch.tensor([found]), (f64, 2), (f64, 0.5), (i64, 2)], after,
             common=f32, tolerance=0)  # fmt: skip


if __name__ == "__main__":
    for family in (
        unary,
        binary,
        activations,
        ternary,
        indices,
        reductions,
        softmaxes,
        norms,
        decomposed_norms,
        extremes,
        cells,
        losses,
        optimizers,
        simple_optimizers,
    ):
        family()
    add_pointwise_cases(case, data)
    header = f'// Written by ops_cases.py from torch {torch.__version__.split("+")[0]}; do not edit.\nR"('
    Path(__file__).with_suffix(".inc").write_text(header + "\n".join(lines) + ')"\n')
