from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from modes import run_everywhere
from opinfo import check_errors, check_samples, check_threads, find_op, name_of, same_error, with_errors
from recorded import cases_of, no_fallback

# Vectors of singular values and eigenvalues are free in sign, but the same algorithm runs on both devices.
NAMES = """
    linalg.cholesky linalg.cholesky_ex linalg.inv linalg.inv_ex linalg.solve linalg.solve_ex linalg.lu_factor
    linalg.lu_factor_ex linalg.lu linalg.lu_solve lu_unpack linalg.qr linalg.eigh linalg.eigvalsh linalg.svd
    linalg.svdvals linalg.det linalg.slogdet linalg.cross linalg.solve_triangular triangular_solve
    cholesky cholesky_inverse cholesky_solve cdist linalg.pinv linalg.matrix_power linalg.cond
    linalg.matrix_rank logdet cross
"""
# What is not recorded runs on the CPU: eigenvalues of general matrices, least squares, Householder products.
OTHERS = "linalg.eigvals linalg.lstsq linalg.householder_product matrix_exp"
DTYPES = [torch.float32, torch.float64, torch.complex128]


@pytest.mark.parametrize(("op", "dtype"), [*cases_of(NAMES, DTYPES), *cases_of(OTHERS, [torch.float64])], ids=name_of)
def test_samples_agree_with_the_cpu(op: OpInfo, dtype: torch.dtype) -> None:
    check_samples(op, dtype, backward=dtype == torch.float64)


@pytest.mark.parametrize("name", with_errors((NAMES + OTHERS).split()))
def test_wrong_arguments_raise_what_the_cpu_raises(name: str) -> None:
    check_errors(find_op(name))


def matrices(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Symmetric matrices that are far from singular."""
    a = torch.randn(*shape, shape[-1], generator=torch.Generator().manual_seed(1), dtype=dtype)
    return a @ a.mT + shape[-1] * torch.eye(shape[-1], dtype=dtype)


PROGRAMS: dict[str, Callable[[torch.Tensor], object]] = {
    "cholesky_ex": lambda a: torch.linalg.cholesky_ex(a)[0],
    "inv_ex": lambda a: torch.linalg.inv_ex(a)[0],
    "solve_ex": lambda a: torch.linalg.solve_ex(a, a[..., :3] * 2)[0],
    "lu_factor_ex": lambda a: torch.linalg.lu_factor_ex(a)[0],
    "qr": lambda a: torch.linalg.qr(a)[1],
    "eigh": lambda a: torch.linalg.eigh(a)[0],
    "svd": lambda a: torch.linalg.svd(a)[1],
    "svdvals": torch.linalg.svdvals,
    "det": torch.linalg.det,
    "slogdet": lambda a: torch.linalg.slogdet(a)[1],
    "solve_triangular": lambda a: torch.linalg.solve_triangular(a.tril(), a[..., :2], upper=False),
    "cdist": lambda a: torch.cdist(a, a * 0.5, p=1.0),
    "euclidean": lambda a: torch.cdist(a, a * 0.5 + 1),
    "cross": lambda a: torch.linalg.cross(a[..., :3], a[..., 3:6]),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shape", [(6,), (40,), (3, 30), (64, 48)], ids=str)
def test_common_cases_are_recorded(name: str, shape: tuple[int, ...]) -> None:
    a = matrices(*shape)

    def program(device: str) -> list[torch.Tensor]:
        leaf = a.to(device).requires_grad_()
        out = PROGRAMS[name](leaf)
        return [out.detach(), *torch.autograd.grad(out.abs().sum(), leaf)]

    with no_fallback():
        actual = program("neuron")
    for result, expected in zip(actual, program("cpu"), strict=True):
        torch.testing.assert_close(result.cpu(), expected)
    run_everywhere(program)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_solving_from_the_right(dtype: torch.dtype) -> None:
    a, b = matrices(3, 20).to(dtype) * (2 + 1j if dtype.is_complex else 2), torch.randn(3, 4, 20, dtype=dtype)
    expected = torch.linalg.solve(a, b, left=False)
    actual = torch.linalg.solve(a.to("neuron"), b.to("neuron"), left=False)
    assert actual.stride() == expected.stride()
    torch.testing.assert_close(actual.cpu(), expected)


def test_threads_do_not_change_bits() -> None:
    check_threads("""
a = randn(64, 40, 40)
a = a @ a.mT + 40 * torch.eye(40, device="neuron")
large = randn(300, 300)
for m in (a, large @ large.mT):
    digest(torch.linalg.cholesky(m), torch.linalg.inv(m), *torch.linalg.eigh(m))
    digest(*torch.linalg.svd(m), *torch.linalg.qr(m))
    digest(torch.linalg.solve(m, m[..., :3]), torch.linalg.det(m), torch.cdist(m, m), torch.cdist(m, m, p=1.0))
""")


def test_a_singular_matrix_raises_at_its_line() -> None:
    for program in [
        lambda d: torch.linalg.cholesky(-torch.eye(3).to(d)),
        lambda d: torch.linalg.inv(torch.zeros(2, 3, 3).to(d)),
        lambda d: torch.linalg.solve(torch.zeros(3, 3).to(d), torch.ones(3).to(d)),
        lambda d: torch.linalg.cholesky_ex(-torch.eye(3).to(d), check_errors=True),
        lambda d: torch.linalg.inv_ex(torch.zeros(3, 3).to(d), check_errors=True),
    ]:
        same_error(program)


def test_info_is_a_plain_result() -> None:
    a = torch.stack([torch.eye(3), -torch.eye(3)])
    with no_fallback():
        _, info = torch.linalg.cholesky_ex(a.to("neuron"))
        assert info.tolist() == torch.linalg.cholesky_ex(a)[1].tolist() == [0, 1]


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_what_does_not_converge_raises_at_the_next_read(name: str) -> None:
    a = torch.full((3, 3), float("nan"))
    with pytest.raises(RuntimeError) as expected:
        getattr(torch.linalg, name)(a)
    before = torch.ones(3, device="neuron")
    results = getattr(torch.linalg, name)(a.to("neuron"))
    after = before + 1
    with pytest.raises(RuntimeError) as caught:
        results[0].cpu()
    assert str(expected.value).split("\n")[0] in str(caught.value)
    assert before.tolist() == [1, 1, 1]
    del after


def test_errors_come_at_the_call() -> None:
    a = torch.randn(3, 4)
    for program in [
        lambda d: torch.linalg.cholesky(a.to(d)),
        lambda d: torch.linalg.inv(a.to(d)),
        lambda d: torch.linalg.solve(torch.eye(3).to(d), torch.ones(4).to(d)),
        lambda d: torch.linalg.solve(torch.eye(3).to(d), torch.ones(3).double().to(d)),
        lambda d: torch.linalg.qr(a.to(d), mode="other"),
        lambda d: torch.linalg.eigh(torch.eye(3).to(d), UPLO="X"),
        lambda d: torch.linalg.svd(a[0].to(d)),
        lambda d: torch.linalg.det(torch.eye(3).half().to(d)),
        lambda d: torch.linalg.cross(a.to(d), a.to(d)),
        lambda d: torch.linalg.solve_triangular(a.to(d), a.to(d), upper=True),
        lambda d: torch.linalg.lu_factor(torch.eye(3).to(d), pivot=False),
        lambda d: torch.linalg.lu(torch.eye(3).to(d), pivot=False),
        lambda d: torch.cdist(a.to(d), torch.randn(3, 5).to(d)),
        lambda d: torch.cdist(a.to(d), a.to(d), p=-1.0),
        lambda d: torch.linalg.svd(torch.eye(3).to(d), driver="gesvd"),
    ]:
        same_error(program)
