"""Operators without a kernel of ours run on the CPU, on the same memory, and are counted."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn


def fallbacks() -> dict[str, int]:
    return torch.neuron.fusion_stats()["fallbacks"]


def test_a_fallback_is_counted_by_name():
    before = fallbacks().get("aten::linalg_matrix_exp", 0)
    torch.linalg.matrix_exp(torch.eye(3, device="neuron") * 2)
    assert fallbacks()["aten::linalg_matrix_exp"] == before + 1


def test_a_fallback_reads_what_was_recorded_and_is_read_by_what_follows():
    x = torch.arange(6.0, device="neuron") + 1
    assert (torch.cumsum(x * 2, 0) + 1).tolist() == [3, 7, 13, 21, 31, 43]


def test_results_have_the_bits_of_one_thread():
    """On two threads, cumulative sums and solvers give other bits."""
    x, matrix = torch.randn(1 << 20), torch.randn(300, 300)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        expected = torch.cumsum(x, 0), torch.linalg.solve(matrix, matrix)
    finally:
        torch.set_num_threads(max(threads, 2))
    try:
        assert torch.equal(torch.cumsum(x.to("neuron"), 0).cpu(), expected[0])
        assert torch.equal(torch.linalg.solve(matrix.to("neuron"), matrix.to("neuron")).cpu(), expected[1])
        assert torch.get_num_threads() == max(threads, 2)
    finally:
        torch.set_num_threads(threads)


def test_in_place_operators_write_through_views():
    x = torch.arange(12.0, device="neuron").view(3, 4)
    x[1:, ::2].cumsum_(0)
    expected = torch.arange(12.0).view(3, 4)
    expected[1:, ::2].cumsum_(0)
    assert torch.equal(x.cpu(), expected)


def test_arguments_that_alias_each_other_do_so_on_the_cpu():
    x = torch.arange(4.0, device="neuron")
    torch.cumsum(x, 0, out=x)
    assert x.tolist() == [0, 1, 3, 6]


def test_out_arguments_are_resized():
    a = torch.tensor([[3.0, 1.0, 2.0]], device="neuron")
    values, indices = torch.empty(0, device="neuron"), torch.empty(0, dtype=torch.long, device="neuron")
    returned = torch.sort(a, out=(values, indices))
    assert returned[0] is values or returned[0].is_set_to(values)
    assert values.tolist() == [[1, 2, 3]]
    assert indices.tolist() == [[1, 2, 0]]
    values.add_(1)
    assert values.tolist() == [[2, 3, 4]]


def test_out_arguments_that_are_views_leave_the_rest_alone():
    big = torch.zeros(4, 2, device="neuron")
    torch.cumsum(torch.ones(2, 2, device="neuron"), 0, out=big[1:3])
    assert big.tolist() == [[0, 0], [1, 1], [2, 2], [0, 0]]


def test_an_operator_may_answer_with_a_conjugate_view():
    """linalg.lu_solve from the right leaves its out argument with the conjugate bit set."""
    matrix = torch.tensor([[2 + 1j, 0.5j], [1 - 1j, 3 + 0j]])
    right = torch.tensor([[1 + 2j, -1j]])
    lu, pivots = torch.linalg.lu_factor(matrix)
    expected = torch.linalg.lu_solve(lu, pivots, right, left=False)
    actual = torch.linalg.lu_solve(lu.to("neuron"), pivots.to("neuron"), right.to("neuron"), left=False)
    assert torch.equal(actual.cpu(), expected)


def test_what_a_fallback_made_outlives_the_call():
    made = [torch.linalg.inv(torch.eye(64, device="neuron") * (i + 1)) for i in range(20)]
    assert [m[0, 0].item() for m in made] == [pytest.approx(1 / (i + 1)) for i in range(20)]


def test_errors_keep_their_type():
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.cholesky(-torch.eye(2, device="neuron"))
    with pytest.raises(IndexError):
        torch.ones(3, device="neuron").cumsum(5)
    with pytest.raises(RuntimeError, match="at least two devices, neuron:0 and cpu!"):
        torch.dist(torch.ones(3, device="neuron"), torch.ones(3))


def test_zero_dim_cpu_tensors_may_be_mixed_in():
    assert torch.ldexp(torch.ones(2, device="neuron"), torch.tensor(3)).tolist() == [8, 8]


@pytest.mark.filterwarnings("ignore:torch.quantize")
def test_layouts_that_we_do_not_have_say_so():
    with pytest.raises(NotImplementedError, match="sparse"):
        torch.eye(2, device="neuron").to_sparse()
    with pytest.raises(NotImplementedError, match="sparse"):
        torch.sparse_coo_tensor([[0]], [1.0], (2,), device="neuron", check_invariants=False)
    with pytest.raises(NotImplementedError, match="quantized"):
        torch.quantize_per_tensor(torch.ones(2, device="neuron"), 0.1, 0, torch.qint8)


def test_device_arguments_go_to_the_cpu_and_results_come_back():
    assert torch.hann_window(4, device="neuron").device.type == "neuron"
    assert torch.logspace(0, 2, 3, device="neuron").tolist() == [1, 10, 100]
    assert torch.tril_indices(2, 2, device="neuron").tolist() == [[0, 1, 1], [0, 0, 1]]


MODULES = [
    (nn.Conv1d(3, 4, 3, stride=2, bias=False), (2, 3, 8)),
    (nn.Conv2d(3, 4, 3, padding=1), (2, 3, 6, 6)),
    (nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1), (2, 3, 5, 5)),
    (nn.LSTM(3, 4, 2), (5, 2, 3)),
    (nn.GRU(3, 4, 2, bidirectional=True), (5, 2, 3)),
    (nn.LSTMCell(3, 4), (2, 3)),
    (nn.GRUCell(3, 4, bias=False), (2, 3)),
    (nn.BatchNorm2d(3), (2, 3, 4, 4)),
    (nn.GroupNorm(1, 4), (2, 4, 3)),
    (nn.MaxPool2d(2), (1, 2, 4, 4)),
    (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (3, 2, 8)),
    (nn.Upsample(scale_factor=2), (1, 2, 3, 3)),
]


@pytest.mark.parametrize(("module", "shape"), MODULES, ids=lambda value: getattr(value, "_get_name", str)())
def test_modules_and_their_gradients_are_those_of_the_cpu(module: nn.Module, shape: tuple[int, ...]):
    source = torch.randn(shape)
    results = []
    for device in ("cpu", "neuron"):
        own = copy.deepcopy(module).to(device)
        x = source.detach().clone().to(device).requires_grad_()
        out = own(x)
        while isinstance(out, tuple):
            out = out[0]
        out.square().sum().backward()
        results.append([t.detach().cpu() for t in (out, x.grad, *(p.grad for p in own.parameters()))])
    for actual, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_warnings_reach_python():
    with pytest.warns(UserWarning, match="resized"):
        torch.cumsum(torch.ones(3, device="neuron"), 0, out=torch.ones(2, device="neuron"))
