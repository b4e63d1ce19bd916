from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from modes import run_everywhere
from opinfo import DTYPES, check_errors, check_samples, check_threads, find_op, same_error
from recorded import check_recorded_samples, no_fallback

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


BAG = "nn.functional.embedding_bag"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples_of_bags_agree_with_the_cpu_without_a_fallback(dtype: torch.dtype) -> None:
    check_recorded_samples(find_op(BAG), dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", [torch.int64, torch.int32], ids=str)
def test_all_that_bags_make_is_the_cpus(
    dtype: torch.dtype, mode: str, padding: int | None, last: bool, kind: torch.dtype
) -> None:
    weight = torch.randn(9, 5).to(dtype)
    indices = torch.tensor([1, 2, 4, 5, 4, 3, 2, 8], dtype=kind)
    offsets = torch.tensor([0, 4, 4, 8] if last else [0, 4, 4], dtype=kind)
    number = ["sum", "mean", "max"].index(mode)
    for scales in [None, torch.rand(8).to(dtype)] if mode == "sum" else [None]:
        for op in (torch.ops.aten._embedding_bag, torch.ops.aten._embedding_bag_forward_only):
            options = (False, number, False, scales, last, -1 if padding is None else padding)
            expected = op(weight, indices, offsets, *options)
            moved = [None if o is None else o.to("neuron") if isinstance(o, torch.Tensor) else o for o in options]
            with no_fallback():
                actual = op(weight.to("neuron"), indices.to("neuron"), offsets.to("neuron"), *moved)
            for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
                assert a.shape == e.shape, i
                assert a.dtype == e.dtype, i
            torch.testing.assert_close(actual[0].cpu(), expected[0])


def test_bags_and_their_gradients_have_the_same_bits_in_every_mode() -> None:
    def program(device: str) -> list[torch.Tensor]:
        results = []
        for mode in ("sum", "mean", "max"):
            weight = torch.linspace(-1, 1, 28).view(7, 4).to(device).requires_grad_()
            scales = torch.linspace(0, 1, 6).to(device).requires_grad_()
            batch = torch.tensor([[1, 2, 6], [6, 0, 1]]).to(device)
            options = {"per_sample_weights": scales.view(2, 3)} if mode == "sum" else {}
            bags = F.embedding_bag(batch, weight, mode=mode, padding_idx=2, **options)
            (bags * bags.detach().cos()).sum().backward()
            results += [bags, weight.grad, *([scales.grad] if options else [])]
        return results

    with no_fallback():
        run_everywhere(program)


def test_bad_indices_and_offsets_of_bags() -> None:
    weight = torch.randn(4, 3)
    for indices, offsets in [([0, 4], [0]), ([-1, 0], [0]), ([0, 1], [1]), ([0, 1], [0, 3])]:
        same_error(
            lambda d, i=indices, o=offsets: F.embedding_bag(torch.tensor(i).to(d), weight.to(d), torch.tensor(o).to(d))
        )
    computed = F.embedding_bag(torch.tensor([3]).to("neuron") + 1, weight.to("neuron"), torch.tensor([0]).to("neuron"))
    with pytest.raises(RuntimeError, match=r"idx 0 is out of bounds|[Ii]ndex"):
        computed.cpu()


def test_threads_do_not_change_bits() -> None:
    check_threads("""
weight = randn(300, 512).requires_grad_()
indices = (torch.arange(8000) * 31 % 300).view(8, 1000).to("neuron")
rows = F.embedding(indices, weight)
rows.backward(randn(8, 1000, 512))
digest(rows, weight.grad)
""")
