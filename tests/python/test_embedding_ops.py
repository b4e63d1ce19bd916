from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from opinfo import DTYPES, check_errors, check_samples, check_threads, find_op, same_error

OP = "nn.functional.embedding"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples_agree_with_the_cpu(dtype: torch.dtype) -> None:
    check_samples(find_op(OP), dtype)


def test_wrong_arguments_raise_what_the_cpu_raises() -> None:
    check_errors(find_op(OP))


@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_the_gradient_agrees_with_the_cpu(by_frequency: bool, padding: int, dtype: torch.dtype) -> None:
    indices = torch.randint(7, (5, 40))
    grad = torch.randn(5, 40, 33).to(dtype)
    arguments = (7, padding, by_frequency)
    expected = torch.ops.aten.embedding_dense_backward(grad, indices, *arguments)
    actual = torch.ops.aten.embedding_dense_backward(grad.to("neuron"), indices.to("neuron"), *arguments)
    torch.testing.assert_close(actual.cpu(), expected, **({} if dtype.itemsize > 2 else {"rtol": 2e-2, "atol": 2e-2}))


def test_bad_indices_from_the_host_raise_at_the_call() -> None:
    for bad in ([0, 3], [-1, 0]):
        same_error(lambda d, bad=bad: F.embedding(torch.tensor(bad).to(d), torch.randn(3, 2).to(d)))
        same_error(lambda d, bad=bad: F.embedding(torch.tensor([bad]).int().to(d), torch.randn(3, 2).to(d)))
    same_error(lambda d: F.embedding(torch.tensor(5).to(d), torch.randn(3, 2).to(d)))


def test_bad_indices_that_are_computed_raise_at_the_next_read() -> None:
    indices = torch.tensor([0, 2]).to("neuron") + 1
    rows = F.embedding(indices, torch.randn(3, 2).to("neuron"))
    with pytest.raises(IndexError, match="index out of range in self"):
        rows.cpu()
    torch.neuron.synchronize()


def test_a_host_copy_that_was_overwritten_on_the_device_is_not_trusted() -> None:
    weight = torch.arange(6.0).view(3, 2).to("neuron")
    indices = torch.tensor([7, 7]).to("neuron")
    indices.copy_(torch.ones(2, device="neuron"))
    assert F.embedding(indices, weight).tolist() == [[2, 3], [2, 3]]
    indices.add_(9)
    rows = F.embedding(indices, weight)
    with pytest.raises(IndexError):
        rows.cpu()


def test_indices_that_are_not_contiguous() -> None:
    batch = torch.randint(9, (8, 130))
    weight = torch.randn(9, 200)
    actual = F.embedding(batch.to("neuron")[:, :-1], weight.to("neuron"))
    torch.testing.assert_close(actual.cpu(), F.embedding(batch[:, :-1], weight))


def test_threads_do_not_change_bits() -> None:
    check_threads("""
weight = randn(300, 512).requires_grad_()
indices = (torch.arange(8000) * 31 % 300).view(8, 1000).to("neuron")
rows = F.embedding(indices, weight)
rows.backward(randn(8, 1000, 512))
digest(rows, weight.grad)
""")
