from __future__ import annotations

import pytest
import torch

from opinfo import DTYPES, check_errors, check_samples, check_threads, find_op, same_error, with_errors

OPS = [
    ("mm", ""), ("addmm", ""), ("addmm", "decomposed"), ("bmm", ""), ("baddbmm", ""), ("mv", ""), ("addmv", ""),
    ("dot", ""), ("matmul", ""), ("__rmatmul__", ""), ("nn.functional.linear", ""), ("einsum", ""),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float64], ids=str)
@pytest.mark.parametrize(("name", "variant"), OPS)
def test_samples_agree_with_the_cpu(name: str, variant: str, dtype: torch.dtype) -> None:
    check_samples(find_op(name, variant), dtype)


@pytest.mark.parametrize(("name", "variant"), with_errors(OPS))
def test_wrong_arguments_raise_what_the_cpu_raises(name: str, variant: str) -> None:
    check_errors(find_op(name, variant))


def test_shape_and_dtype_errors_come_at_the_call() -> None:
    a = torch.randn(3, 4)
    for program in [
        lambda d: torch.mm(a.to(d), a.to(d)),
        lambda d: torch.mm(a.to(d), torch.randn(4, 4).double().to(d)),
        lambda d: torch.mm(a[0].to(d), a.to(d)),
        lambda d: torch.addmm(torch.randn(7).to(d), a.to(d), torch.randn(4, 5).to(d)),
        lambda d: torch.addmm(torch.randn(5).double().to(d), a.to(d), torch.randn(4, 5).to(d)),
        lambda d: torch.bmm(torch.randn(2, 3, 4).to(d), torch.randn(3, 4, 5).to(d)),
        lambda d: torch.ones(2, 2).to(d).addmm_(torch.randn(2, 3).to(d), torch.randn(3, 5).to(d)),
        lambda d: torch.mm(a.to(d), torch.randn(4, 4).to(d), out=torch.empty(3, 4).double().to(d)),
        lambda d: torch.mv(a.to(d), torch.randn(3).to(d)),
        lambda d: torch.dot(torch.randn(3).to(d), torch.randn(4).to(d)),
    ]:
        same_error(program)


def test_operands_on_two_devices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.mm(torch.ones(2, 2, device="neuron"), torch.ones(2, 2))


def test_beta_zero_ignores_nan_in_self() -> None:
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    out = torch.addmm(torch.full((5,), float("nan")).to("neuron"), a.to("neuron"), b.to("neuron"), beta=0, alpha=2)
    torch.testing.assert_close(out.cpu(), 2 * (a @ b))


def test_in_place_and_out_forms() -> None:
    self, a, b = torch.randn(300, 200), torch.randn(300, 150), torch.randn(150, 200)
    expected = torch.addmm(self, a, b, beta=0.5, alpha=2)
    x = self.to("neuron")
    assert x.addmm_(a.to("neuron"), b.to("neuron"), beta=0.5, alpha=2) is x
    torch.testing.assert_close(x.cpu(), expected)
    out = torch.empty(200, 300, device="neuron").t()
    torch.addmm(self.to("neuron"), a.to("neuron"), b.to("neuron"), beta=0.5, alpha=2, out=out)
    torch.testing.assert_close(out.cpu(), expected)
    assert out.stride() == (1, 300)
    square = torch.randn(6, 6)
    y = square.to("neuron")
    torch.mm(y, y, out=y)
    torch.testing.assert_close(y.cpu(), torch.mm(square, square, out=square))


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize(("m", "n", "k"), [(1024, 512, 128), (128, 512, 1024), (17, 2000, 130), (1, 300, 5000)])
def test_large_products_of_all_layouts(layout: str, m: int, n: int, k: int) -> None:
    a = torch.randn(m, k) if layout[0] == "n" else torch.randn(k, m).t()
    b = torch.randn(k, n) if layout[1] == "n" else torch.randn(n, k).t()
    torch.testing.assert_close((a.to("neuron") @ b.to("neuron")).cpu(), a @ b, rtol=1e-4, atol=1e-4)


def test_threads_do_not_change_bits() -> None:
    check_threads("""
for dtype in (torch.float32, torch.bfloat16):
    a, b, c = randn(1024, 128, dtype=dtype), randn(128, 512, dtype=dtype), randn(512, dtype=dtype)
    digest(a @ b, torch.addmm(c, a, b), a.t() @ torch.addmm(c, a, b), b @ b.t())
    p, q = randn(12, 200, 150, dtype=dtype), randn(12, 150, 100, dtype=dtype)
    digest(torch.bmm(p, q), torch.baddbmm(randn(100, dtype=dtype), p, q))
    digest(torch.mv(randn(3000, 1000, dtype=dtype), randn(1000, dtype=dtype)), torch.dot(a.reshape(-1), a.reshape(-1)))
""")
