"""Recurrent modules and their cells against the CPU's, which are composed of other operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from modes import run_everywhere
from opinfo import check_threads, same_error

KINDS: dict[str, Callable[..., nn.RNNBase]] = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "layers": {"num_layers": 3},
    "both directions": {"num_layers": 2, "bidirectional": True},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False},
}


def tensors_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in tensors_of(item)]


def learn(module: nn.Module, device: str, *inputs: torch.Tensor, state: Any = None) -> list[torch.Tensor]:
    """All results of a module, and the gradients of a weighted sum of them."""
    module = module.to(device)
    leaves = [x.to(device).requires_grad_() for x in inputs]
    states = [s.to(device).requires_grad_() for s in tensors_of(state)] if state is not None else []
    given = tuple(states) if len(states) > 1 else states[0] if states else None
    results = tensors_of(module(*leaves, given) if given is not None else module(*leaves))
    sum((r * torch.linspace(-1, 1, r.numel()).reshape(r.shape).to(device)).sum() for r in results).backward()
    gradients = [t.grad for t in [*leaves, *states, *module.parameters()]]
    return [t.detach().cpu() for t in [*results, *gradients]]


def make(kind: str, form: str, **options: Any) -> nn.RNNBase:
    torch.manual_seed(2)
    return KINDS[kind](4, 5, **FORMS[form], **options)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_modules_give_what_the_cpu_gives_without_a_fallback(kind: str, form: str) -> None:
    torch.neuron.reset_fusion_stats()
    x = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(1))
    actual = learn(make(kind, form), "neuron", x)
    assert torch.neuron.fusion_stats()["fallbacks"] == {}
    torch.testing.assert_close(actual, learn(make(kind, form), "cpu", x))


@pytest.mark.parametrize("kind", KINDS)
def test_every_mode_gives_the_same_bits(kind: str) -> None:
    x = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(1))
    run_everywhere(lambda device: learn(make(kind, "both directions"), device, x))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_other_dtypes(kind: str, dtype: torch.dtype) -> None:
    x = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(1)).to(dtype)
    tolerance = {"rtol": 5e-2, "atol": 5e-2} if dtype == torch.bfloat16 else {}
    actual, expected = (learn(make(kind, "plain", dtype=dtype), device, x) for device in ("neuron", "cpu"))
    torch.testing.assert_close(actual, expected, **tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_given_and_no_batch(kind: str) -> None:
    generator = torch.Generator().manual_seed(1)
    x, state = torch.randn(7, 4, generator=generator), torch.randn(1, 5, generator=generator)
    given = [state, state * 0.5] if kind == "LSTM" else [state]
    actual, expected = (learn(make(kind, "plain"), device, x, state=given) for device in ("neuron", "cpu"))
    torch.testing.assert_close(actual, expected)


def test_projections_of_an_lstm() -> None:
    x = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(1))
    actual, expected = (learn(make("LSTM", "plain", proj_size=3), device, x) for device in ("neuron", "cpu"))
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences(kind: str) -> None:
    def run(device: str) -> list[torch.Tensor]:
        module = make(kind, "both directions").to(device)
        x = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(1)).to(device).requires_grad_()
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 6, 2]), enforce_sorted=False)
        result, state = module(packed)
        padded, lengths = nn.utils.rnn.pad_packed_sequence(result)
        (padded.square().sum() + sum(s.sum() for s in tensors_of(state))).backward()
        tensors = [padded, lengths, *tensors_of(state), x.grad, *(p.grad for p in module.parameters())]
        return [t.detach().cpu() for t in tensors]

    torch.testing.assert_close(run("neuron"), run("cpu"))


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_between_layers_is_on_in_training_only(kind: str) -> None:
    module = make(kind, "layers", dropout=0.5).to("neuron")
    x = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(1)).to("neuron")
    assert not torch.equal(module(x)[0].cpu(), module(x)[0].cpu())
    module.eval()
    torch.testing.assert_close(module(x)[0].cpu(), make(kind, "layers", dropout=0.5).eval()(x.cpu())[0])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells(kind: str, bias: bool) -> None:
    def run(device: str) -> list[torch.Tensor]:
        torch.manual_seed(2)
        cell = getattr(nn, kind)(4, 5, bias=bias).to(device)
        x = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(1)).to(device).requires_grad_()
        state = None
        for step in x:
            state = cell(step, state)
        results = tensors_of(state)
        sum(r.square().sum() for r in results).backward()
        return [t.detach().cpu() for t in [*results, x.grad, *(p.grad for p in cell.parameters())]]

    torch.neuron.reset_fusion_stats()
    actual = run("neuron")
    assert torch.neuron.fusion_stats()["fallbacks"] == {}
    torch.testing.assert_close(actual, run("cpu"))


def test_only_one_of_a_cells_results_has_a_gradient() -> None:
    def run(device: str, which: int) -> list[torch.Tensor]:
        torch.manual_seed(2)
        cell = nn.LSTMCell(4, 5).to(device)
        x = torch.linspace(-1, 1, 12).reshape(3, 4).to(device).requires_grad_()
        cell(x)[which].sum().backward()
        return [x.grad.cpu(), *(p.grad.cpu() for p in cell.parameters())]

    for which in (0, 1):
        torch.testing.assert_close(run("neuron", which), run("cpu", which))


def test_a_cell_is_one_node_and_so_is_its_backward() -> None:
    gates = torch.randn(3, 20).to("neuron")
    state = torch.randn(3, 5).to("neuron")
    torch.neuron.synchronize()
    torch.neuron.reset_fusion_stats()
    hy, cy, workspace = torch.ops.aten._thnn_fused_lstm_cell(gates, gates, state)
    torch.ops.aten._thnn_fused_lstm_cell_backward_impl(hy, cy, state, cy, workspace, False)
    assert torch.neuron.fusion_stats()["operators_recorded"] == 2


def test_gates_of_a_wrong_shape_are_refused() -> None:
    gates, state = torch.randn(3, 20).to("neuron"), torch.randn(3, 5).to("neuron")
    with pytest.raises(RuntimeError, match=r"expected a tensor of shape \[3, 5\], but got \[3, 4\]"):
        torch.ops.aten._thnn_fused_lstm_cell(gates, gates, state[:, :4])
    with pytest.raises(RuntimeError, match="expected all tensors to have the dtype Float, but found Double"):
        torch.ops.aten._thnn_fused_gru_cell(gates[:, :15], gates[:, :15], state.double())


def test_the_steps_of_an_lstm_are_one_node_of_a_layer() -> None:
    module = nn.LSTM(4, 5, num_layers=2).to("neuron")
    counts = []
    for steps in (3, 30):
        x = torch.randn(steps, 2, 4, device="neuron")
        before = torch.neuron.fusion_stats()["operators_recorded"]
        module(x)[0].sum().backward()
        counts.append(torch.neuron.fusion_stats()["operators_recorded"] - before)
    # The first backward makes gradients, the second one adds to them.
    assert counts[1] - counts[0] == len(list(module.parameters()))


@pytest.mark.parametrize("onednn", [True, False])
def test_second_derivatives_of_an_lstm(onednn: bool) -> None:
    def second(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        module, x = nn.LSTM(3, 4), torch.randn(5, 2, 3)
        module, x = module.to(device), x.to(device).requires_grad_()
        (grad,) = torch.autograd.grad(module(x)[0].square().sum(), x, create_graph=True)
        return torch.autograd.grad(grad.square().sum(), x)[0].cpu()

    with torch.backends.mkldnn.flags(enabled=onednn):
        torch.testing.assert_close(second("neuron"), second("cpu"))


@pytest.mark.parametrize("wrong", ["input", "state", "dims"])
def test_an_lstm_of_wrong_shapes_raises_what_the_cpu_raises(wrong: str) -> None:
    def program(device: str) -> None:
        module = nn.LSTM(3, 4).to(device)
        x = torch.randn(*((5, 2, 7) if wrong == "input" else (5, 2, 3, 1) if wrong == "dims" else (5, 2, 3)))
        states = torch.zeros(2, 1, 2, 9 if wrong == "state" else 4).to(device)
        module(x.to(device), (states[0], states[1]))

    same_error(program)


def test_threads_do_not_change_bits() -> None:
    check_threads("""
import torch.nn as nn
for kind in (nn.LSTM, nn.GRU):
    torch.manual_seed(0)
    module, x = kind(32, 64).to("neuron"), randn(5, 40, 32).requires_grad_()
    y, _ = module(x)
    y.square().sum().backward()
    digest(y, x.grad, *(p.grad for p in module.parameters()))
""")
