from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from opinfo import DTYPES, check_threads, find_op, same_error

SDPA = "nn.functional.scaled_dot_product_attention"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples_agree_with_the_cpu(dtype: torch.dtype) -> None:
    op = find_op(SDPA)
    without_dropout = lambda *args, dropout_p=0.0, **kwargs: op.op(*args, dropout_p=0.0, **kwargs)  # noqa: E731
    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
        moved = [t.to("neuron") if isinstance(t, torch.Tensor) else t for t in (sample.input, *sample.args)]
        kwargs = {k: v.to("neuron") if isinstance(v, torch.Tensor) else v for k, v in sample.kwargs.items()}
        expected = without_dropout(sample.input, *sample.args, **sample.kwargs)
        actual = without_dropout(*moved, **kwargs)
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        tolerance = {"rtol": 1.6e-2, "atol": 1e-2} if dtype == torch.bfloat16 else {}
        torch.testing.assert_close(actual.cpu(), expected, equal_nan=True, **tolerance)


def test_wrong_arguments_raise_what_the_cpu_raises() -> None:
    q = torch.randn(2, 4, 8, 16)
    for program in [
        lambda d: F.scaled_dot_product_attention(q.to(d), q.double().to(d), q.to(d)),
        lambda d: F.scaled_dot_product_attention(q.to(d), q[..., :8].to(d), q.to(d)),
        lambda d: F.scaled_dot_product_attention(q[0, 0, 0].to(d), q.to(d), q.to(d)),
        lambda d: F.scaled_dot_product_attention(q.to(d), q.to(d), q.to(d), torch.ones(5, 8).to(d)),
    ]:
        same_error(program)


CASES = {
    "plain": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "mask": {"attn_mask": torch.randn(40, 50)},
    "bool mask": {"attn_mask": torch.rand(40, 50) > 0.3},
    "full mask": {"attn_mask": torch.randn(3, 4, 40, 50)},
    "broadcast mask": {"attn_mask": torch.randn(1, 4, 1, 50).expand(1, 4, 40, 50)},
    "grouped": {"enable_gqa": True},
}


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float64], ids=str)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_forward_and_backward_agree_with_the_cpu_kernel(case: str, batch: int, dtype: torch.dtype) -> None:
    options = dict(CASES[case])
    mask = options.pop("attn_mask", None)
    if mask is not None:
        mask = (mask if mask.dim() == 2 else mask[:batch]).to(mask.dtype if mask.dtype == torch.bool else dtype)
    heads = 2 if case == "grouped" else 4
    lengths = (50, 50) if case == "causal" else (40, 50)
    generator = torch.Generator().manual_seed(3)
    shapes = [(batch, lengths[0], 4, 16), (batch, lengths[1], heads, 16), (batch, lengths[1], heads, 16)]
    data = [torch.randn(s, generator=generator).to(dtype) for s in shapes]
    weight = torch.randn(batch, 4, lengths[0], 16, generator=generator).to(dtype)
    results = {}
    for device in ("cpu", "neuron"):
        leaves = [t.clone().to(device).requires_grad_() for t in data]
        out = F.scaled_dot_product_attention(
            *(t.transpose(1, 2) for t in leaves), None if mask is None else mask.to(device), **options
        )
        assert "Overrideable" in str(out.grad_fn) or device == "cpu"
        out.backward(weight.to(device))
        results[device] = [out, *(t.grad for t in leaves)]
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {}
    assert results["neuron"][0].stride() == results["cpu"][0].stride()
    for a, e in zip(results["neuron"], results["cpu"], strict=True):
        torch.testing.assert_close(a.detach().cpu(), e.detach(), **tolerance)


# Queries, keys, width, causal: whole and ragged tiles and blocks, widths of our kernels and others, few queries.
SHAPES = [
    (128, 128, 32, True),
    (50, 50, 64, False),
    (197, 197, 48, True),
    (33, 20, 24, False),
    (600, 700, 16, False),
    (70, 300, 16, True),
    (300, 70, 128, True),
    (1, 300, 32, False),
    (2, 17, 64, False),
    (5, 300, 16, False),
    (5, 40, 16, False),
    (20, 20, 256, True),
    (20, 20, 272, True),
]


@pytest.mark.parametrize(("queries", "keys", "width", "causal"), SHAPES)
@pytest.mark.parametrize("heads", [(1, 1), (2, 3)], ids=["one head", "six heads"])
def test_heads_of_one_matrix_agree_with_the_cpu(
    heads: tuple[int, int], queries: int, keys: int, width: int, causal: bool
) -> None:
    """Queries, keys and values as a transformer has them: views of the output of one linear layer."""
    generator = torch.Generator().manual_seed(5)
    batch, count = heads
    data = torch.randn(batch, max(queries, keys), 3 * count * width, generator=generator)
    weight = torch.randn(batch, count, queries, width, generator=generator)
    results = {}
    for device in ("cpu", "neuron"):
        leaf = data.clone().to(device).requires_grad_()
        parts = [part.view(batch, -1, count, width).transpose(1, 2) for part in leaf.split(count * width, dim=-1)]
        q, k, v = parts[0][:, :, :queries], parts[1][:, :, :keys], parts[2][:, :, :keys]
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        assert "Overrideable" in str(out.grad_fn) or device == "cpu"
        out.backward(weight.to(device))
        results[device] = (out.detach().cpu(), leaf.grad.cpu())
    for actual, expected in zip(results["neuron"], results["cpu"], strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("width", [8, 32])
def test_rows_that_see_nothing_and_nan_are_as_on_the_cpu(width: int) -> None:
    generator = torch.Generator().manual_seed(6)
    data = [torch.randn(2, 3, 40, width, generator=generator) for _ in range(4)]
    data[0][1, 2, 7, 3] = float("nan")
    mask = torch.randn(40, 40, generator=generator)
    mask[11] = -torch.inf
    results = {}
    for device in ("cpu", "neuron"):
        q, k, v = (t.clone().to(device).requires_grad_() for t in data[:3])
        out = F.scaled_dot_product_attention(q, k, v, mask.to(device), scale=-0.4)
        out.backward(data[3].to(device))
        results[device] = [out.detach(), q.grad, k.grad, v.grad]
    assert results["cpu"][0][:, :, 11].eq(0).all()
    for actual, expected in zip(results["neuron"], results["cpu"], strict=True):
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=2e-5, equal_nan=True)


def test_the_choice_is_the_cpus() -> None:
    q = torch.randn(2, 4, 8, 16)
    for arguments in [(q, q, q), (q[0], q[0], q[0]), (q.transpose(2, 3),) * 3, (q.half(),) * 3]:
        moved = [t.to("neuron") for t in arguments]
        flash = torch.ops.aten._fused_sdp_choice(*arguments) == 1
        assert (torch.ops.aten._fused_sdp_choice(*moved) == 4) == flash or arguments[0].stride() != moved[0].stride()
    assert torch.ops.aten._fused_sdp_choice(*(q.to("neuron"),) * 3, dropout_p=0.5) == 0


def test_threads_do_not_change_bits() -> None:
    check_threads("""
for dtype in (torch.float32, torch.bfloat16):
    for batch, heads, length in ((1, 4, 256), (8, 4, 256), (1, 1, 1000)):
        q, k, v = (randn(batch, heads, length, 32, dtype=dtype).requires_grad_() for _ in range(3))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out.backward(randn(batch, heads, length, 32, dtype=dtype))
        digest(out, q.grad, k.grad, v.grad)
""")
