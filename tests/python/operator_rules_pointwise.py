"""Rules of `operator_rules` for activations, losses, special functions, factories and moves of elements."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from operator_rules import FLOATS, INTS, Arguments, Rule, base_of, generic, pointwise, with_output

if TYPE_CHECKING:
    from programs import Generator

__all__ = ["pointwise_rules"]

WIDE = (torch.float32, torch.float64)

UNARY = """
    acosh asinh atanh digamma erfinv lgamma i0 sinc angle special_entr special_erfcx special_i0e special_i1 special_i1e
    special_log_ndtr special_ndtri
"""
RARE_UNARY = """
    special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_i0
    special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0
    special_scaled_modified_bessel_k1 special_spherical_bessel_j0
"""
RARE_BINARY = """
    special_zeta special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he
    special_laguerre_polynomial_l special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t
    special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w
    igamma igammac nextafter
"""


def halves(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw glu and its backward: a dimension of even size."""
    shape = list(g.shape(rank=(1, 3), least=1))
    dim, dtype = g.integer(0, len(shape) - 1), g.choice(FLOATS)
    grad = g.fresh(tuple(shape), dtype)
    shape[dim] *= 2
    given = {"self": g.fresh(tuple(shape), dtype), "dim": str(dim - len(shape) if g.chance(0.3) else dim)}
    return given | ({"grad_output": grad} if "backward" in schema.name else {})


def weighted(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw prelu and its backward: one weight for each element, for each channel, or for all."""
    shape, dtype = g.shape(rank=(1, 3), least=1), g.choice(FLOATS)
    weight = g.choice((shape, (1,) * len(shape), (*(1 for _ in shape[:-1]), shape[-1])))
    given = {"self": g.fresh(shape, dtype), "weight": g.fresh(weight, dtype)}
    return given | ({"grad_output": g.fresh(shape, dtype)} if "backward" in schema.name else {})


def with_buffer(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw the backward of log_sigmoid, with the forward's own buffer."""
    shape, dtype = g.shape(), g.choice(FLOATS)
    self = g.fresh(shape, dtype)
    buffer = g.line(f"aten.log_sigmoid_forward.default({self})", "loose").split(", ")[1]
    return {"grad_output": g.fresh(shape, dtype), "self": self, "buffer": buffer}


def leaky(g: Generator, rule: Rule, schema: Any) -> str:
    """Write rrelu, whose slopes are random in training."""
    x = g.fresh(g.shape(), g.choice(FLOATS))
    if g.chance(0.5):
        return g.line(f"F.rrelu({x}, 0.1, 0.3, training=False)", "close")
    return g.line(f"F.rrelu({x}, 0.1, 0.3, training=True)", "loose")


def probabilities(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw binary cross entropy: numbers between 0 and 1."""
    shape, dtype = g.shape(), g.choice(WIDE)
    given = {"self": g.fresh(shape, dtype, "unit"), "target": g.fresh(shape, dtype, "unit")}
    given["weight"] = g.fresh(shape, dtype, "positive") if g.chance(0.4) else "None"
    given["reduction"] = str(g.integer(0, 2))
    return given | ({"grad_output": g.fresh(shape, dtype)} if "backward" in schema.name else {})


def images(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw the negative log likelihood of classes of pixels."""
    batch, classes, height, width = g.integer(1, 3), g.integer(2, 5), g.integer(1, 4), g.integer(1, 4)
    dtype, pixels = g.choice(FLOATS[:2]), (batch, height, width)
    self = g.fresh((batch, classes, height, width), dtype, "normal")
    target = g.line(f"make({pixels}, torch.int64, {g.seed()}, 'index', {classes})")
    weight = g.fresh((classes,), dtype, "positive") if g.chance(0.4) else "None"
    reduce, ignore = str(g.integer(0, 2)), g.choice(("-100", "1"))
    given = {"self": self, "target": target, "weight": weight, "reduction": reduce, "ignore_index": ignore}
    if "backward" in schema.name:
        forward = g.line(f"aten.nll_loss2d_forward.default({self}, {target}, {weight}, {reduce}, {ignore})", "loose")
        given["grad_output"] = g.line(f"torch.ones_like({forward.split(', ')[0]})")
        given["total_weight"] = forward.split(", ")[1]
    return given


def margins(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw margin losses over classes."""
    rows, classes, dtype = g.integer(1, 5), g.integer(1, 5), g.choice(WIDE)
    self, reduce = g.fresh((rows, classes), dtype, "normal"), g.integer(0, 2)
    several = "multilabel" in schema.name
    shape = (rows, classes) if several else (rows,)
    target = g.line(f"make({shape}, torch.int64, {g.seed()}, 'index', {classes})")
    given = {"self": self, "target": target, "reduction": str(reduce)}
    if not several:
        weight = g.fresh((classes,), dtype, "positive") if g.chance(0.4) else "None"
        given |= {"p": g.choice(("1", "2")), "margin": g.choice(("1", "0.5")), "weight": weight}
    if "backward" in schema.name:
        given["grad_output"] = g.fresh((rows,) if reduce == 0 else (), dtype)
        if several:
            forward = f"aten.multilabel_margin_loss_forward.default({self}, {target}, {reduce})"
            given["is_target"] = g.line(forward, "loose").split(", ")[1]
    return given


def alike(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw two tensors of one dtype that broadcast."""
    self = g.tensor(rule.kinds)
    return {"self": self, "values": g.tensor(rule.kinds, dtype=g.dtype_of(self), fits=self, grow=False)}


def integers(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw two integral tensors."""
    return generic(g, rule, schema, {"self": g.tensor("i")})


def divided(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a division; integers are not divided by zero, which the device may only find out later."""
    given = pointwise(g, rule, schema)
    other = given["other"]
    if other in g.machine.tensors() and g.dtype_of(other) in INTS:
        given["other"] = g.line(f"{other}.masked_fill({other} == 0, 1)")
    return given


def order(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw polygamma of a low order."""
    return {"n": str(g.integer(0, 3)), "self": g.tensor("f", tame=True)}


def parts(g: Generator, rule: Rule, schema: Any) -> str:
    """Write frexp, which has two results."""
    return g.line(f"torch.frexp({g.tensor('f')})")


def factory(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw the numbers of linspace, logspace, range, eye, tril_indices and triu_indices."""
    given = {"start": g.choice(("0", "-3", "1.5")), "end": g.choice(("5", "2.5")), "steps": str(g.integer(0, 9)),
             "step": g.choice(("1", "0.5")), "base": "2.0", "n": str(g.integer(0, 5)), "m": str(g.integer(0, 5)),
             "row": str(g.integer(0, 5)), "col": str(g.integer(0, 5)), "offset": str(g.integer(-2, 2)),
             "device": "device"}  # fmt: skip
    names = [argument.name for argument in schema.arguments]
    return {name: text for name, text in given.items() if name in names}


def moved(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw flip and roll: dimensions, and how far."""
    self = g.tensor(rule.kinds)
    rank = g.rank_of(self)
    dims = [d for d in range(rank) if g.chance(0.5)]
    given = {"self": self, "dims": str(dims)}
    if base_of(schema.name) == "roll":
        given["shifts"] = str([g.integer(-6, 6) for _ in dims] or [g.integer(-6, 6)])
    return given


def pointwise_rules() -> dict[str, Rule]:
    """Return the rules by operators' names."""
    rules: dict[str, Rule] = {}

    def put(names: str, rule: Rule) -> None:
        for name in names.split():
            rules[name] = rule

    reduce = {"reduction": lambda g: str(g.integer(0, 2))}
    backward = Rule("f", with_output, same=True, same_shape=True, tame=True, slack="most",
                    numbers={"lambd": lambda g: "0.5", "eps": lambda g: g.choice(("1e-3", "None"))})  # fmt: skip
    put("hardsigmoid_backward hardswish_backward hardshrink_backward softshrink_backward mish_backward logit_backward",
        backward)  # fmt: skip
    put("log_sigmoid_backward", Rule("f", with_buffer))
    put("glu glu_backward", Rule("f", halves, slack="most"))
    put("_prelu_kernel _prelu_kernel_backward", Rule("f", weighted))
    put("rrelu_with_noise", Rule("f", leaky, replacement=leaky))
    width = reduce | {"beta": lambda g: g.choice(("1.0", "0.5")), "delta": lambda g: g.choice(("1.0", "0.5"))}
    loss = Rule("f", with_output, same=True, same_shape=True, tame=True, slack="square", numbers=width)
    put("smooth_l1_loss huber_loss", loss)
    put("smooth_l1_loss_backward huber_loss_backward", dataclasses.replace(loss, slack="most"))
    put("binary_cross_entropy binary_cross_entropy_backward", Rule("f", probabilities, slack="square"))
    put("nll_loss2d_forward nll_loss2d_backward", Rule("f", images))
    put("multi_margin_loss multi_margin_loss_backward multilabel_margin_loss_forward multilabel_margin_loss_backward",
        Rule("f", margins))  # fmt: skip
    put(UNARY, Rule("fib", tame=True, slack="most"))
    put(f"{RARE_UNARY} {RARE_BINARY}", Rule("f", tame=True))
    put("floor_divide remainder fmod", Rule("fi", divided, tame=True))
    modes = {"rounding_mode": lambda g: g.choice(("None", "'trunc'", "'floor'"))}
    put("div", Rule("fib", divided, numbers=modes))
    put("xlogy special_xlog1py", Rule("fib", tame=True))
    put("heaviside", Rule("fib", alike, compare="exact"))
    put("gcd lcm", Rule("i", integers, compare="exact"))
    put("polygamma", Rule("f", order))
    put("linspace logspace range eye tril_indices triu_indices", Rule("f", factory))
    put("frexp", Rule("f", parts, replacement=parts))
    put("flip roll", Rule("fib", moved, compare="exact"))
    return rules
