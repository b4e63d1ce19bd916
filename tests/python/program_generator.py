"""Draws random programs. They are run on torch's CPU meanwhile, so that shapes and dtypes are known."""

from __future__ import annotations

import keyword
import math
import random
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from operator_rules import FLOATS, INTS, KINDS, Rule, is_in_place, rule_of
from program_runner import Line, Machine, Program, overload_of


class Generator:
    """Draws a program line by line."""

    def __init__(self, source: random.Random, large: bool = False) -> None:
        self.source = source
        self.large = large
        self.program: Program = []
        self.machine = Machine("cpu")
        self.count = 0
        self.drawn: set[str] = set()  # operators that ran
        self.refused: str | None = None  # what the CPU is executing, or refused

    # Choices

    def chance(self, share: float) -> bool:
        """Return True in a share of all cases."""
        return self.source.randrange(100) < share * 100

    def integer(self, low: int, high: int) -> int:
        """Return a number between two, both included."""
        return self.source.randrange(low, high + 1)

    def choice(self, values: Any) -> Any:
        """Return one of a sequence."""
        return values[self.source.randrange(len(values))]

    def seed(self) -> int:
        """Return a seed for `make`."""
        return self.integer(0, 999)

    def shape(self, rank: tuple[int, int] = (0, 4), least: int = 0) -> tuple[int, ...]:
        """Draw a shape; empty ones and such of one element now and then."""
        if self.large and self.chance(0.7):
            shapes = [(70000,), (257, 300), (3, 33000), (40000, 2), (2, 150, 256)]
            return self.choice([s for s in shapes if rank[0] <= len(s) <= rank[1]] or [(1,) * rank[0]])
        dims = [self.choice((1, 2, 3, 4, 5, 7)) for _ in range(self.integer(*rank))]
        if dims and least == 0 and self.chance(0.05):
            dims[self.integer(0, len(dims) - 1)] = 0
        if dims and self.chance(0.15):
            dims[-1] = self.choice((16, 17, 33, 70))
        return tuple(max(d, least) for d in dims)

    def number(self, like: str | None, exact: bool = False, finite: bool = False) -> str:
        """Draw a number that suits a tensor; ``exact``: a float."""
        dtype = self.dtype_of(like) if like else torch.float32
        if not exact and dtype == torch.bool and self.chance(0.5):
            return str(self.chance(0.5))
        if not exact and not dtype.is_floating_point and self.chance(0.8):
            return str(self.choice((0, 1, 2, 3, 5) if dtype == torch.uint8 else (0, 1, 2, -3, 5, -1)))
        return self.choice(
            (
                "0.5",
                "2.0",
                "-1.25",
                "3.0",
                "0.1",
                "1.0",
                *(() if exact else ("2", "-1", "0.0") if finite else ("2", "-1", "0.0", "inf")),
            )
        )

    # Variables

    def value(self, name: str) -> torch.Tensor:
        """Return the CPU's value of a variable."""
        return self.machine.env[name]

    def dtype_of(self, name: str) -> torch.dtype:
        """Return a variable's dtype."""
        return self.value(name).dtype

    def rank_of(self, name: str) -> int:
        """Return a variable's number of dimensions."""
        return self.value(name).dim()

    def line(self, expression: str, compare: str = "exact", slack: float = 0.0) -> str:
        """Append ``name = expression`` and return the name, or names with commas; raise if it is refused."""
        if slack and compare == "exact":
            compare = "close"
        self.refused = expression
        result = eval(expression, self.machine.env)
        self.refused = None
        if result is None:
            self.program.append(Line(expression, compare, slack))
            return ""
        names = [f"v{self.count + i}" for i in range(len(result) if isinstance(result, (tuple, list)) else 1)]
        self.count += len(names)
        for name, value in zip(names, result if isinstance(result, (tuple, list)) else [result], strict=True):
            self.machine.env[name] = value
        target = ", ".join(names) + ("," if isinstance(result, (tuple, list)) and len(names) == 1 else "")
        self.program.append(Line(f"{target} = {expression}" if names else expression, compare, slack))
        return ", ".join(names)

    def statement(self, text: str, compare: str = "exact") -> None:
        """Append a statement; raise if it is refused."""
        self.refused = text
        exec(text, self.machine.env)
        self.refused = None
        self.program.append(Line(text, compare))

    def fresh(self, shape: tuple[int, ...], dtype: torch.dtype, style: str | None = None) -> str:
        """Make a tensor of a shape."""
        if style is None:
            style = self.choice(("normal", "wide", "wide", "positive"))
        return self.line(f"make({tuple(shape)}, {dtype}, {self.seed()}, {style!r})")

    def index(self, shape: tuple[int, ...], limit: int) -> str:
        """Make a tensor of indices below a limit, without duplicates where it has one dimension and there is room."""
        return self.line(f"make({tuple(shape)}, torch.int64, {self.seed()}, 'index', {limit})")

    def tensor(self, kinds: str, dtype: torch.dtype | None = None, fits: str | None = None, grow: bool = True,
               exact: bool = False, tame: bool = False, rank: tuple[int, int] = (0, 4)) -> str:  # fmt: skip
        """Choose a variable, or make a tensor.

        Parameters
        ----------
        kinds
            Letters of `operator_rules.KINDS`.
        dtype
            The dtype, if it matters.
        fits
            A variable that the result must broadcast with.
        grow
            The broadcast shape may be larger than that variable's.
        exact
            The shape must be that variable's.
        tame
            All values must be of ordinary size, since errors grow with them.
        rank
            The least and the most dimensions.
        """
        dtypes = (dtype,) if dtype in [d for k in kinds for d in KINDS[k]] else None
        if self.chance(0.5):
            found = [name for name, v in self.machine.tensors().items()
                     if rank[0] <= v.dim() <= rank[1]
                     and self.suits(v, kinds, dtypes, fits, grow, exact, tame)]  # fmt: skip
            if found:
                return self.choice(found)
        wanted = self.choice(dtypes or KINDS[self.choice(kinds)])
        special = not tame and self.chance(0.15)
        return self.fresh(self.fitting_shape(fits, grow, exact, rank), wanted, "special" if special else None)

    def suits(self, v: torch.Tensor, kinds: str, dtypes: tuple[torch.dtype, ...] | None, fits: str | None, grow: bool,
              exact: bool, tame: bool) -> bool:  # fmt: skip
        """Whether a variable can stand where `tensor` is asked for one."""
        if v.dtype not in (dtypes or [d for k in kinds for d in KINDS[k]]):
            return False
        if fits is not None:
            like = self.value(fits).shape
            if exact and v.shape != like:
                return False
            try:
                whole = torch.broadcast_shapes(v.shape, like)
            except RuntimeError:
                return False
            if (not grow and whole != like) or math.prod(whole) > 1_000_000:
                return False
        return not tame or v.numel() == 0 or bool((v.detach().abs() <= 8).all())

    def fitting_shape(self, fits: str | None, grow: bool, exact: bool, rank: tuple[int, int]) -> tuple[int, ...]:
        """Draw a shape that broadcasts with a variable's."""
        if fits is None:
            return self.shape(rank)
        shape = tuple(self.value(fits).shape)
        if exact or self.chance(0.5):
            return shape
        cut = shape[self.integer(0, len(shape)) :] if self.chance(0.5) else shape
        cut = tuple(1 if self.chance(0.3) else d for d in cut)
        return (2, *cut) if grow and not self.large and len(cut) == len(shape) < 4 and self.chance(0.2) else cut

    # Lines

    def operator(self, name: str) -> None:
        """Append a call of a registered operator; raise if the CPU refuses it."""
        rule = rule_of(name)
        if rule is None:
            raise LookupError(f"{name} is registered, and operator_rules.RULES has no rule for it")
        if rule.replacement:
            rule.replacement(self, rule, None)
            self.drawn.add(name)
            return
        op = overload_of(name)
        schema = op._schema
        given = rule.draw(self, rule, schema)
        call = f"aten.{name.removeprefix('aten::')}" + ("" if op._overloadname != "default" else ".default")
        if keyword.iskeyword(op._overloadname):
            call = f"getattr({call.rpartition('.')[0]}, {op._overloadname!r})"
        outs = [argument.name for argument in schema.arguments if argument.is_out and argument.name not in given]
        arguments = [f"{key}={text}" if key in keyword_names(schema) else text for key, text in in_order(schema, given)]
        if outs:
            arguments += [f"{key}={self.out(call, arguments, key, rule)}" for key in outs]
        tensors = self.involved(arguments)
        if is_in_place(schema) and any(is_tangled(tensor) for tensor in self.involved(arguments[:1])):
            raise RuntimeError("the result would depend on the order of the elements")
        slack = self.slack(rule, given, tensors)
        compare = self.comparison(rule, given, tensors)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.line(f"{call}({', '.join(arguments)})", compare, slack)
        self.drawn.add(name)

    def involved(self, texts: list[str]) -> list[torch.Tensor]:
        """Return the tensors that a call's arguments name."""
        values = [self.value(name) for text in texts for name in re.findall(r"v\d+", text)]
        return [value.detach() for value in values if isinstance(value, torch.Tensor)]

    def comparison(self, rule: Rule, given: dict[str, str], tensors: list[torch.Tensor]) -> str:
        """Return how a call's results are compared: as near as the least precise of its tensors allows."""
        dtypes = {tensor.dtype for tensor in tensors}
        if given.get("rounding_mode", "None") != "None" and len(dtypes) > 1:
            return "loose"  # a quotient near a whole number goes to either side
        # The CPU takes a 0-dim tensor of another dtype for a number and does not round it to half precision.
        plain = "alpha" not in given and (len(dtypes) == 1 or not any(tensor.dim() == 0 for tensor in tensors))
        half = torch.bfloat16 in dtypes or torch.float16 in dtypes
        if rule.compare == "wide" and half:
            return "loose"
        if rule.compare == "rounded" and not half:
            return "exact" if plain else "close"
        if rule.compare == "loose" or (rule.compare == "exact" and plain):
            return rule.compare
        return "bfloat16" if torch.bfloat16 in dtypes else "float16" if torch.float16 in dtypes else "close"

    def slack(self, rule: Rule, given: dict[str, str], tensors: list[torch.Tensor]) -> float:
        """Return what a sum over the arguments may be off by."""
        kind = rule.slack or ("most" if "alpha" in given else "")
        if not kind:
            return 0.0
        total = most = 0.0
        for tensor in tensors:
            sizes = tensor.double().abs().nan_to_num(0, 0, 0)
            if kind == "most":
                total += float(sizes.amax()) if sizes.numel() else 0.0
            else:
                total += float((sizes.square() if kind == "square" else sizes).sum())
            most = max(most, torch.finfo(tensor.dtype).eps if tensor.is_floating_point() else 0.0)
        return 4 * most * total

    def out(self, call: str, arguments: list[str], key: str, rule: Rule) -> str:
        """Make an output tensor for a call: of the right size or not, a view, or one of another dtype."""
        for dtype in (torch.float32, torch.bool, torch.int64, *FLOATS, *INTS):
            trial = f"{call}({', '.join([*arguments, f'{key}=torch.empty(0, dtype={dtype})'])})"
            try:
                shape, dtype = eval_quietly(trial, self.machine.env).shape, dtype
                break
            except RuntimeError:
                continue
        else:
            raise RuntimeError("no dtype suits as an output")
        kind = 5 if rule.plain_out else self.integer(0, 5)
        if kind == 0:
            return self.line(f"torch.empty(0, dtype={dtype}, device=device)")
        if kind == 1 and len(shape):
            return self.line(f"{self.fresh((*shape[:-1], 2 * shape[-1]), dtype)}[..., ::2]")
        if kind == 2 and len(shape) > 1:
            return self.line(f"{self.fresh((*shape[:-2], shape[-1], shape[-2]), dtype)}.mT")
        if kind == 3 and not rule.fresh_out:
            found = [
                name
                for name, v in self.machine.tensors().items()
                if v.shape == shape and v.dtype == dtype and not is_tangled(v)
            ]
            if found:
                return self.choice(found)
        return self.fresh(shape, dtype)

    def view(self) -> None:
        """Append a view of a variable."""
        name = self.tensor("fib", rank=(0, 4))
        v = self.value(name)
        rank, d = v.dim(), self.integer(0, max(v.dim() - 1, 0))
        choices = [f"{name}.unsqueeze({self.integer(-rank - 1, rank)})", f"{name}.detach()", f"{name}.reshape(-1)",
                   f"{name}.expand({(2, *v.shape)})"]  # fmt: skip
        if rank:
            n, order = v.shape[d], self.source.sample(range(rank), rank)
            start, step = self.integer(0, n), self.integer(1, 3)
            cut = ", ".join([":"] * d + [f"{start}:{self.integer(start, n)}:{step}"])
            choices += [
                f"{name}[{cut}]",
                f"{name}[{cut}]",
                f"{name}.permute({order})",
                f"{name}.flip({d})",
                f"{name}.flatten()",
            ]
            choices += [f"{name}.transpose(0, {d})", f"{name}[..., None]"]
            if n:
                choices += [f"{name}.select({d - rank}, {self.integer(0, n - 1)})"]
            size = max(1, min(n, 3))
            if v.untyped_storage().nbytes() >= (v.storage_offset() + size) * v.element_size():
                choices += [f"{name}.as_strided(({size},), (1,))"]
            if n and n % 2 == 0:
                choices += [f"{name}.unflatten({d}, (2, {n // 2}))", f"{name}.chunk(2, {d})[1]"]
            if n >= 2:
                choices += [f"{name}.unfold({d}, 2, 1)", f"{name}.narrow({d}, 1, {n - 1})"]
        if rank >= 2:
            choices += [f"{name}.diagonal()", f"{name}.diagonal({self.integer(-1, 1)}, 0, 1)", f"{name}.mT"]
        self.line(self.choice(choices))

    def write(self) -> None:
        """Append a write by index, a copy or a conversion."""
        name = self.tensor("fib")
        v = self.value(name)
        if is_tangled(v):
            raise RuntimeError("the result would depend on the order of the elements")
        other = self.tensor("fib", fits=name, grow=False)
        value = self.value(other)
        if value.dim() == 0 and (value.requires_grad or value.untyped_storage()._cdata == v.untyped_storage()._cdata):
            raise RuntimeError("the CPU fills with such a value where other devices copy it")
        target = self.choice((f"{name}[...]", f"{name}[..., :1]", f"{name}[-1:]") if v.dim() else (f"{name}[...]",))
        kind = self.integer(0, 3)
        if kind == 0:
            self.statement(f"{target} = {self.number(name)}")
        elif kind == 1:
            self.statement(f"{name}.copy_({other})", self.conversion(other, v.dtype))
        elif kind == 2:
            self.statement(f"{name}[...] = {other}", self.conversion(other, v.dtype))
        else:
            dtype = self.choice((*FLOATS, *INTS, torch.bool))
            self.line(f"{name}.to({dtype})", self.conversion(name, dtype))

    def conversion(self, source: str, dtype: torch.dtype) -> str:
        """Return how a conversion is compared: C leaves open what a float that an integer cannot hold becomes."""
        v = self.value(source).detach()
        if not v.is_floating_point() or dtype.is_floating_point or dtype == torch.bool:
            return "exact"
        low = 0 if dtype == torch.uint8 else -(2**31)
        inside = v.isfinite() & (v > low - 1) & (v < (256 if dtype == torch.uint8 else 2**31))
        return "exact" if bool(inside.all()) else "loose"

    def other(self) -> None:
        """Append what is not an operator: a look at values, a deletion, autograd, a change of storage."""
        name = self.tensor("fib")
        kind = self.integer(0, 9)
        if kind <= 1 and self.value(name).numel() < 1000:
            self.statement(f"read({name}.tolist())", "loose")
        elif kind == 2 and len(self.machine.tensors()) > 3:
            self.statement(f"del {name}")
        elif kind == 3:
            self.statement(f"read(bool({name}.ne(0).any()))")
        elif kind == 4:
            self.statement(f"read({name}.data_ptr() != 0)")
        elif kind == 5 and self.dtype_of(name).is_floating_point:
            self.line(f"{name}.detach().clone().requires_grad_()")
        elif kind == 6:
            self.statement(f"{name}.data = {self.tensor('fib', dtype=self.dtype_of(name))}")
        elif kind == 7:
            self.statement(f"read(torch.equal({name}, {self.tensor('fib', fits=name)}))", "loose")
        elif kind == 8:
            self.line(f"{name}.clone()")
        else:
            self.backward()

    def backward(self) -> None:
        """Append a small graph and its backward, and read a leaf's gradient."""
        dtype = self.choice(FLOATS[:2])
        x = self.line(f"{self.fresh(self.shape((1, 3), least=1), dtype, 'normal')}.requires_grad_()")
        y = self.line(f"{x} * {self.choice(('2', '0.5', x))}")
        for _ in range(self.integer(1, 4)):
            turn = "t().contiguous().t()" if self.rank_of(y) == 2 else "neg()"
            f = self.choice(("tanh()", "exp()", "sigmoid()", "mul(0.5)", "softmax(-1)", "sum(0)", "relu()", turn,
                             "clone().mul_(2)", "add_(1)", "float()"))  # fmt: skip
            if self.rank_of(y) == 0 and f in ("softmax(-1)", "sum(0)"):
                f = "cos()"
            y = self.line(f"{y}.{f}", slack=1e-5)
        self.statement(f"{y}.sum().backward()", "close")
        self.line(f"{x}.grad", slack=1e-5 * (1 if dtype == torch.float32 else 1000))

    def attempt(self, draw: Callable[[], None], keep: float = 0.0) -> bool:
        """Draw; what the CPU refuses is taken back, or kept as an error that must come on the device too."""
        length = len(self.program)
        self.refused = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                draw()
        except (RuntimeError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
            if "no way to draw" in str(error):
                raise
            if self.refused and self.chance(keep):
                self.program.append(Line(self.refused))
            else:
                del self.program[length:]
            return False
        return True


def is_tangled(tensor: torch.Tensor) -> bool:
    """Whether elements share memory in a way that PyTorch does not look for (windows of `unfold`)."""
    if torch._debug_has_internal_overlap(tensor) != 2:
        return False
    reach = 1 + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return torch.arange(reach).as_strided(tensor.shape, tensor.stride()).unique().numel() < tensor.numel()


def keyword_names(schema: Any) -> set[str]:
    """Return the arguments that are given by name."""
    return {argument.name for argument in schema.arguments if argument.kwarg_only}


def in_order(schema: Any, given: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Return the arguments in the schema's order; after one that is left out, its default is written down."""
    last = max((i for i, a in enumerate(schema.arguments) if a.name in given and not a.kwarg_only), default=-1)
    for i, argument in enumerate(schema.arguments):
        if argument.name in given:
            yield argument.name, given[argument.name]
        elif i < last and not argument.kwarg_only and not argument.is_out:
            yield argument.name, repr(argument.default_value)


def eval_quietly(text: str, env: dict[str, Any]) -> Any:
    """Evaluate without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, env)


def draw_program(source: random.Random, names: list[str], length: int, large: bool = False) -> Generator:
    """Draw a program of about ``length`` steps."""
    g = Generator(source, large)
    torch.manual_seed(0)
    for _ in range(length):
        kind = g.integer(0, 9)
        if kind <= 5:
            g.attempt(lambda: g.operator(g.choice(names)), keep=0.3)
        elif kind <= 7:
            g.attempt(g.view)
        elif kind == 8:
            g.attempt(g.write)
        else:
            g.attempt(g.other)
    return g


def draw_for(name: str, source: random.Random) -> Generator:
    """Draw a short program that calls one operator."""
    for _ in range(60):
        g = Generator(source)
        torch.manual_seed(0)
        if g.attempt(lambda g=g: g.operator(name)):
            g.attempt(lambda g=g: g.operator("aten::add.Tensor"))
            g.attempt(g.view)
            g.attempt(lambda g=g: g.operator(name))
            return g
    raise AssertionError(
        f"{name} was refused by the CPU sixty times: its rule in operator_rules.RULES draws wrong arguments"
    )
