"""Rules of `operator_rules` for norms, scans, extremes with indices, fused optimizers and gradient scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from operator_rules import Arguments, Rule, base_of, dims_of, generic, list_of, reduction, through_autograd

if TYPE_CHECKING:
    from programs import Generator

__all__ = ["reduce_rules"]


def statistics(g: Generator, channels: int, dtype: torch.dtype) -> tuple[str, str]:
    """Draw running statistics."""
    return g.fresh((channels,), dtype, "normal"), g.fresh((channels,), dtype, "positive")


def batch_norm(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw batch norm; its backward gets the forward's own mean and deviation."""
    dtype = g.choice((torch.float32, torch.float64))
    channels, names = g.integer(1, 5), [argument.name for argument in schema.arguments]
    shape = (g.integer(2, 5), channels, *g.shape(rank=(0, 2), least=1))
    source = g.fresh(shape, dtype, "normal")
    training = "True" if g.chance(0.7) or "running_mean" not in names else "False"
    given = {"input": source, "weight": g.fresh((channels,), dtype) if g.chance(0.7) else "None",
             "bias": g.fresh((channels,), dtype) if g.chance(0.7) else "None", "training": training, "train": training,
             "momentum": g.choice(("0.1", "0.3")), "eps": "1e-5"}  # fmt: skip
    needed = training == "False" or "legit" in schema.name
    given["running_mean"], given["running_var"] = (
        statistics(g, channels, dtype) if needed or g.chance(0.7) else ("None", "None")
    )
    if "backward" in schema.name:
        arguments = f"{source}, {given['weight']}, None, {given['running_mean']}, {given['running_var']}"
        saved = g.line(f"aten.native_batch_norm.default({arguments}, {training}, 0.1, 1e-5)", "loose")
        given |= dict(zip(("save_mean", "save_invstd"), saved.split(", ")[1:], strict=True))
        given |= {"grad_out": g.fresh(shape, dtype), "output_mask": str([True, given["weight"] != "None", True])}
    return {name: text for name, text in given.items() if name in names}


def group_norm(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw group norm; its backward gets the forward's own mean and deviation."""
    dtype, groups = g.choice((torch.float32, torch.float64)), g.integer(1, 3)
    channels = groups * g.integer(1, 3)
    shape = (g.integer(1, 4), channels, *g.shape(rank=(1, 2), least=1))
    source = g.fresh(shape, dtype, "normal")
    rest = 1
    for size in shape[2:]:
        rest *= size
    weight = g.fresh((channels,), dtype) if g.chance(0.7) else "None"
    given = {"input": source, "weight": weight, "N": str(shape[0]), "C": str(channels), "HxW": str(rest),
             "group": str(groups), "bias": g.fresh((channels,), dtype) if g.chance(0.7) else "None",
             "eps": "1e-5"}  # fmt: skip
    if "backward" in schema.name:
        arguments = f"{source}, {weight}, None, {shape[0]}, {channels}, {rest}, {groups}, 1e-5"
        saved = g.line(f"aten.native_group_norm.default({arguments})", "loose").split(", ")
        given |= {"mean": saved[1], "rstd": saved[2], "grad_out": g.fresh(shape, dtype),
                  "output_mask": str([True, weight != "None", weight != "None"])}  # fmt: skip
    return {a.name: given[a.name] for a in schema.arguments}


def rms_norm(g: Generator, rule: Rule, schema: Any) -> str:
    """Write RMS norm as Python has it, with its backward: the CPU has no operator of that name."""
    shape = g.shape(rank=(1, 3), least=2)
    normalized = shape[g.integer(0, len(shape) - 1) :]
    leaves = [g.fresh(shape, torch.float32, "normal"), g.fresh(normalized, torch.float32, "normal")]
    return through_autograd(g, f"F.rms_norm({{}}, {list(normalized)}, {{}}, 1e-5)", leaves, 1e-4)


def scan(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a scan's dimension."""
    self = g.tensor(rule.kinds, tame=True)
    return generic(g, rule, schema, {"self": self, "dim": dims_of(g, self, False)}, like=self)


def helper(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw the operators under scans: the CPU's wrap no dimension and trust their outputs."""
    floating = "log" in schema.name
    self = g.fresh(g.shape(rank=(1, 3), least=1), torch.float32 if floating or g.chance(0.5) else torch.int64)
    given = {"self": self, "dim": str(g.integer(0, g.rank_of(self) - 1))}
    for name, dtype in (("values", ""), ("indices", ", dtype=torch.int64"), ("out", "")):
        if any(argument.name == name for argument in schema.arguments):
            given[name] = g.line(f"torch.zeros_like({self}{dtype})")
    return given


def extremes(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw extremes; where there are two outputs they are made here, of the right sizes or empty."""
    given = reduction(g, rule, schema)
    outs = [argument.name for argument in schema.arguments if argument.is_out]
    if len(outs) < 2:
        return given
    value, dim = g.value(given["self"]), given.get("dim", "None")
    keepdim = given.get("keepdim") == "True"
    result = value.amax(keepdim=keepdim) if dim == "None" else value.amax(int(dim), keepdim=keepdim)
    shape = tuple(result.shape) if g.chance(0.7) else (0,)
    second = value.dtype if base_of(schema.name) == "aminmax" else torch.int64
    return given | {outs[0]: g.fresh(shape, value.dtype), outs[1]: g.fresh(shape, second)}


def weight_norm(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw weight norm; its backward gets the forward's own norms."""
    dtype, shape = g.choice((torch.float32, torch.float64)), g.shape(rank=(2, 3), least=1)
    dim = g.choice((0, len(shape) - 1))
    v, length = g.fresh(shape, dtype, "positive"), [1] * len(shape)
    length[dim] = shape[dim]
    factor = g.fresh(tuple(length), dtype)
    if "backward" not in schema.name:
        return {"v": v, "g": factor, "dim": str(dim)}
    norms = g.line(f"aten._weight_norm_interface.default({v}, {factor}, {dim})", "loose").split(", ")[1]
    return {"grad_w": g.fresh(shape, dtype), "saved_v": v, "saved_g": factor, "saved_norms": norms, "dim": str(dim)}


def renorm(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw slices of which some are too long."""
    self = g.fresh(g.shape(rank=(2, 3), least=1), g.choice((torch.float32, torch.float64)))
    dim = g.integer(-1, g.rank_of(self) - 1)
    return {"self": self, "p": g.choice(("2", "1", "3")), "dim": str(dim), "maxnorm": "2.0"}


def square(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a matrix (trace)."""
    return {"self": g.tensor(rule.kinds, rank=(2, 2), tame=True)}


def fused_step(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw the fused steps of SGD and Adagrad, skipped now and then because of an infinity."""
    count, dtype = g.integer(1, 3), g.choice((torch.float32, torch.float64))
    shapes = [g.shape() for _ in range(count)]
    momentum = g.chance(0.6)
    given = {
        "self": list_of(g, count, dtype, shapes), "grads": list_of(g, count, dtype, shapes),
        "momentum_buffer_list": list_of(g, count, dtype, shapes) if momentum else "[]",
        "state_sums": list_of(g, count, dtype, shapes, positive=True),
        "state_steps": "[" + ", ".join(g.line("torch.full((), 3.0, device=device)") for _ in range(count)) + "]",
        "momentum": "0.9" if momentum else "0.0", "dampening": g.choice(("0.0", "0.3")),
        "nesterov": str(momentum and g.chance(0.5)), "is_first_step": str(g.chance(0.3)), "lr_decay": "0.1",
        "weight_decay": g.choice(("0.0", "0.1")), "eps": "1e-8", "maximize": str(g.chance(0.3)),
        "grad_scale": g.line("torch.full((), 4.0, device=device)") if g.chance(0.4) else "None",
        "found_inf": g.line(f"torch.full((), {g.choice((0.0, 1.0))}, device=device)") if g.chance(0.4) else "None",
    }  # fmt: skip
    lr = next(argument for argument in schema.arguments if argument.name == "lr")
    given["lr"] = "0.01" if str(lr.type) == "float" else "torch.tensor(0.01)"
    return {argument.name: given[argument.name] for argument in schema.arguments}


def scaler(g: Generator, rule: Rule, schema: Any) -> Arguments:
    """Draw a gradient scaler's state."""
    full = "torch.full((), {}, device=device{})"
    return {"self": g.line(full.format(g.choice((65536.0, 3e38, 1.0)), "")),
            "growth_tracker": g.line(full.format(g.integer(0, 2), ", dtype=torch.int32")),
            "found_inf": g.line(full.format(g.choice((0.0, 1.0)), "")), "scale_growth_factor": "2.0",
            "scale_backoff_factor": "0.5", "growth_interval": g.choice(("1", "2", "3"))}  # fmt: skip


def reduce_rules() -> dict[str, Rule]:
    """Return this module's rules by the operators' names."""
    rules: dict[str, Rule] = {}

    def put(names: str, rule: Rule) -> None:
        assert all(base_of(name) == name for name in names.split())
        rules.update(dict.fromkeys(names.split(), rule))

    put("native_batch_norm native_batch_norm_backward _native_batch_norm_legit", Rule("f", batch_norm, slack="square"))
    put("native_group_norm native_group_norm_backward", Rule("f", group_norm, slack="square"))
    put("rms_norm _fused_rms_norm _fused_rms_norm_backward", Rule("f", rms_norm, replacement=rms_norm))
    put("cumsum", Rule("fi", scan, slack="sum"))
    put("cumprod", Rule("fi", scan, compare="wide"))
    put("_logcumsumexp", Rule("f", helper, slack="sum"))
    put("_cummax_helper _cummin_helper", Rule("fi", helper, compare="exact"))
    put("aminmax max min", Rule("fib", extremes))
    put("_weight_norm_interface _weight_norm_interface_backward", Rule("f", weight_norm, slack="square"))
    put("renorm", Rule("f", renorm, slack="square"))
    put("count_nonzero", Rule("fib", reduction, compare="exact"))
    put("trace", Rule("fi", square, slack="sum"))
    put("_fused_sgd _fused_adagrad", Rule("f", fused_step))
    put("_amp_update_scale", Rule("f", scaler, compare="exact"))
    return rules
