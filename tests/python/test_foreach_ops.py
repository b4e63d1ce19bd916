"""The _foreach_* operators against the same call on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from opinfo import same_error

SHAPES = [(3, 4), (5,), (), (2, 1, 6), (0,)]


def tensors(seed: int, dtype: torch.dtype = torch.float32, low: float = 0.1) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [(torch.rand(shape, generator=generator) * 2 + low).to(dtype) for shape in SHAPES]


def moved(value: Any, device: str) -> Any:
    if isinstance(value, list):
        return [moved(item, device) for item in value]
    return value.clone().to(device) if isinstance(value, torch.Tensor) else value


UNARY = [
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "log",
    "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc", "zero", "norm", "max",
]  # fmt: skip
A, B, C = tensors(1), tensors(2), tensors(3)
NUMBERS = [0.5, 2.0, 3.0, 1.5, 0.25]
CALLS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    **{f"{op} number": (op, [A, 1.5], {}) for op in ("add", "sub", "mul", "div", "pow", "maximum", "minimum",
                                                      "clamp_min", "clamp_max")},
    **{f"{op} numbers": (op, [A, NUMBERS], {}) for op in ("add", "sub", "mul", "div", "pow", "maximum", "minimum",
                                                           "clamp_min", "clamp_max")},
    **{f"{op} tensors": (op, [A, B], {}) for op in ("add", "sub", "mul", "div", "pow", "maximum", "minimum",
                                                     "clamp_min", "clamp_max")},
    **{f"{op} one tensor": (op, [A, torch.tensor(1.5)], {}) for op in ("add", "mul", "div")},
    "add alpha": ("add", [A, B], {"alpha": 0.3}),
    "sub alpha": ("sub", [A, B], {"alpha": 2}),
    "add one tensor alpha": ("add", [A, torch.tensor(1.5)], {"alpha": 0.3}),
    "lerp number": ("lerp", [A, B, 0.1], {}),
    "lerp large number": ("lerp", [A, B, 0.9], {}),
    "lerp numbers": ("lerp", [A, B, NUMBERS], {}),
    "lerp tensors": ("lerp", [A, B, C], {}),
    "addcmul number": ("addcmul", [A, B, C], {"value": 0.7}),
    "addcdiv number": ("addcdiv", [A, B, C, -0.7], {}),
    "addcmul numbers": ("addcmul", [A, B, C, NUMBERS], {}),
    "addcdiv numbers": ("addcdiv", [A, B, C, NUMBERS], {}),
    "integers": ("add", [tensors(1, torch.int64), 1.5], {}),
    "halves": ("mul", [tensors(1, torch.bfloat16), 1.3], {}),
}  # fmt: skip


def assert_equal_lists(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert all(a.device.type == "neuron" for a in actual)
    torch.testing.assert_close([a.cpu() for a in actual], expected, equal_nan=True)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    values = [t for t in A if t.numel()]
    if name != "zero":
        function = getattr(torch, f"_foreach_{name}")
        assert_equal_lists(function(moved(values, "neuron")), function(values))
    if name not in ("norm", "max"):
        in_place = getattr(torch, f"_foreach_{name}_")
        expected, actual = moved(values, "cpu"), moved(values, "neuron")
        in_place(expected)
        in_place(actual)
        assert_equal_lists(actual, expected)


@pytest.mark.parametrize("name", CALLS)
def test_with_operands(name: str) -> None:
    op, arguments, options = CALLS[name]
    function = getattr(torch, f"_foreach_{op}")
    assert_equal_lists(function(*moved(arguments, "neuron"), **options), list(function(*arguments, **options)))
    if name == "integers":
        return
    in_place = getattr(torch, f"_foreach_{op}_")
    expected, actual = moved(arguments, "cpu"), moved(arguments, "neuron")
    in_place(*expected, **options)
    in_place(*actual, **options)
    assert_equal_lists(actual[0], expected[0])


def test_addcdiv_takes_its_numbers_from_a_packed_cpu_tensor() -> None:
    packed = torch.tensor(NUMBERS)
    arguments = [A, B, C]
    actual = torch._foreach_addcdiv(*moved(arguments, "neuron"), packed)
    assert_equal_lists(list(actual), list(torch._foreach_addcdiv(*arguments, packed)))


def test_a_number_before_a_list_is_a_base() -> None:
    assert_equal_lists(list(torch._foreach_pow(1.5, moved(A, "neuron"))), list(torch._foreach_pow(1.5, A)))


@pytest.mark.parametrize("order", [0, 1, 2, 3, float("inf")])
def test_norms_of_any_order(order: float) -> None:
    values = [t for t in A if t.numel()]
    actual = torch._foreach_norm(moved(values, "neuron"), order)
    assert_equal_lists(list(actual), list(torch._foreach_norm(values, order)))


def test_wrong_lists_raise_what_the_cpu_raises() -> None:
    programs: list[Callable[[str], Any]] = [
        lambda d: torch._foreach_add(moved(A, d), moved(B[:2], d)),
        lambda d: torch._foreach_add(moved(A, d), [1.0, 2.0]),
        lambda d: torch._foreach_mul_(moved(A[:1], d), moved([torch.ones(7)], d)),
        lambda d: torch._foreach_mul(moved(A, d), torch.ones(2, device=d)),
        lambda d: torch._foreach_mul_(moved(tensors(1, torch.int64), d), 1.5),
    ]
    for program in programs:
        same_error(program)


def test_they_are_recorded_and_none_runs_on_the_cpu() -> None:
    a, b, c = (moved(t, "neuron") for t in (A, B, C))
    torch.neuron.reset_fusion_stats()
    torch._foreach_mul_(a, 0.5)
    torch._foreach_lerp_(a, b, 0.1)
    torch._foreach_addcmul_(a, b, c, 0.3)
    torch._foreach_addcdiv_(a, b, torch._foreach_add(torch._foreach_sqrt(c), 1e-8), NUMBERS)
    torch._foreach_norm([t for t in a if t.numel()])
    stats = torch.neuron.fusion_stats()
    assert stats["fallbacks"] == {}
    assert torch.isfinite(a[0]).all().item()


def test_views_in_a_list_are_written_where_they_lie() -> None:
    base = torch.zeros(6, device="neuron")
    torch._foreach_add_([base[:2], base[4:]], [1.0, 2.0])
    assert base.tolist() == [1, 1, 0, 0, 2, 2]


def test_every_operator_of_the_family_is_recorded() -> None:
    """All overloads that PyTorch has, with lists drawn from their schemas."""
    numbers = {"Scalar": 1.5, "number": 1.5, "List[number]": NUMBERS[:2]}
    names = {n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::_foreach_")}
    names = {n for n in names if not n.endswith("out") and "_foreach_mm" not in n}
    assert len(names) > 140
    torch.neuron.reset_fusion_stats()
    for name in sorted(names):
        base, _, overload = name.removeprefix("aten::").partition(".")
        function = getattr(getattr(torch.ops.aten, base), overload or "default")

        def call(device: str, function: Any = function) -> Any:
            arguments: list[Any] = []
            for i, argument in enumerate(function._schema.arguments):
                kind = str(argument.type)
                if argument.has_default_value() and argument.name != "scalars":
                    break
                if kind == "List[Tensor]":
                    arguments.append(moved([t[:1] * 0.5 for t in (tensors(i)[0], tensors(i)[1])], device))
                elif argument.name == "scalars" and kind == "Tensor":
                    arguments.append(torch.tensor(NUMBERS[:2]))
                elif kind == "Tensor":
                    arguments.append(torch.tensor(1.5).to(device))
                else:
                    arguments.append(numbers[kind])
            result = function(*arguments)
            lists = [a for a in arguments if isinstance(a, list) and isinstance(a[0], torch.Tensor)]
            return list(lists[0] if result is None else result), [t._version for a in lists for t in a]

        (actual, versions), (expected, wanted) = call("neuron"), call("cpu")
        assert versions == wanted, name
        assert_equal_lists(actual, expected)
    assert torch.neuron.fusion_stats()["fallbacks"] == {}
