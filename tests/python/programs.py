"""Random programs: drawn line by line, run in every mode, compared, and cut down to a short script when they differ.

A program is Python source, so that what is found can be read and run. It is executed on torch's CPU while it is drawn:
shapes and dtypes are known, and what the CPU refuses is kept now and then, since the device must refuse it alike.

    python tests/python/programs.py --programs 20000 --seed 1     look for differences for long
    python tests/python/programs.py --check FILE                  run one program again and compare
    python tests/python/programs.py --digest FILE                 print the results' digests (JSON in, JSON out)
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import json
import keyword
import math
import pathlib
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from modes import bits
from operator_rules import FLOATS, INTS, KINDS, NOT_DRAWN, Rule, base_of, is_in_place, rule_of

import torch_neuron_eager._C as _C

aten = torch.ops.aten

# Modes --------------------------------------------------------------------------------------------------------------

DEFAULTS = {"adaptive": True, "period": 0, "window": 4096}
SETTINGS: dict[str, dict[str, Any]] = {
    "unfused": {"adaptive": False, "period": 0, "window": 4096},
    "adaptive": DEFAULTS,
    **{f"flush every {k}": DEFAULTS | {"period": k} for k in (1, 2, 3, 7)},
    **{f"window {n}": DEFAULTS | {"window": n} for n in (2, 5)},
}


class settings:  # noqa: N801 - used like a function
    """Context manager: the engine's settings, and those before at the end."""

    def __init__(self, changes: dict[str, Any]) -> None:
        self.changes = changes

    def __enter__(self) -> None:
        """Change."""
        self.before = _C.settings()
        _C.change_settings(self.changes)

    def __exit__(self, *_: object) -> None:
        """Put back."""
        _C.change_settings(self.before)


# Registrations ------------------------------------------------------------------------------------------------------


def registered() -> list[str]:
    """Return the names of the aten operators that the device has kernels for, views and allocation left out."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    return sorted(name for name in names if name.startswith("aten::") and base_of(name) not in NOT_DRAWN)


def overload_of(name: str) -> torch._ops.OpOverload:
    """Return PyTorch's callable for ``aten::add.Tensor``."""
    base, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(aten, base), overload or "default")


# Programs -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a program, and how near its results are to the CPU's."""

    text: str
    compare: str = "exact"
    slack: float = 0.0

    def __str__(self) -> str:
        return f"{self.text}  # {self.compare} {self.slack:g}" if self.compare != "exact" else self.text


Program = list[Line]


def parse(text: str) -> Program:
    """Read a program as `script` writes it."""
    program = []
    for row in text.strip().splitlines():
        code, _, note = row.partition("  # ")
        compare, _, slack = note.partition(" ")
        program.append(Line(code.strip(), compare or "exact", float(slack or 0)))
    return program


def script(program: Program) -> str:
    """Write a program as text."""
    return "\n".join(str(line) for line in program)


def make(device: str, shape: tuple[int, ...], dtype: torch.dtype, seed: int, style: str | None, limit: int = 0) -> torch.Tensor:
    """Make a tensor of numbers that depend on the arguments alone."""
    g = torch.Generator().manual_seed(seed)
    if style == "index":
        values = torch.randint(0, limit, shape, generator=g).to(dtype)
    elif dtype == torch.bool:
        values = torch.randint(0, 2, shape, generator=g).bool()
    elif not dtype.is_floating_point:
        values = torch.randint(0 if dtype == torch.uint8 else -5, 9, shape, generator=g).to(dtype)
    elif style == "unit":
        values = torch.rand(shape, generator=g).to(dtype)
    else:
        values = torch.randn(shape, generator=g, dtype=torch.float64) * (1 if style == "normal" else 2)
        if style == "positive":
            values = values.abs() + 0.25
        if style == "special" and values.numel():
            chosen = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e-40, 3e4], dtype=torch.float64)
            where = torch.rand(shape, generator=g) < 0.4
            values = torch.where(where, chosen[torch.randint(0, len(chosen), shape, generator=g)], values)
        values = values.to(dtype)
    return values.to(device)


@functools.lru_cache(1 << 16)
def compiled(text: str) -> Any:
    """Compile a line once for all of its runs."""
    return compile(text, "<program>", "exec")


class Machine:
    """Runs a program's lines on one device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.seen: list[str] = []  # values that were read and errors that were raised, in order
        self.env: dict[str, Any] = {
            "torch": torch, "aten": aten, "F": F, "math": math, "device": device, "inf": math.inf, "nan": math.nan,
            "make": lambda *args, style=None, limit=0: make(device, *args[:3], *(args[3:] or (style,)), *(() if len(args) > 4 else (limit,))),
            "read": self.read,
        }  # fmt: skip

    def read(self, value: Any) -> None:
        """Note a value that the program looked at."""
        self.seen.append(repr(value).replace("-nan", "nan"))

    def step(self, line: Line) -> bool:
        """Run a line; a refusal is noted, and returned as False."""
        try:
            exec(compiled(line.text), self.env)
        except Exception as error:
            self.seen.append(f"{line.text}: {type(error).__name__}: {first_line(error)}")
            return False
        return True

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the program's variables that are tensors."""
        return {name: v for name, v in self.env.items() if isinstance(v, torch.Tensor)}


def first_line(error: BaseException) -> str:
    """Return what an error says first, without the device's name or numbers of memory addresses."""
    text = (str(error).splitlines() or [""])[0]
    return re.sub(r"neuron(:0)?|cpu|PrivateUse1|CPU", "DEVICE", text)


def form(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return all that programs can ask a tensor without its values."""
    strides = tensor.stride() if tensor.numel() else None  # an empty tensor's mean nothing, and differ by the path taken
    return (tensor.dtype, tuple(tensor.shape), strides, tensor.storage_offset(), tensor.requires_grad, tensor.is_leaf,
            tensor._version)  # fmt: skip


Results = tuple[list[str], dict[str, tuple[Any, torch.Tensor]]]


def run(program: Program, device: str, seed: int = 0) -> Results:
    """Run a program and return what it read and its variables at the end."""
    torch.manual_seed(seed)
    machine = Machine(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in program:
            machine.step(line)
        return machine.seen, {name: (form(v), v.detach().cpu()) for name, v in machine.tensors().items()}


class Mismatch(AssertionError):
    """Two runs of a program differ."""


def compare_bits(actual: Results, expected: Results, what: str) -> None:
    """Raise Mismatch unless two runs saw the same bits."""
    if actual[0] != expected[0]:
        pairs = next((a, e) for a, e in zip([*actual[0], "nothing"], [*expected[0], "nothing"], strict=False) if a != e)
        raise Mismatch(f"{what}: saw {pairs[0]}\nand not {pairs[1]}")
    if actual[1].keys() != expected[1].keys():
        raise Mismatch(f"{what}: has variables {list(actual[1])}, not {list(expected[1])}")
    for name, (shape, value) in actual[1].items():
        other_shape, other = expected[1][name]
        if shape != other_shape:
            raise Mismatch(f"{what}: {name} is {shape}, not {other_shape}")
        if not torch.equal(bits(value), bits(other)):
            raise Mismatch(f"{what}: {name} has other bits:\n{value}\nthan\n{other}")


def whole_storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor's storage as a tensor."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


# (relative, absolute): the defaults of torch.testing.assert_close
TOLERANCES = {"close": (0.0, 0.0), "float64": (1e-7, 1e-7), "float32": (1.3e-6, 1e-5), "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5)}


def close(name: str, line: Line, actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Raise Mismatch unless a result of a line is the CPU's within what the line promises."""
    if line.compare == "loose":
        return
    try:
        if line.compare == "exact" or not actual.is_floating_point():
            assert torch.equal(bits(actual), bits(expected)), f"{actual}\nis not exactly\n{expected}"
        else:
            rtol, atol = TOLERANCES[str(actual.dtype).removeprefix("torch.")]
            rtol, atol = max(rtol, TOLERANCES[line.compare][0]), max(atol, TOLERANCES[line.compare][1])
            torch.testing.assert_close(actual, expected, rtol=rtol, atol=max(atol, line.slack), equal_nan=True)
    except AssertionError as error:
        raise Mismatch(f"neuron against cpu, {line}: {name}: {error}") from None


def lockstep(program: Program) -> None:
    """Compare with the CPU line by line; after each, the CPU continues with the device's values.

    So a difference that is allowed does not grow until it looks like one that is not.
    """
    host, neuron = Machine("cpu"), Machine("neuron")
    torch.manual_seed(0)
    with warnings.catch_warnings(), settings(SETTINGS["unfused"]):
        warnings.simplefilter("ignore")
        for line in program:
            before = len(host.seen)
            host.step(line)
            neuron.step(line)
            if host.seen[before:] != neuron.seen[before:]:
                raise Mismatch(f"neuron against cpu, {line}:\n{neuron.seen[before:]}\nis not\n{host.seen[before:]}")
            ours, theirs = neuron.tensors(), host.tensors()
            if ours.keys() != theirs.keys():
                raise Mismatch(f"neuron against cpu, {line}: variables {list(ours)} are not {list(theirs)}")
            for name, tensor in ours.items():
                if form(tensor) != form(theirs[name]):
                    raise Mismatch(f"neuron against cpu, {line}: {name} is {form(tensor)}, not {form(theirs[name])}")
                close(name, line, tensor.detach().cpu(), theirs[name].detach())
            if line.compare != "exact":
                synchronize_storages(ours, theirs)


def synchronize_storages(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    """Give the CPU's tensors the device's values, storage by storage, behind autograd's back."""
    done = set()
    for name, tensor in theirs.items():
        if tensor.device.type != "cpu" or ours[name].device.type == "cpu":
            continue
        storage = tensor.untyped_storage()
        if storage._cdata in done:
            continue
        if storage.nbytes() != ours[name].untyped_storage().nbytes():  # the CPU keeps room for what it reduced
            tensor.data.copy_(ours[name].data)
            continue
        done.add(storage._cdata)
        whole_storage(tensor).copy_(whole_storage(ours[name]))


def check(program: Program, modes: tuple[str, ...] = tuple(SETTINGS), cpu: bool = True) -> None:
    """Raise Mismatch unless all modes give a program the same bits, and the CPU near ones."""
    expected = None
    for name in modes:
        with settings(SETTINGS[name]):
            result = run(program, "neuron")
        if expected is None:
            expected = result
        else:
            compare_bits(result, expected, f"{name} against {modes[0]}")
    if cpu:
        lockstep(program)


def digest(program: Program) -> str:
    """Return a hash of all bits that a program shows."""
    seen, variables = run(program, "neuron")
    state = hashlib.sha256(repr(seen).encode())
    for name, (shape, value) in variables.items():
        state.update(f"{name}{shape}".encode())
        state.update(bits(value).numpy().tobytes())
    return state.hexdigest()


def minimize(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Leave out lines as long as the program still fails."""
    size = max(1, len(program) // 2)
    while size:
        start = len(program) - size
        while start >= -size + 1:
            shorter = program[: max(start, 0)] + program[max(start, 0) + size :]
            if len(shorter) < len(program) and fails(shorter):
                program = shorter
            start -= size
        size //= 2
    return program


def check_and_explain(program: Program, **options: Any) -> None:
    """Raise an AssertionError with the shortest program found that shows the difference."""
    try:
        check(program, **options)
        return
    except Mismatch:
        pass

    def fails(candidate: Program) -> bool:
        try:
            check(candidate, **options)
        except Mismatch:
            return True
        return False

    shortest = minimize(program, fails)
    try:
        check(shortest, **options)
    except Mismatch as mismatch:
        raise AssertionError(f"{mismatch}\n\nThe program (run it with programs.py --check FILE):\n{script(shortest)}") from None
    raise AssertionError(f"A program gives other results from run to run:\n{script(program)}")


# Drawing ------------------------------------------------------------------------------------------------------------


class Generator:
    """Draws a program line by line."""

    def __init__(self, source: random.Random, large: bool = False) -> None:
        self.source = source
        self.large = large
        self.program: Program = []
        self.machine = Machine("cpu")
        self.count = 0
        self.drawn: set[str] = set()  # operators that ran

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
        return self.choice(("0.5", "2.0", "-1.25", "3.0", "0.1", "1.0", *(() if exact else ("2", "-1", "0.0") if finite else ("2", "-1", "0.0", "inf"))))

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
        """Append ``name = expression`` and return the name, or the names with commas between; raise if it is refused."""
        if slack and compare == "exact":
            compare = "close"
        result = eval(expression, self.machine.env)
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
        exec(text, self.machine.env)
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
                     if self.suits(v, kinds, dtypes, fits, grow, exact, tame) and rank[0] <= v.dim() <= rank[1]]  # fmt: skip
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
        if grow and not self.large and len(cut) < 4 and self.chance(0.2):
            cut = (2, *(shape[0:0] if len(cut) < len(shape) else ()), *cut) if len(cut) >= len(shape) else cut
        return cut

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
        outs = [argument.name for argument in schema.arguments if argument.is_out]
        arguments = [f"{key}={text}" if key in keyword_names(schema) else text for key, text in in_order(schema, given)]
        if outs:
            arguments += [f"{key}={self.out(call, arguments, key, rule.plain_out)}" for key in outs]
        tensors = self.involved(arguments)
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
        # The CPU takes a 0-dim tensor of another dtype for a number and does not round it to half precision.
        plain = "alpha" not in given and (len(dtypes) == 1 or not any(tensor.dim() == 0 for tensor in tensors))
        half = torch.bfloat16 in dtypes or torch.float16 in dtypes
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
            terms = {"square": sizes.square, "sum": sizes.clone, "most": sizes.reshape(-1).amax if sizes.numel() else sizes.clone}[kind]()
            total += float(terms.sum())
            most = max(most, *(torch.finfo(t.dtype).eps if t.is_floating_point() else 0.0 for t in (tensor, tensor)))
        return 4 * most * total

    def out(self, call: str, arguments: list[str], key: str, plain: bool) -> str:
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
        kind = 5 if plain else self.integer(0, 5)
        if kind == 0:
            return self.line(f"torch.empty(0, dtype={dtype}, device=device)")
        if kind == 1 and len(shape):
            return self.line(f"{self.fresh((*shape[:-1], 2 * shape[-1]), dtype)}[..., ::2]")
        if kind == 2 and len(shape) > 1:
            return self.line(f"{self.fresh((*shape[:-2], shape[-1], shape[-2]), dtype)}.mT")
        if kind == 3:
            found = [name for name, v in self.machine.tensors().items() if v.shape == shape and v.dtype == dtype]
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
            choices += [f"{name}[{cut}]", f"{name}[{cut}]", f"{name}.permute({order})", f"{name}.flip({d})", f"{name}.flatten()"]
            choices += [f"{name}.transpose(0, {d})", f"{name}[..., None]"] + ([f"{name}.select({d - rank}, {self.integer(0, n - 1)})"] if n else [])
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
        other = self.tensor("fib", fits=name, grow=False)
        target = self.choice((f"{name}[...]", f"{name}[..., :1]" if v.dim() else f"{name}[...]", f"{name}[-1:]" if v.dim() else f"{name}[...]"))
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
            f = self.choice(("tanh()", "exp()", "sigmoid()", "mul(0.5)", "softmax(-1)", "sum(0)", "relu()", "t().contiguous().t()"
                             if self.rank_of(y) == 2 else "neg()", "clone().mul_(2)", "add_(1)", "float()"))  # fmt: skip
            if self.rank_of(y) == 0 and f in ("softmax(-1)", "sum(0)"):
                f = "cos()"
            y = self.line(f"{y}.{f}", slack=1e-5)
        self.statement(f"{y}.sum().backward()", "close")
        self.line(f"{x}.grad", slack=1e-5 * (1 if dtype == torch.float32 else 1000))

    def attempt(self, draw: Callable[[], None], keep: float = 0.0) -> bool:
        """Draw; what the CPU refuses is taken back, or kept as an error that must come on the device too."""
        length = len(self.program)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                draw()
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, ZeroDivisionError) as error:
            if isinstance(error, NotImplementedError) and "no way to draw" in str(error):
                raise
            del self.program[length + (1 if self.chance(keep) else 0) :]
            return False
        return True


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
            g.attempt(lambda: g.operator(g.choice(names)))
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
    raise AssertionError(f"{name} was refused by the CPU sixty times: its rule in operator_rules.RULES draws wrong arguments")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--operator", help="draw programs for one operator only")
    parser.add_argument("--check", metavar="FILE")
    parser.add_argument("--digest", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.check:
        check_and_explain(parse(pathlib.Path(arguments.check).read_text()))
        print("no difference")
        return 0
    if arguments.digest:
        texts = json.loads(pathlib.Path(arguments.digest).read_text())
        print(json.dumps([digest(parse(text)) for text in texts]))
        return 0
    names, failures = registered(), 0
    for i in range(arguments.programs):
        source = random.Random(f"{arguments.seed}/{i}")
        g = draw_for(arguments.operator, source) if arguments.operator else draw_program(source, names, arguments.length, arguments.large)
        try:
            check_and_explain(g.program)
        except AssertionError as error:
            failures += 1
            print(f"--- seed {arguments.seed}, program {i}\n{error}\n", flush=True)
        if i % 100 == 99:
            print(f"{i + 1} programs, {failures} differences", file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
