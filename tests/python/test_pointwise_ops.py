"""Pointwise operators: samples and errors of PyTorch's own operator list, and what the list does not ask."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import assert_like, check_errors, check_samples, name_of, same_error

NAMES = """
    add sub rsub mul div floor_divide remainder fmod pow float_power atan2 hypot maximum minimum fmax fmin max min
    eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isinf isfinite
    bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift copysign
    __radd__ __rsub__ __rmul__ __rdiv__ __rpow__ __rmod__
    neg abs sign sgn floor ceil trunc round frac sqrt reciprocal rsqrt exp exp2 expm1 log log2 log10 log1p
    sin cos tan asin acos atan sinh cosh tanh erf erfc sigmoid square
    clamp clamp_min clamp_max lerp addcmul addcdiv where masked_fill nan_to_num tril triu logit
    nn.functional.relu nn.functional.relu6 nn.functional.threshold nn.functional.leaky_relu nn.functional.elu
    nn.functional.silu nn.functional.gelu nn.functional.softplus nn.functional.hardtanh nn.functional.mse_loss
    fill
""".split()  # noqa: SIM905
OPERATORS = [op for op in op_db if op.name in NAMES]
DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.bool]
CASES = [(op, dtype) for op in OPERATORS for dtype in DTYPES if dtype in op.dtypes]


@pytest.mark.parametrize(("op", "dtype"), CASES, ids=name_of)
def test_samples_give_what_the_cpu_gives(op: OpInfo, dtype: torch.dtype) -> None:
    # Gradients of pow are sums of terms of 1e8 that cancel: no tolerance says much about them.
    check_samples(op, dtype, backward=op.name not in ("pow", "__rpow__", "float_power"))


@pytest.mark.parametrize("op", [op for op in OPERATORS if op.error_inputs_func], ids=name_of)
def test_wrong_arguments_raise_what_the_cpu_raises(op: OpInfo) -> None:
    check_errors(op)


def test_every_name_is_an_operator_of_the_list() -> None:
    assert sorted({op.name for op in OPERATORS}) == sorted(set(NAMES))


def test_common_operators_are_recorded_not_run_on_the_cpu() -> None:
    x = torch.rand(5, 7).to("neuron")
    row = torch.rand(7).to("neuron")
    numbers = torch.arange(1, 8).to("neuron")
    torch.neuron.reset_fusion_stats()
    results = [
        x + row, 2 - x, x * 3, x / row, x // 2, x % 2, x**2, x**0.3, 2**x, x.exp(), numbers.exp(), numbers + 1.5,
        numbers // 2, numbers * row, x > 0.5, x == row, x.clamp(0.2, 0.8), torch.where(x > 0.5, x, 0.0),
        x.masked_fill(x > 0.5, 1), torch.lerp(x, row, 0.3), torch.addcmul(x, x, row, value=2), x.relu(), x.tril(),
        torch.nn.functional.gelu(x, approximate="tanh"), torch.arange(0, 5, device="neuron"), torch.zeros_like(x),
        x.clone().add_(row).mul_(2).neg_(), ~(x > 0.5), x.isnan(), torch.nan_to_num(x), x.double() + numbers,
    ]  # fmt: skip
    assert all(result.device.type == "neuron" for result in results)
    assert torch.neuron.fusion_stats()["fallbacks"] == {}


@pytest.mark.parametrize("name", ["arange", "full", "full_like", "zeros_like", "ones_like"])
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_factories_give_what_the_cpu_gives(name: str, dtype: torch.dtype) -> None:
    op = next(op for op in op_db if op.name == name)
    for sample in op.sample_inputs("cpu", dtype) if dtype in op.dtypes else []:
        expected = op(sample.input, *sample.args, **sample.kwargs)
        start = sample.input.to("neuron") if isinstance(sample.input, torch.Tensor) else sample.input
        actual = op(start, *sample.args, **{**sample.kwargs, "device": "neuron"})
        assert_like(actual, expected, strides=True, what=f"{name} {sample.summary()}")


# Layouts: PyTorch's TensorIterator decides the strides of a result from those of all operands.


class Layout:
    """Values with sizes and strides: the same tensor can be made on each device."""

    def __init__(self, shape: list[int], dtype: torch.dtype, kind: str, generator: random.Random) -> None:
        self.shape, self.dtype = shape, dtype
        rank = len(shape)
        order = list(range(rank))
        generator.shuffle(order)
        if kind == "permuted":
            base = torch.empty([shape[i] for i in order]).permute([order.index(i) for i in range(rank)])
        elif kind == "sliced":
            base = torch.empty([2 * n for n in shape])[tuple(slice(0, 2 * n, 2) for n in shape)]
        elif kind == "expanded":
            base = torch.empty([1 if generator.random() < 0.4 else n for n in shape]).expand(shape)
        elif kind == "channels_last" and rank == 4:
            base = torch.empty(shape).contiguous(memory_format=torch.channels_last)
        else:
            base = torch.empty(shape)
        self.strides = base.stride()
        reach = 1 + sum((n - 1) * s for n, s in zip(shape, self.strides, strict=True)) if 0 not in shape else 1
        values = [generator.uniform(-2, 9) for _ in range(reach)]
        self.values = torch.tensor(values).abs().to(dtype) if dtype == torch.uint8 else torch.tensor(values).to(dtype)

    def make(self, device: str) -> torch.Tensor:
        if 0 in self.shape:
            return torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device=device)
        return self.values.clone().to(device).as_strided(self.shape, self.strides)


KINDS = ["contiguous", "permuted", "sliced", "expanded", "channels_last"]
FUNCTIONS: list[tuple[int, Callable[..., torch.Tensor]]] = [
    (2, torch.add), (2, torch.mul), (2, torch.div), (2, torch.maximum), (2, torch.lt), (2, torch.logical_and),
    (1, torch.exp), (1, torch.neg), (1, torch.relu), (1, torch.tril), (1, torch.nn.functional.gelu),
    (1, lambda a: a + 1), (1, lambda a: 1.5 - a), (1, lambda a: a**2), (1, lambda a: a**3),
    (1, lambda a: a.clamp(0, 1)),
    (1, lambda a: a.gt_(1)), (1, lambda a: a.clone().mul_(0.5)), (2, lambda a, b: a.clone().add_(b)),
    (2, lambda a, b: torch.where(a > 0, a, b)), (2, lambda a, b: a.masked_fill(b > 0, 2)),
    (2, lambda a, b: torch.lerp(a, b, 0.3)), (3, torch.addcmul),
]  # fmt: skip


def outcome(function: Callable[..., torch.Tensor], layouts: list[Layout], device: str) -> torch.Tensor | Exception:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*[layout.make(device) for layout in layouts])
        except Exception as error:
            return error


@pytest.mark.parametrize("seed", range(8))
def test_any_mixture_of_layouts_and_dtypes_gives_the_cpus_strides_dtypes_and_errors(seed: int) -> None:
    generator = random.Random(seed)
    dtypes = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
    for _ in range(150):
        count, function = generator.choice(FUNCTIONS)
        shape = [generator.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 5]) for _ in range(generator.randint(0, 5))]
        layouts = []
        for i in range(count):
            own = list(shape)
            if i and generator.random() < 0.4:  # broadcast
                own = [1 if generator.random() < 0.3 else n for n in own[generator.randint(0, len(own)) :]]
            dtype = generator.choice(dtypes) if generator.random() < 0.4 else torch.float32
            layouts.append(Layout(own, dtype, generator.choice(KINDS), generator))
        expected = outcome(function, layouts, "cpu")
        actual = outcome(function, layouts, "neuron")
        what = str([(layout.shape, layout.strides, layout.dtype) for layout in layouts])
        if isinstance(expected, Exception) or isinstance(actual, Exception):
            assert type(actual) is type(expected), f"{what}: {actual!r} {expected!r}"
            assert str(actual).split("\n")[0] == str(expected).split("\n")[0], what
        else:
            assert actual.stride() == expected.stride(), what
            assert_like(actual, expected, strides=True, what=what)


# out=


def test_out_gets_the_result_in_its_own_dtype_and_layout() -> None:
    a, b = torch.rand(3, 4), torch.rand(3, 4)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        outs = [torch.zeros(4, 3, dtype=dtype, device=d).t() for d in ("cpu", "neuron")]
        torch.add(a, b, out=outs[0])
        assert torch.add(a.to("neuron"), b.to("neuron"), out=outs[1]) is outs[1]
        assert outs[1].stride() == (1, 3)
        torch.testing.assert_close(outs[1].cpu(), outs[0])


def test_out_of_another_shape_is_resized_with_a_warning() -> None:
    a = torch.rand(3, 4).to("neuron")
    out = torch.zeros(2, device="neuron")
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.exp(a, out=out)
    assert out.shape == (3, 4)
    torch.testing.assert_close(out.cpu(), a.cpu().exp())
    empty = torch.empty(0, device="neuron")
    torch.mul(a.t(), a.t(), out=empty)
    expected = torch.mul(a.cpu().t(), a.cpu().t(), out=torch.empty(0))
    assert empty.stride() == expected.stride()


def test_out_that_cannot_hold_the_result_is_refused() -> None:
    same_error(lambda d: torch.add(torch.ones(2, device=d), 1, out=torch.zeros(2, dtype=torch.int64, device=d)))


def test_comparisons_write_to_an_out_of_any_dtype() -> None:
    a, b = torch.tensor([1.0, 2.0, 3.0]).to("neuron"), torch.tensor([2.0, 2.0, 2.0]).to("neuron")
    out = torch.zeros(3, dtype=torch.int32, device="neuron")
    torch.ge(a, b, out=out)
    assert out.tolist() == [0, 1, 1]


# Overlap


def test_a_target_that_overlaps_itself_is_refused() -> None:
    same_error(lambda d: torch.ones(1, device=d).expand(3).add_(1))


def test_a_target_that_partly_overlaps_an_input_is_refused() -> None:
    def program(device: str) -> None:
        x = torch.arange(5.0, device=device)
        torch.add(x[:4], 1, out=x[1:])

    same_error(program)


def test_fill_of_an_expanded_tensor_fills_what_it_stands_for() -> None:
    x = torch.zeros(3, device="neuron")
    x[1:2].expand(4).fill_(7)
    assert x.tolist() == [0, 7, 0]


# Scalars, dtypes and devices


def test_zero_dim_cpu_tensors_mix_in_and_are_read_at_the_call() -> None:
    x = torch.ones(3).to("neuron")
    number = torch.tensor(2.0)
    y = x * number
    number.fill_(5)
    assert y.tolist() == [2, 2, 2]


def test_tensors_of_two_devices_are_refused_in_pytorchs_words() -> None:
    x, y = torch.ones(3, device="neuron"), torch.ones(3)
    calls: list[Callable[[], Any]] = [
        lambda: x + y, lambda: y + x, lambda: x.add_(y), lambda: y.mul_(x), lambda: torch.exp(x, out=y),
        lambda: torch.where(y > 0, x, x),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            call()


def test_operations_on_dtypes_raise_what_the_cpu_raises() -> None:
    programs: list[Callable[[str], Any]] = [
        lambda d: torch.ones(2, dtype=torch.bool, device=d) - torch.ones(2, dtype=torch.bool, device=d),
        lambda d: -torch.ones(2, dtype=torch.bool, device=d),
        lambda d: torch.ones(2, dtype=torch.int64, device=d).mul_(1.5),
        lambda d: torch.add(torch.ones(2, dtype=torch.int64, device=d), 1, alpha=1.5),
        lambda d: torch.ones(2, device=d) & 1,
        lambda d: torch.ones(2, dtype=torch.int64, device=d) ** -1,
        lambda d: torch.ones(2, dtype=torch.int64, device=d) // 0,
        lambda d: torch.ones(2, dtype=torch.int64, device=d) % torch.tensor([1, 0]).to(d),
        lambda d: torch.ones(2, dtype=torch.uint8, device=d).fill_(300),
        lambda d: torch.ones(2, device=d).add_(torch.ones(3, device=d)),
        lambda d: torch.ones(2, device=d).add_(torch.ones(2, 2, device=d)),
        lambda d: torch.arange(0, 5, -1, device=d),
    ]
    for program in programs:
        same_error(program)


def test_large_numbers_become_infinite_or_wrap_as_on_the_cpu() -> None:
    x = torch.ones(2)
    torch.testing.assert_close((x.to("neuron") * 1e300).cpu(), x * 1e300)
    small = torch.tensor([250], dtype=torch.uint8)
    assert (small.to("neuron") + 300).tolist() == (small + 300).tolist()


def test_nan_and_signed_zero_are_the_cpus() -> None:
    values = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0])
    a = values.repeat(6)
    b = values.repeat_interleave(6)
    either_zero = [torch.maximum, torch.minimum, torch.fmax, torch.fmin]  # of 0 and -0, which depends on the CPU
    functions: list[Callable[..., torch.Tensor]] = [
        *either_zero, torch.add, torch.sub, torch.mul, torch.div, torch.eq, torch.ne, torch.lt, torch.ge, torch.pow,
        torch.atan2, torch.remainder, torch.fmod, torch.copysign, lambda a, b: torch.nan_to_num(a / b),
        lambda a, b: torch.where(a > b, a, b),
    ]  # fmt: skip
    for function in functions:
        expected = function(a, b)
        actual = function(a.to("neuron"), b.to("neuron")).cpu()
        torch.testing.assert_close(actual, expected, equal_nan=True, rtol=0, atol=1e-6)
        if expected.is_floating_point() and function not in either_zero:
            numbers = ~expected.isnan()
            assert torch.equal(actual.signbit()[numbers], expected.signbit()[numbers]), function


@pytest.mark.parametrize("shape", [(1,) * 11 + (3, 1), (2,) * 9 + (1, 1, 3, 1), (1,) * 10 + (2, 3, 4, 1)], ids=len)
def test_triangles_of_more_dimensions_than_kernels_have(shape: tuple[int, ...]) -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = torch.arange(1.0, math.prod(shape) + 1).reshape(shape).to(device)
        return [x.tril(), x.tril(-1), x.triu(1), x.transpose(0, -1).triu(), x.transpose(-1, -2).tril()]

    run_everywhere(program, exact=True)
