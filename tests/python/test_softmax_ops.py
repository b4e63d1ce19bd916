from __future__ import annotations

import pytest
import torch

from opinfo import DTYPES, check_samples, check_threads, find_op, same_error

OPS = [
    ("softmax", ""),
    ("softmax", "with_dtype"),
    ("log_softmax", ""),
    ("log_softmax", "with_dtype"),
    ("nn.functional.softmin", ""),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("name", "variant"), OPS)
def test_samples_agree_with_the_cpu(name: str, variant: str, dtype: torch.dtype) -> None:
    check_samples(find_op(name, variant), dtype)


def test_wrong_arguments_raise_what_the_cpu_raises() -> None:
    for program in [
        lambda d: torch.softmax(torch.ones(3).to(d), 1),
        lambda d: torch.log_softmax(torch.ones(3, 4).to(d), -3),
        lambda d: torch.softmax(torch.ones(3).long().to(d), 0),
        lambda d: torch.log_softmax(torch.ones(3).bool().to(d), 0),
        lambda d: torch.ops.aten._softmax(torch.ones(3).half().to(d), 0, True),
    ]:
        same_error(program)


def test_out_forms_write_the_target() -> None:
    x = torch.randn(5, 7)
    for op in (torch.ops.aten._softmax.out, torch.ops.aten._log_softmax.out):
        out = torch.empty(0, device="neuron")
        op(x.to("neuron"), 1, False, out=out)
        expected = op(x, 1, False, out=torch.empty(0))
        torch.testing.assert_close(out.cpu(), expected)
        assert out.shape == expected.shape


def test_a_row_without_finite_values_is_nan() -> None:
    x = torch.tensor([[float("-inf")] * 3, [0.0, float("-inf"), 1.0], [float("inf"), 0.0, 1.0]])
    for op in (torch.softmax, torch.log_softmax):
        torch.testing.assert_close(op(x.to("neuron"), 1).cpu(), op(x, 1), equal_nan=True)


def test_threads_do_not_change_bits() -> None:
    check_threads("""
x = randn(257, 1031).requires_grad_()
y = torch.softmax(x, 1); z = torch.log_softmax(x, 0)
(y * z).sum().backward()
digest(y, z, x.grad)
""")
