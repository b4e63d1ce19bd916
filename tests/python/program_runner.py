"""Programs as text: run on a device, compared bit for bit between modes, compared with the CPU line by line, cut short.

A program is Python source, so that what is found can be read and run.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch_neuron_eager._C as _C

from modes import bits
from operator_rules import NOT_DRAWN, base_of

aten = torch.ops.aten

# Modes --------------------------------------------------------------------------------------------------------------

DEFAULTS = {"adaptive": True, "period": 0, "window": 4096}
SETTINGS: dict[str, dict[str, Any]] = {
    "unfused": {"adaptive": False, "period": 0, "window": 4096},
    "adaptive": DEFAULTS,
    **{f"flush every {k}": DEFAULTS | {"period": k} for k in (1, 2, 3, 7)},
    **{f"window {n}": DEFAULTS | {"window": n} for n in (2, 5)},
}


class settings:
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


def make(
    device: str, shape: tuple[int, ...], dtype: torch.dtype, seed: int, style: str | None, limit: int = 0
) -> torch.Tensor:
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
            chosen = torch.tensor(
                [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e-40, 3e4], dtype=torch.float64
            )
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
            "make": functools.partial(make, device),
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
    # Strides that no element needs mean nothing, and differ by the path taken.
    strides = [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1] if tensor.numel() else None
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
TOLERANCES = {
    "close": (0.0, 0.0),
    "float64": (1e-7, 1e-7),
    "float32": (1.3e-6, 1e-5),
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
}


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
        done.add(storage._cdata)
        to, source = whole_storage(tensor), whole_storage(ours[name])
        size = min(len(to), len(source))  # the CPU keeps room for what it reduced
        to[:size].copy_(source[:size])


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
        raise AssertionError(
            f"{mismatch}\n\nThe program (run it with programs.py --check FILE):\n{script(shortest)}"
        ) from None
    raise AssertionError(f"A program gives other results from run to run:\n{script(program)}")
