"""How to draw arguments for each operator that the device registers: a table from an operator's name to a rule.

Argument names and types come from PyTorch's schemas; a rule says what they do not: which dtypes make sense, how shapes
go together, and how the result may differ from PyTorch's CPU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from programs import Generator

__all__ = ["NOT_DRAWN", "RULES", "Rule", "base_of"]

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
INTS = (torch.int64, torch.int32, torch.uint8)
KINDS = {"f": FLOATS, "i": INTS, "b": (torch.bool,)}

# Registered, but not an operator in our sense (allocation, views, metadata), or reached by every program anyway.
NOT_DRAWN = frozenset({
    "empty", "empty_strided", "_efficientzerotensor",  # allocation: results are not defined
    "as_strided", "view", "_reshape_alias", "unfold", "view_as_real", "view_as_complex",  # views, drawn as such
    "is_set_to", "_has_compatible_shallow_copy_type", "record_stream",  # metadata
    "resize", "set",  # storage operations, drawn as such
    "_copy_from", "_copy_from_and_resize", "_local_scalar_dense",  # under copy_, to, tolist and item
    "_lazy_clone",  # no operator of Python; the CPU answers with copy-on-write, which the device cannot have
    "_fused_sdp_choice",  # under scaled_dot_product_attention
})  # fmt: skip

Arguments = dict[str, str]
Draw = Callable[["Generator", "Rule", Any], Arguments]


def base_of(name: str) -> str:
    """Return the name of an operator's rule: ``aten::add_.Tensor`` has the rule of ``add``."""
    base = name.removeprefix("aten::").split(".")[0]
    return base if base.startswith("__") else base.removesuffix("_")


def is_in_place(schema: Any) -> bool:
    """Whether an operator writes to its first argument."""
    return bool(schema.arguments) and schema.arguments[0].is_write and not schema.arguments[0].is_out


def generic(g: Generator, rule: Rule, schema: Any, given: Arguments, like: str | None = None) -> Arguments:
    """Fill in the arguments that have not been ``given``, by their types; tensors broadcast with ``like``."""
    out = dict(given)
    for argument in schema.arguments:
        kind, name = str(argument.type), argument.name
        if name in out or argument.is_out or (argument.has_default_value() and g.chance(0.5)):
            continue
        if name == "generator" or kind == "Optional[Generator]":
            continue
        if name in rule.numbers and "Tensor" not in kind:
            out[name] = rule.numbers[name](g)
        elif name in ("alpha", "beta") and kind == "number":
            out[name] = g.number(like, finite=True)
        elif kind == "Tensor" or (kind == "Optional[Tensor]" and g.chance(0.7)):
            dtype = g.dtype_of(like) if like and (rule.same or g.chance(0.7)) else None
            fixed = like is not None and (is_in_place(schema) or rule.same_shape)
            out[name] = g.tensor(
                rule.kinds, dtype=dtype, fits=like, grow=not fixed, exact=rule.same_shape, tame=rule.tame
            )
            like = like or out[name]
        elif kind in ("number", "Optional[number]", "float", "Optional[float]"):
            if kind.startswith("Optional") and g.chance(0.3):
                out[name] = "None"
            else:
                out[name] = g.number(like, exact=kind.endswith("float]") or kind == "float")
        elif kind == "bool":
            out[name] = str(g.chance(0.5))
        elif name == "dtype" or kind.startswith("Optional"):
            out[name] = "None"
        elif kind == "int":
            out[name] = str(g.integer(-2, 2))
        else:
            raise NotImplementedError(f"no way to draw {kind} {name} of {schema}")
    return out


def pointwise(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw tensors that broadcast with each other."""
    return generic(g, rule, schema, {})


def conditional(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw `where` and `masked_fill`, whose mask is bool, and whose value is 0-dim."""
    names = [argument.name for argument in schema.arguments]
    shape = g.tensor(rule.kinds)
    given = {"self": shape} if "self" in names else {}
    for name in ("condition", "mask"):
        if name in names:
            given[name] = g.tensor("b", fits=shape, grow=not is_in_place(schema))
    if "value" in names:
        scalar = str(schema.arguments[names.index("value")].type) == "number"
        given["value"] = g.number(shape) if scalar else g.fresh((), g.dtype_of(shape))
    return generic(g, rule, schema, given, like=shape)


def matrices(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a tensor of at least two dimensions (tril, triu)."""
    return generic(g, rule, schema, {"self": g.tensor(rule.kinds, rank=(2, 4))})


def dims_of(g: Generator, tensor: str, several: bool) -> str:
    """Draw a dimension or a list of different ones, negative now and then."""
    rank = g.rank_of(tensor)
    if not several:
        return str(g.integer(-rank, rank - 1) if rank else g.choice((0, -1)))
    dims = [d for d in range(rank) if g.chance(0.5)]
    return str([d - rank if g.chance(0.3) else d for d in dims])


def reduction(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a tensor and dimensions of it."""
    self = g.tensor(rule.kinds, tame=True)
    given = {"self": self}
    for argument in schema.arguments:
        if argument.name == "dim":
            kind = str(argument.type)
            if kind.startswith("Optional") and g.chance(0.2):
                given["dim"] = "None"
            else:
                given["dim"] = dims_of(g, self, "List" in kind)
                if given["dim"] == "[]" and base_of(schema.name) == "logsumexp":  # which the CPU refuses by accident
                    given["dim"] = "[0]"
        elif argument.name in ("correction",):
            given["correction"] = g.choice(("0", "1", "None", "0.5"))
        elif argument.name in ("p", "ord"):
            given[argument.name] = g.choice(("2", "1", "0", "3", "float('inf')", "float('-inf')"))
        elif argument.name == "dtype" and not argument.has_default_value():
            given["dtype"] = str(g.choice((torch.float32, torch.float64)))
    return generic(g, rule, schema, given, like=self)


def softmax_like(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw softmax, its logarithm and their backwards."""
    names = [argument.name for argument in schema.arguments]
    if "grad_output" not in names:
        self = g.tensor("f", tame=True)
        return {"self": self, "dim": dims_of(g, self, False), "half_to_float": "False"}
    dtype, shape = g.choice(FLOATS[:2]), g.shape(rank=(1, 3))
    source = g.fresh(shape, dtype)
    dim = dims_of(g, source, False)
    log = "log" in schema.name
    output = g.line(f"torch.{'log_softmax' if log else 'softmax'}({source}, {dim})", "loose")
    return {"grad_output": g.fresh(shape, dtype), "output": output, "dim": dim, "input_dtype": str(dtype)}


def with_output(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a backward whose second tensor is the forward's input or result: same shapes and dtypes."""
    first = g.tensor("f", tame=True)
    return generic(g, rule, schema, {schema.arguments[0].name: first}, like=first)


def matmul(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw matrix products in all their ranks; transposed operands now and then."""
    n, k, m, b = (g.integer(0, 7) if g.chance(0.1) else g.integer(1, 7) for _ in range(4))
    dtype = g.choice((*FLOATS[:3], torch.float64, torch.int64))

    def matrix(*shape: int) -> str:
        if len(shape) >= 2 and g.chance(0.4):
            return g.line(f"{g.fresh((*shape[:-2], shape[-1], shape[-2]), dtype)}.mT")
        return g.fresh(shape, dtype)

    shapes = {
        "mm": {"self": (n, k), "mat2": (k, m)},
        "bmm": {"self": (b, n, k), "mat2": (b, k, m)},
        "mv": {"self": (n, k), "vec": (k,)},
        "dot": {"self": (k,), "tensor": (k,)},
        "addmm": {"self": (n, m), "mat1": (n, k), "mat2": (k, m)},
        "addmv": {"self": (n,), "mat": (n, k), "vec": (k,)},
        "baddbmm": {"self": (b, n, m), "batch1": (b, n, k), "batch2": (b, k, m)},
    }[base_of(schema.name)]
    given = {name: matrix(*shape) for name, shape in shapes.items()}
    return generic(g, rule, schema, given, like=given["self"])


def list_of(g: Generator, count: int, dtype: torch.dtype, shapes: list[tuple[int, ...]], positive: bool = False) -> str:
    """Draw a list of tensors."""
    return "[" + ", ".join(g.fresh(shapes[i], dtype, "positive" if positive else None) for i in range(count)) + "]"


def foreach(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw lists of tensors of the same shapes."""
    count = g.integer(1, 4)
    dtype = g.choice((*FLOATS[:2], torch.float64))
    shapes = [g.shape() for _ in range(count)]
    given: Arguments = {}
    for argument in schema.arguments:
        kind, name = str(argument.type), argument.name
        if kind == "List[Tensor]":
            given[name] = list_of(g, count, dtype, shapes)
        elif kind == "List[number]":
            given[name] = str([g.choice((0.5, -1.5, 2.0)) for _ in range(count)])
        elif kind == "Tensor" and name == "scalars":
            given[name] = f"torch.tensor({[g.choice((0.5, -1.5, 2.0)) for _ in range(count)]})"
        elif kind == "Tensor":
            given[name] = g.fresh((), dtype)
        elif name == "ord":
            given[name] = g.choice(("2", "1", "float('inf')"))
        elif kind == "number" and (name == "self" or not argument.has_default_value()):
            given[name] = g.choice(("0.5", "2.0", "-1.5"))
    return generic(g, rule, schema, given)


def adamw(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw the fused optimizers' step."""
    count, dtype = g.integer(1, 3), g.choice((torch.float32, torch.float64))
    shapes = [g.shape() for _ in range(count)]
    amsgrad = g.chance(0.3)
    given = {
        "self": list_of(g, count, dtype, shapes),
        "grads": list_of(g, count, dtype, shapes),
        "exp_avgs": list_of(g, count, dtype, shapes),
        "exp_avg_sqs": list_of(g, count, dtype, shapes, positive=True),
        "max_exp_avg_sqs": list_of(g, count, dtype, shapes, positive=True) if amsgrad else "[]",
        "state_steps": "[" + ", ".join(g.line("torch.full((), 3.0, device=device)") for _ in range(count)) + "]",
        "beta1": "0.9", "beta2": "0.99", "weight_decay": g.choice(("0.0", "0.1")), "eps": "1e-8",
        "amsgrad": str(amsgrad), "maximize": str(g.chance(0.3)),
        "grad_scale": g.line("torch.full((), 4.0, device=device)") if g.chance(0.4) else "None",
        "found_inf": g.line(f"torch.full((), {g.choice((0.0, 1.0))}, device=device)") if g.chance(0.4) else "None",
    }  # fmt: skip
    lr = next(argument for argument in schema.arguments if argument.name == "lr")
    given["lr"] = "0.01" if str(lr.type) == "float" else "torch.tensor(0.01)"
    return given


def unscale(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw gradients to be unscaled, with infinities now and then."""
    shapes = [g.shape() for _ in range(g.integer(1, 3))]
    parts = [g.fresh(shape, torch.float32, g.choice(("normal", "special"))) for shape in shapes]
    return {"self": f"[{', '.join(parts)}]", "found_inf": g.line("torch.zeros((), device=device)"),
            "inv_scale": g.line("torch.full((), 0.5, device=device)")}  # fmt: skip


def layer_norm(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw layer norm over the last dimensions; its backward gets the forward's own mean and rstd."""
    dtype, shape = g.choice(FLOATS), g.shape(rank=(1, 3), least=2)
    cut = g.integer(1, len(shape))
    normalized = shape[-cut:]
    source = g.fresh(shape, dtype, "normal")
    weight = g.fresh(normalized, dtype) if g.chance(0.7) else "None"
    bias = g.fresh(normalized, dtype) if g.chance(0.7) else "None"
    if "backward" not in schema.name:
        return {
            "input": source,
            "normalized_shape": str(list(normalized)),
            "weight": weight,
            "bias": bias,
            "eps": "1e-5",
        }
    stats = g.line(f"aten.native_layer_norm.default({source}, {list(normalized)}, {weight}, {bias}, 1e-5)", "loose")
    _, mean, rstd = stats.split(", ")
    masks = [True, weight != "None", bias != "None"]
    return {"grad_out": g.fresh(shape, dtype), "input": source, "normalized_shape": str(list(normalized)), "mean": mean,
            "rstd": rstd, "weight": weight, "bias": bias, "output_mask": str(masks)}  # fmt: skip


def nll(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw the negative log likelihood of random classes."""
    rows, classes, dtype = g.integer(1, 5), g.integer(2, 6), g.choice(FLOATS[:2])
    self = g.fresh((rows, classes), dtype, "normal")
    target = g.line(f"make({(rows,)}, torch.int64, {g.seed()}, 'index', {classes})")
    weight = g.fresh((classes,), dtype, "positive") if g.chance(0.4) else "None"
    reduce, ignore = str(g.integer(0, 2)), g.choice(("-100", "1"))
    given = {"self": self, "target": target, "weight": weight, "reduction": reduce, "ignore_index": ignore}
    if "backward" in schema.name:
        forward = g.line(f"aten.nll_loss_forward.default({self}, {target}, {weight}, {reduce}, {ignore})", "loose")
        given["grad_output"] = g.line(f"torch.ones_like({forward.split(', ')[0]})")
        given["total_weight"] = forward.split(", ")[1]
    return given


def embedding(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw rows of a table."""
    rows, width, dtype = g.integer(1, 6), g.integer(1, 5), g.choice(FLOATS)
    shape = g.shape(rank=(1, 2), least=1)
    indices = g.line(f"make({shape}, {g.choice((torch.int64, torch.int32))}, {g.seed()}, 'index', {rows})")
    if "backward" not in schema.name:
        return {"weight": g.fresh((rows, width), dtype), "indices": indices, "padding_idx": "-1"}
    return {"grad_output": g.fresh((*shape, width), dtype), "indices": indices, "num_weights": str(rows),
            "padding_idx": g.choice(("-1", "0")), "scale_grad_by_freq": str(g.chance(0.3))}  # fmt: skip


def attention(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw scaled dot product attention with equal heads."""
    b, h, n, width = g.integer(1, 3), g.integer(1, 3), g.integer(1, 9), g.choice((4, 8, 16))
    dtype = g.choice(FLOATS[:2])
    given = {name: g.fresh((b, h, n, width), dtype, "normal") for name in ("query", "key", "value")}
    causal = str(g.chance(0.5))
    if "backward" not in schema.name:
        return given | {"attn_bias": "None", "dropout_p": "0.0", "is_causal": causal, "return_debug_mask": "False"}
    raise NotImplementedError("drawn through autograd")


def attend(g: Generator, rule: Rule, schema: Any) -> str:
    """Write attention as Python has it, with its backward: the device's own operators exist there only."""
    a = attention(g, rule, torch.ops.aten._scaled_dot_product_fused_attention_overrideable.default._schema)
    call = f"F.scaled_dot_product_attention({{}}, {{}}, {{}}, is_causal={a['is_causal']})"
    low = g.dtype_of(a["query"]) == torch.bfloat16
    return through_autograd(g, call, [a[name] for name in ("query", "key", "value")], 3e-2 if low else 2e-5)


def through_autograd(g: Generator, expression: str, leaves: list[str], slack: float) -> str:
    """Write a call with gradients for all of its leaves, the first result's backward, and one gradient."""
    wanted = [g.line(f"{leaf}.detach().clone().requires_grad_()") for leaf in leaves]
    result = g.line(expression.format(*wanted), slack=slack).split(", ")[0]
    g.statement(f"({result} * {g.line(f'{result}.detach().cos()', slack=slack)}).sum().backward()", "close")
    return g.line(f"{wanted[g.integer(0, len(wanted) - 1)]}.grad.clone()", slack=slack * 10)


def convolve(g: Generator, rule: Rule, schema: Any) -> str:
    """Write a convolution as Python has it, with its backward: the device's own operators exist there only."""
    groups, dims = g.integer(1, 2), g.integer(1, 2)
    channels, made, size = groups * g.integer(1, 2), groups * g.integer(1, 3), g.integer(3, 6)
    x = g.fresh((g.integer(1, 3), channels, *[size] * dims), torch.float32, "normal")
    w = g.fresh((made, channels // groups, *[g.integer(1, 3)] * dims), torch.float32, "normal")
    b = g.fresh((made,), torch.float32, "normal")
    options = f"stride={g.integer(1, 2)}, padding={g.integer(0, 1)}, dilation=1, groups={groups}"
    return through_autograd(g, f"F.conv{dims}d({{}}, {{}}, {{}}, {options})", [x, w, b], 1e-4)


def cell(g: Generator, rule: Rule, schema: Any) -> str:
    """Write a step of a recurrent network as Python has it, with its backward.

    The CPU composes it of in-place operators, whose number of versions is its own affair: the results are copied.
    """
    kind = g.choice((("gru", 3), ("lstm", 4)))
    batch, width, hidden = g.integer(1, 4), g.integer(1, 5), g.integer(1, 5)
    rows = kind[1] * hidden
    x, h, c = (g.fresh((batch, n), torch.float32, "normal") for n in (width, hidden, hidden))
    weights = [g.fresh(shape, torch.float32, "normal") for shape in ((rows, width), (rows, hidden), (rows,), (rows,))]
    if kind[0] == "gru":
        return through_autograd(g, "torch.gru_cell({}, {}, {}, {}, {}, {}).clone()", [x, h, *weights], 1e-4)
    return through_autograd(g, "torch.cat(torch.lstm_cell({}, ({}, {}), {}, {}, {}, {}))", [x, h, c, *weights], 1e-4)


def layers(g: Generator, rule: Rule, schema: Any) -> str:
    """Write layers of an LSTM as Python has them, with their backward."""
    batch, width, hidden = g.integer(1, 4), g.integer(1, 5), g.integer(1, 5)
    both = g.chance(0.5)
    x = g.fresh((g.integer(1, 4), batch, width), torch.float32, "normal")
    states = [g.fresh((1 + both, batch, hidden), torch.float32, "normal") for _ in range(2)]
    shapes = ((4 * hidden, width), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,)) * (1 + both)
    weights = [g.fresh(shape, torch.float32, "normal") for shape in shapes]
    names = ", ".join(["{}"] * len(weights))
    call = f"torch.lstm({{}}, ({{}}, {{}}), ({names}), True, 1, 0.0, True, {both}, False)[0]"
    return through_autograd(g, call, [x, *states, *weights], 1e-4)


def cat(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw tensors that differ in one dimension, and an empty vector among them."""
    shape, dtype = g.shape(rank=(1, 3)), g.choice(FLOATS + INTS)
    dim = g.integer(0, len(shape) - 1)
    parts = [g.fresh((*shape[:dim], g.integer(0, 3), *shape[dim + 1 :]), dtype) for _ in range(g.integer(1, 4))]
    if g.chance(0.2):
        parts.append(g.fresh((0,), dtype))
    return {"tensors": "[" + ", ".join(parts) + "]", "dim": str(dim - len(shape) if g.chance(0.3) else dim)}


def indexed(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw the family of index operators: a list of index tensors, or one dimension and its indices."""
    names = {argument.name: str(argument.type) for argument in schema.arguments}
    dtype = g.choice(rule_dtypes(rule))
    shape = g.shape(rank=(1, 3), least=1)
    self = g.fresh(shape, dtype)
    given = {"self": self}
    count = g.integer(1, 4)
    if "indices" in names:
        used = g.integer(1, len(shape))
        given["indices"] = "[" + ", ".join(g.index((count,), shape[d]) for d in range(used)) + "]"
        given["values"] = g.fresh((count, *shape[used:]) if g.chance(0.7) else (), dtype)
        given["accumulate"], given["unsafe"] = str(g.chance(0.4)), "False"
    else:
        dim = g.integer(0, len(shape) - 1)
        given["dim"] = str(dim)
        if base_of(schema.name) in ("gather", "scatter", "scatter_add", "scatter_reduce"):
            part = tuple(g.integer(1, n) for n in shape)
            given["index"] = g.index(part, shape[dim])
            given["src"] = g.fresh(part, dtype)
        else:
            given["index"] = g.index((count,), shape[dim])
            given["source"] = g.fresh((*shape[:dim], count, *shape[dim + 1 :]), dtype)
            given["mask"] = g.fresh(shape, torch.bool)
            if "Tensor" in names.get("value", ""):
                given["value"] = g.fresh((), dtype)
    given = {name: text for name, text in given.items() if name in names}
    return generic(g, rule, schema, given, like=self)


def rule_dtypes(rule: Rule) -> tuple[torch.dtype, ...]:
    """List the dtypes of a rule's kinds."""
    return tuple(dtype for kind in rule.kinds for dtype in KINDS[kind])


def random_fill(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a tensor to be filled with random numbers, and their range."""
    names = [argument.name for argument in schema.arguments]
    self = g.tensor(rule.kinds)
    given = {names[0]: self}
    numbers = {"from": "-3", "to": "9", "lambd": "1.5", "mean": "0.5", "std": "2.0"}
    given |= {name: text for name, text in numbers.items()
              if name in names}  # fmt: skip
    if base_of(schema.name) == "bernoulli":
        tensor = "p" in names and str(schema.arguments[names.index("p")].type) == "Tensor"
        given = {"self": g.fresh(g.shape(), torch.float32, "unit")}
        if "p" in names:
            given["p"] = g.fresh((), torch.float32, "unit") if tensor else "0.4"
    if base_of(schema.name) == "native_dropout":
        given |= {"p": g.choice(("0.5", "0.1", "0.0")), "train": g.choice(("True", "True", "False"))}
    return given


def arange(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a range of numbers."""
    return {
        "start": g.choice(("0", "-3", "1.5")),
        "end": g.choice(("5", "11", "7.5")),
        "step": g.choice(("1", "2", "0.5")),
    }


def pair(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw two tensors, equal now and then (equal)."""
    self = g.tensor("fib")
    return {"self": self, "other": g.line(f"{self}.clone()") if g.chance(0.5) else g.tensor("fib", fits=self)}


def one(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a tensor only."""
    return generic(g, rule, schema, {"self": g.tensor(rule.kinds)})


def filled(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a tensor to be filled, and a number or a 0-dim tensor."""
    given = {"self": g.tensor(rule.kinds)}
    if schema.overload_name == "Tensor":
        given["value"] = g.fresh((), g.choice(FLOATS + INTS))
    return generic(g, rule, schema, given)


@dataclasses.dataclass(frozen=True)
class Rule:
    """How to draw an operator and how to compare it with PyTorch's CPU.

    ``compare`` is one of

    - ``exact``;
    - ``close``: `torch.testing.assert_close`'s defaults;
    - ``rounded``: exact, but half types are close, since the CPU's own paths round them differently;
    - ``wide``: close, but half types are not compared, since the CPU accumulates in them;
    - ``loose``: shape and dtype only (random numbers).

    Sums of n terms round by their size, not by that of their result, so ``slack`` adds the terms' sizes (``sum``: of x,
    ``square``: of x squared, ``most``: the largest) times a few roundings. ``plain_out``: PyTorch's CPU is wrong for
    outputs that are not contiguous; ``fresh_out``: for outputs that are inputs.
    """

    kinds: str = "f"
    draw: Draw = pointwise
    compare: str = "close"
    slack: str = ""
    same: bool = False
    same_shape: bool = False
    tame: bool = False
    plain_out: bool = False
    fresh_out: bool = False
    numbers: dict[str, Callable[[Generator], str]] = dataclasses.field(default_factory=dict)
    replacement: Callable[[Generator, Rule, Any], str] | None = None


def _table() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}

    def put(names: str, rule: Rule) -> None:
        for name in names.split():
            rules[name] = rule

    positive = {"negative_slope": lambda g: g.choice(("0.01", "0.3")), "alpha": lambda g: g.choice(("1.0", "0.5"))}
    reduce = {"reduction": lambda g: str(g.integer(0, 2))}
    put("add sub rsub mul", Rule("fib", compare="rounded"))
    put("maximum minimum fmax fmin", Rule("fib"))
    put(
        "div copysign atan2", Rule("fib", numbers={"rounding_mode": lambda g: g.choice(("None", "'trunc'", "'floor'"))})
    )
    put("floor_divide remainder fmod", Rule("fi", tame=True))
    put("pow", Rule("fi", tame=True))
    put("hypot logaddexp logaddexp2", Rule("f"))
    put(
        "bitwise_and bitwise_or bitwise_xor bitwise_not logical_and logical_or logical_xor", Rule("ib", compare="exact")
    )
    put("bitwise_left_shift bitwise_right_shift __lshift__ __rshift__ __ilshift__ __irshift__",
        Rule("i", compare="exact", numbers={"other": lambda g: str(g.integer(0, 5))}))  # fmt: skip
    put("eq ne lt le gt ge logical_not isnan isinf isfinite signbit isposinf isneginf", Rule("fib", compare="exact"))
    put("neg abs sign sgn floor ceil trunc round square relu", Rule("fi", compare="exact"))
    put("sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh "
        "asinh acosh atanh erf erfc sigmoid deg2rad rad2deg", Rule("fib"))  # fmt: skip
    put("frac", Rule("f", compare="exact"))
    put("erfinv lgamma digamma logit i0 sinc special_ndtri nan_to_num log_sigmoid_forward mish hardswish hardsigmoid "
        "silu gelu softplus elu leaky_relu hardtanh threshold celu selu hardshrink softshrink", Rule("f", tame=True,
        numbers={**positive, "approximate": lambda g: g.choice(("'none'", "'tanh'")),
                 "beta": lambda g: g.choice(("1", "2.0")), "eps": lambda g: g.choice(("1e-3", "None")),
                 "threshold": lambda g: g.choice(("20", "0.5")), "lambd": lambda g: "0.5",
                 "scale": lambda g: "1.0", "input_scale": lambda g: "1.0", "min_val": lambda g: "-0.75",
                 "max_val": lambda g: "1.5"}))  # fmt: skip
    rules["softplus"] = dataclasses.replace(
        rules["softplus"], numbers={**rules["softplus"].numbers, "threshold": lambda g: "20"}
    )
    rules["gelu"] = dataclasses.replace(rules["gelu"], plain_out=True)
    put("threshold_backward leaky_relu_backward silu_backward gelu_backward softplus_backward tanh_backward "
        "sigmoid_backward elu_backward hardtanh_backward", Rule("f", with_output,
        same=True, same_shape=True, tame=True, slack="most",
        numbers={"approximate": lambda g: g.choice(("'none'", "'tanh'")), "beta": lambda g: "1.5",
                 "threshold": lambda g: g.choice(("0", "2")), "negative_slope": lambda g: "0.1",
                 "self_is_result": lambda g: "False", "alpha": lambda g: "1.0", "scale": lambda g: "1.0",
                 "input_scale": lambda g: "1.0", "is_result": lambda g: "False", "min_val": lambda g: "-0.75",
                 "max_val": lambda g: "1.5"}))  # fmt: skip
    put("mse_loss l1_loss smooth_l1_loss huber_loss", Rule("f", with_output, same=True,
        tame=True, same_shape=True, slack="square", numbers=reduce))  # fmt: skip
    put("mse_loss_backward smooth_l1_loss_backward", Rule("f", with_output, same=True, same_shape=True,
        tame=True, slack="most", numbers=reduce))  # fmt: skip
    put("where masked_fill", Rule("fib", conditional, compare="exact"))
    put("clamp clamp_min clamp_max", Rule("fi"))
    put("lerp", Rule("f", same=True, tame=True))
    put("addcmul", Rule("fi", tame=True))
    put("addcdiv", Rule("f", tame=True))
    put("tril triu", Rule("fib", matrices, compare="exact"))
    put("sum mean nansum cumsum", Rule("fi", reduction, slack="sum"))
    put("prod cumprod", Rule("fi", reduction, compare="wide"))
    put("any all argmax argmin", Rule("fib", reduction, compare="exact"))
    put("amax amin max min", Rule("fib", reduction))
    put("var std var_mean std_mean", Rule("f", reduction, slack="square"))
    put("linalg_vector_norm norm logsumexp _logcumsumexp", Rule("f", reduction, slack="square"))
    put("_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data _safe_softmax",
        Rule("f", softmax_like, slack="most", plain_out=True))  # fmt: skip
    put("mm addmm bmm baddbmm mv addmv dot", Rule("fi", matmul, slack="square", fresh_out=True))
    put("native_layer_norm native_layer_norm_backward", Rule("f", layer_norm, slack="sum"))
    put("nll_loss_forward nll_loss_backward", Rule("f", nll))
    put("embedding embedding_dense_backward", Rule("f", embedding, slack="sum"))
    put("_scaled_dot_product_fused_attention_overrideable _scaled_dot_product_fused_attention_overrideable_backward",
        Rule("f", attention, replacement=attend))  # fmt: skip
    put("convolution_overrideable convolution_backward_overrideable", Rule("f", convolve, replacement=convolve))
    put("_thnn_fused_gru_cell _thnn_fused_gru_cell_backward _thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl",
        Rule("f", cell, replacement=cell))  # fmt: skip
    put("lstm mkldnn_rnn_layer mkldnn_rnn_layer_backward", Rule("f", layers, replacement=layers))
    put("cat", Rule("fi", cat, compare="exact"))
    put("index _index_put_impl index_put index_select gather masked_select index_fill index_copy scatter",
        Rule("fi", indexed, compare="exact"))  # fmt: skip
    put("index_add scatter_add", Rule("fi", indexed, slack="sum"))
    put("index _index_put_impl index_put", Rule("fi", indexed, slack="sum"))
    put("uniform normal exponential", Rule("f", random_fill, compare="loose"))
    put("random bernoulli", Rule("fi", random_fill, compare="loose"))
    put("native_dropout", Rule("f", random_fill, compare="loose"))
    put("native_dropout_backward", Rule("f", lambda g, rule, schema: generic(g, rule, schema, {
        "mask": g.fresh((3, 4), torch.bool), "grad_output": g.fresh((3, 4), g.choice(FLOATS))})))  # fmt: skip
    put("arange", Rule("f", arange))
    put("equal", Rule("fib", pair, compare="exact"))
    put("fill zero", Rule("fib", filled, compare="exact"))
    put("clone", Rule("fib", one, compare="exact"))
    put("_amp_foreach_non_finite_check_and_unscale", Rule("f", unscale, compare="exact"))
    put("_fused_adamw _fused_adam", Rule("f", adamw))
    from operator_rules_index import index_rules
    from operator_rules_pointwise import pointwise_rules  # which needs this module's names
    from operator_rules_reduce import reduce_rules
    from operator_rules_spatial import spatial_rules

    return rules | index_rules() | pointwise_rules() | reduce_rules() | spatial_rules()


RULES = _table()


def rule_of(name: str) -> Rule | None:
    """Return the rule of an operator, or None if it has none."""
    base = base_of(name)
    if base.startswith("_foreach_"):
        return Rule("f", foreach, slack="square")
    return RULES.get(base)
