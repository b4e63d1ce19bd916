from __future__ import annotations

import pytest
import torch

from modes import run_everywhere
from opinfo import DTYPES, check_errors, check_samples, check_threads, find_op, same_error, with_errors
from recorded import no_fallback

OPS = ["cat", "stack", "hstack", "vstack", "dstack", "column_stack"]


@pytest.mark.parametrize("dtype", [*DTYPES, torch.int64, torch.bool, torch.complex64], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_samples_agree_with_the_cpu(name: str, dtype: torch.dtype) -> None:
    check_samples(find_op(name), dtype)


@pytest.mark.parametrize("name", with_errors(OPS))
def test_wrong_arguments_raise_what_the_cpu_raises(name: str) -> None:
    check_errors(find_op(name))


def test_dtypes_are_promoted_and_targets_keep_theirs() -> None:
    parts = [torch.arange(3), torch.rand(2), torch.ones(1, dtype=torch.bool)]
    moved = [p.to("neuron") for p in parts]
    expected = torch.cat(parts)
    actual = torch.cat(moved)
    assert actual.dtype == expected.dtype
    assert torch.equal(actual.cpu(), expected)
    out = torch.empty(0, dtype=torch.float64, device="neuron")
    torch.cat(moved, out=out)
    assert torch.equal(out.cpu(), torch.cat(parts, out=torch.empty(0, dtype=torch.float64)))


def test_channels_last_is_kept() -> None:
    parts = [torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last) for _ in range(2)]
    assert torch.cat([p.to("neuron") for p in parts], 1).stride() == torch.cat(parts, 1).stride()


def test_wrong_shapes_and_targets_raise_at_the_call() -> None:
    a, b = torch.randn(2, 3), torch.randn(3, 4)
    same_error(lambda d: torch.cat([a.to(d), b.to(d)]))
    same_error(lambda d: torch.cat([a.to(d), b[0].to(d)]))
    same_error(lambda d: torch.cat([]))
    same_error(lambda d: torch.stack([a.to(d), b.to(d)]))

    def into_itself(device: str) -> None:
        x = torch.randn(4, 3).to(device)
        torch.cat([x[:2], x[2:]], out=x)

    same_error(into_itself)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_large_results_and_empty_parts(dim: int) -> None:
    turned = torch.randn(60, 50, 70).transpose(0, 1)
    parts = [torch.randn(50, 60, 70), torch.empty(0), turned]
    assert torch.equal(torch.cat([p.to("neuron") for p in parts], dim).cpu(), torch.cat(parts, dim))


def test_more_tensors_than_a_node_can_hold() -> None:
    parts = [torch.full((i % 3, 2), float(i)) for i in range(500)]
    with no_fallback():
        moved = [p.to("neuron") for p in parts]
        assert torch.equal(torch.cat(moved).cpu(), torch.cat(parts))
        wide = torch.empty(0, device="neuron")
        torch.cat([p.t() for p in moved], 1, out=wide)
        assert torch.equal(wide.cpu(), torch.cat([p.t() for p in parts], 1))


def test_operators_that_split_and_join_without_views_are_recorded() -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = torch.arange(24.0).view(4, 6).to(device)
        parts = [torch.empty(0, device=device), torch.empty(0, device=device)]
        torch.split_with_sizes_copy(x, [2, 4], 1, out=parts)
        chunks = torch.empty(2, 20, device=device)
        torch._chunk_cat([x, x[:, :4]], 0, 2, out=chunks)
        return [
            *parts, chunks, torch._chunk_cat([x, x[:, :4]], 0, 2), torch.narrow_copy(x, 1, 2, 3),
            torch.select_scatter(x, x[0, :4], 1, 2), torch.slice_scatter(x, x[:, :2], 1, 1, 3),
            torch.diagonal_scatter(x, x[0, :4]), torch.as_strided_scatter(x, x[:2, :2], (2, 2), (6, 1), 1),
            *torch.tensor_split(x, 4, 1), torch.block_diag(x, x[:1]), torch.repeat_interleave(x, 2, 1),
            *torch.meshgrid(x[0], x[1, :2], indexing="ij"), torch.stack([x.t(), x.t()], 1),
        ]  # fmt: skip

    with no_fallback():
        run_everywhere(program, exact=True)


def test_threads_do_not_change_bits() -> None:
    check_threads("""
a, b = randn(300, 400), randn(300, 400)
digest(torch.cat([a, b]), torch.cat([a, b.t()[:300, :300]], 1), torch.stack([a, b], 2))
""")
