"""Write ops_cases.inc: operators' inputs and the outputs that torch's CPU kernels give for them.

Run with the project's Python whenever a case is added: ``python tests/cpp/ops_cases.py``.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

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


if __name__ == "__main__":
    for family in (unary, binary, activations, ternary, indices, reductions, softmaxes, norms, losses, optimizers):
        family()
    header = f'// Written by ops_cases.py from torch {torch.__version__.split("+")[0]}; do not edit.\nR"('
    Path(__file__).with_suffix(".inc").write_text(header + "\n".join(lines) + ')"\n')
