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
    for batch in (1, 8):
        q, k, v = (randn(batch, 4, 256, 32, dtype=dtype).requires_grad_() for _ in range(3))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out.backward(randn(batch, 4, 256, 32, dtype=dtype))
        digest(out, q.grad, k.grad, v.grad)
""")
