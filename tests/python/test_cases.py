"""Programs that broke other engines. A number in a name is the case's number in the project's list of cases."""

from __future__ import annotations

import ctypes
import threading
import time

import pytest
import torch
import torch.nn.functional as F
import torch_neuron_eager._C as _C
from torch import nn

from modes import MODES, mode, run_everywhere

FLOATS = [torch.float32, torch.bfloat16]


def data(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_01_an_in_place_operator_does_not_change_an_earlier_result(dtype: torch.dtype) -> None:
    def program(device: str):
        x = data(64, dtype=dtype).abs().to(device) + 1
        y = torch.log(x)
        x.log_()
        return y, x

    run_everywhere(program)


@pytest.mark.parametrize("dtype", FLOATS)
def test_02_in_place_updates_that_read_other_positions(dtype: torch.dtype) -> None:
    def program(device: str):
        x = data(8, 5, dtype=dtype).to(device)
        rows = torch.tensor([3, 1, 6], device=device)
        x.index_put_((rows,), 2 * x[rows])
        first = x.clone()
        x.add_(x.flip(0))
        second = x.clone()
        x.copy_(x.flip(0))
        third = x.clone()
        x[1:] = x[:-1].clone()
        return first, second, third, x

    run_everywhere(program, exact=dtype == torch.float32)


def test_03_a_flipped_self_copy_beside_a_reduction() -> None:
    def program(device: str):
        x, y = data(6, 9).to(device), data(6, 9, seed=2).to(device)
        x.copy_(x.flip(1))
        z = y.sum(1, keepdim=True) + y
        return x + z, x

    run_everywhere(program)


def test_05_a_gather_update_is_applied_once() -> None:
    def program(device: str):
        y = data(10).to(device)
        i = (torch.arange(4, device=device) * 2 + 1) % 10
        y[i] += y[i]
        return y

    run_everywhere(program, exact=True)


def test_06_in_place_on_a_permuted_view_keeps_the_base_layout() -> None:
    strides = []

    def program(device: str):
        x, a = data(4, 6).to(device), data(3, 4, seed=2).to(device)
        i = torch.tensor([5, 0, 2], device=device)
        view = x.permute(1, 0)
        view.index_add_(0, i, a)
        strides.append((x.stride(), view.stride()))
        return x, view

    run_everywhere(program, exact=True)
    assert set(strides) == {((6, 1), (1, 6))}


@pytest.mark.parametrize("dtype", FLOATS)
def test_08_aliasing_inputs_are_not_reordered(dtype: torch.dtype) -> None:
    def program(device: str):
        base, x = data(32, dtype=dtype).to(device), data(32, dtype=dtype, seed=3).to(device)
        y, z = base.view(4, 8), base[:]
        w = y.exp_().add(x.view(4, 8)) + z.exp().view(4, 8)
        return w, base

    run_everywhere(program)


@pytest.mark.parametrize("first", ["r", "x"])
def test_10_a_reader_sees_the_value_before_a_write_through_a_view(first: str) -> None:
    def program(device: str):
        x = torch.arange(5.0).to(device)
        r = x + 10
        x[:1] = 9
        return (r.tolist(), x.tolist()) if first == "r" else (x.tolist(), r.tolist())

    run_everywhere(program, exact=True)


def test_11_a_clone_stands_alone_and_a_view_does_not() -> None:
    def program(device: str):
        a = torch.arange(6).to(device)
        b, c = a[3].clone(), a[3:4]
        a[3] = 300
        return b, c, a

    run_everywhere(program, exact=True)


def test_12_copies_between_slices() -> None:
    def program(device: str):
        a = torch.arange(12.0).view(4, 3).to(device)
        a[0] = a[1]
        return a

    run_everywhere(program, exact=True)

    def overlapping(device: str) -> str:
        a = torch.arange(12.0).view(4, 3).to(device)
        with pytest.raises(RuntimeError) as error:
            a[1:] = a[:-1]
        return str(error.value).splitlines()[0]

    assert overlapping("neuron") == overlapping("cpu")


@pytest.mark.parametrize("dtype", FLOATS)
def test_14_operand_order_is_kept(dtype: torch.dtype) -> None:
    def program(device: str):
        c, d = data(50, dtype=dtype).abs().to(device) + 0.5, data(50, dtype=dtype, seed=4).abs().to(device) + 0.5
        m = c > d
        return c - d, d - c, c / d, d / c, c.pow(d), d.pow(c), torch.where(m, c, d), torch.where(m, d, c)

    run_everywhere(program)


def test_15_differently_broadcast_inputs_keep_their_strides() -> None:
    def program(device: str):
        x, y = data(5).to(device), data(7, seed=2).to(device)
        return (x * x).view(5, 1).expand(5, 7) + (y * y).view(1, 7).expand(5, 7)

    run_everywhere(program, exact=True)


def test_17_a_reduction_follows_its_length() -> None:
    def program(device: str):
        x = data(8).to(device)
        return [x[:n].sum() for n in range(1, 5)]

    run_everywhere(program)


def test_19_optional_arguments_are_part_of_the_call() -> None:
    def attend(x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        scores = x @ x.transpose(-1, -2)
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        return scores.softmax(-1)

    def program(device: str):
        x = data(4, 6).to(device)
        mask = torch.ones(4, 4, dtype=torch.bool, device=device).triu(1)
        return [attend(x, mask if i % 2 else None) for i in range(4)]

    run_everywhere(program)


def test_21_pieces_of_a_split_alias_the_whole() -> None:
    def program(device: str):
        x = torch.arange(16.0).view(4, 4).to(device)
        b, c = x.split(2)
        d, e = x.chunk(2, 1)
        rows, diagonal = x.unbind(0), x.diagonal()
        x[0] = -1
        diagonal.mul_(2)
        return b, c, d, e, *rows, diagonal, x

    run_everywhere(program, exact=True)


def test_23_random_numbers_depend_on_the_seed_alone() -> None:
    states = []

    def program(device: str):
        a = torch.empty(1000, device=device).normal_()
        b = F.dropout(torch.ones(1000, device=device), 0.25)
        c = torch.randperm(100, device=device)
        d = torch.rand(100, device=device)
        if device == "neuron":
            states.append(torch.neuron.get_rng_state())
        return a, b, c, d

    a, b, c, d = run_everywhere(program, cpu=False)
    assert all(torch.equal(state, states[0]) for state in states)
    assert abs(a.mean()) < 0.15
    assert abs(a.std() - 1) < 0.1
    assert set(b.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert 0.15 < (b == 0).float().mean() < 0.35
    assert sorted(c.tolist()) == list(range(100))
    assert d.min() >= 0
    assert d.max() < 1
    assert d.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_24_low_precision_is_rounded_at_every_operator(dtype: torch.dtype) -> None:
    def rotate_half(x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    def program(device: str):
        q, angle = data(6, 16, dtype=dtype).to(device), data(6, 16, seed=2).to(device)
        cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
        rotary = q * cos + rotate_half(q) * sin
        masked = torch.where(q > 0, q, torch.full_like(q, -65504.0)).float() / 3
        return rotary, masked.to(dtype)

    run_everywhere(program)


def test_26_a_changing_learning_rate_makes_no_kernels() -> None:
    def train(steps: int, counts: list[int] | None = None) -> torch.Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to("neuron")
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
        x, y = data(32, 8).to("neuron"), data(32, 4, seed=2).to("neuron")
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()
            loss.item()
            if counts is not None:
                counts.append(torch.neuron.fusion_stats()["kernels_made"])
        return torch.cat([p.detach().cpu().reshape(-1) for p in model.parameters()])

    kernels: list[int] = []
    with mode("adaptive"):
        adaptive = train(200, kernels)
    assert kernels[-1] == kernels[2], f"kernels made by step: {kernels[:10]}… {kernels[-1]}"
    with mode("unfused"):
        assert torch.equal(train(200), adaptive)


def test_31_the_same_trace_at_offsets_that_overlap() -> None:
    def program(device: str):
        out = []
        for i, j in ((4, 0), (2, 0), (0, 0), (4, 0)):
            a = torch.arange(8.0).to(device)
            b = a[j : j + 4] * 2
            a[i : i + 4].add_(1)
            out += [b, a]
        return out

    run_everywhere(program, exact=True)


@pytest.mark.parametrize("name", MODES)
def test_32_an_address_waits_for_recorded_reads(name: str) -> None:
    with mode(name):
        x, c = torch.arange(8.0).to("neuron"), torch.ones(8).to("neuron")
        x.add_(0)
        y = x + c
        p = x.data_ptr()
        ctypes.memset(p, 0, 8 * 4)
        assert y.tolist() == [i + 1.0 for i in range(8)]
        assert x.tolist() == [0.0] * 8


def test_33_an_address_after_a_window_flush_waits_for_the_worker() -> None:
    before = _C.settings()
    _C.change_settings({"adaptive": True, "window": 16, "period": 0})
    try:
        x = torch.zeros(1 << 18).to("neuron")
        for _ in range(64):
            x = x + 1
        values = (ctypes.c_float * x.numel()).from_address(x.data_ptr())
        assert values[0] == values[x.numel() - 1] == 64.0
    finally:
        _C.change_settings(before)


def test_34_gradient_accumulation_records_the_same_program_pending_or_flushed() -> None:
    def accumulate(flush: bool) -> tuple[torch.Tensor, int]:
        w = data(16, 16).to("neuron").requires_grad_()
        x = data(4, 16, seed=2).to("neuron")
        torch.neuron.synchronize()
        start = torch.neuron.fusion_stats()["operators_recorded"]
        for _ in range(2):
            (x @ w).tanh().sum().backward()
            if flush:
                torch.neuron.synchronize()
        torch.neuron.synchronize()
        return w.grad.cpu(), torch.neuron.fusion_stats()["operators_recorded"] - start

    with mode("adaptive"):
        (pending, count), (flushed, flushed_count) = accumulate(False), accumulate(True)
    assert count == flushed_count
    assert torch.equal(pending, flushed)


def test_35_addresses_and_flushes_from_two_threads() -> None:
    stop = time.monotonic() + 10
    rounds = [0, 0]

    def ask() -> None:
        while time.monotonic() < stop:
            x = torch.ones(64, device="neuron") + 1
            assert x.data_ptr() != 0
            rounds[0] += 1

    def drop() -> None:
        while time.monotonic() < stop:
            kept = [torch.ones(64, device="neuron") * i for i in range(20)]
            del kept
            torch.neuron.synchronize()
            rounds[1] += 1

    with mode("adaptive"):
        threads = [threading.Thread(target=f, daemon=True) for f in (ask, drop)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads), "the two threads wait for each other"
    assert min(rounds) > 10


@pytest.mark.parametrize("source", ["device", "host"])
@pytest.mark.parametrize("name", ["unfused", "adaptive"])
def test_36_an_index_error_leaves_the_weights_as_they_were(source: str, name: str) -> None:
    with mode(name):
        torch.manual_seed(0)
        emb = nn.Embedding(10, 4).to("neuron")
        optimizer = torch.optim.SGD(emb.parameters(), lr=0.1)
        failed = 0
        for step in range(6):
            before = emb.weight.detach().cpu()
            host = torch.tensor([1, 2, 50 if step == 2 else 3])
            ids = host.to("neuron") if source == "host" else (host.to("neuron") + 1 - 1)
            try:
                optimizer.zero_grad()
                loss = emb(ids).sum()
                if source == "host":
                    assert step != 2, "the call itself raises for ids from the host"
                loss.backward()
                optimizer.step()
                loss.item()
            except IndexError as error:
                assert step == 2
                text = str(error)
                assert "index out of range" in text
                failed += 1
                assert torch.equal(emb.weight.detach().cpu(), before)
                continue
            assert not torch.equal(emb.weight.detach().cpu(), before)
        assert failed == 1
        torch.neuron.synchronize()


def test_37_nan_infinity_and_signed_zero() -> None:
    def program(device: str):
        z = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0]).to(device)
        o = torch.zeros(6).to(device)
        return (
            z / o, z - z, z * o, torch.nan_to_num(z / o, nan=3.0), torch.maximum(z, o), torch.minimum(o, z), z.amax(),
            z.amin(), torch.fmax(z, o), z.relu(), -z, z.sign(), z.clamp(-1, 1), z + float("nan"), z == z, z.exp(),
            z.abs().sqrt(), 1 / z,
        )  # fmt: skip

    run_everywhere(program, exact=True)


@pytest.mark.parametrize("name", ["unfused", "adaptive"])
def test_40_denormals_are_flushed_where_the_program_asked_for_it(name: str) -> None:
    """Also in the backward pass, whose thread was born before."""

    def program(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        weight.grad = None
        (x * weight).sum().backward()
        assert weight.grad is not None
        return x + x, x.view(1, 4) @ x.new_ones(4, 1), weight.grad

    with mode(name):
        x = torch.full((4,), 1e-40).to("neuron")
        weight = torch.ones(4, device="neuron").requires_grad_()
        before = program(x, weight)
        try:
            assert torch.set_flush_denormal(True)
            during = program(x, weight)
        finally:
            torch.set_flush_denormal(False)
        after = program(x, weight)
        for tensors, flushed in ((before, False), (during, True), (after, False)):
            assert [bool((tensor.detach().cpu() == 0).all()) for tensor in tensors] == [flushed] * 3


UNARY = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "erf",
    "erfc",
    "sigmoid",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "neg",
    "abs",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "round",
    "square",
    "relu",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "atan2",
    "hypot",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "fmod",
    "remainder",
]
NN = {"gelu": F.gelu, "silu": F.silu, "softplus": F.softplus, "elu": F.elu, "leaky_relu": F.leaky_relu}


@pytest.mark.parametrize("function", UNARY + BINARY + list(NN))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_41_an_element_has_the_same_bits_wherever_it_stands(function: str, dtype: torch.dtype) -> None:
    values = (data(80, seed=5) * 3).to(dtype)
    values[::7] = 0.5
    other = (data(80, seed=6).abs() + 0.25).to(dtype)

    def apply(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if function in NN:
            return NN[function](x)
        return getattr(torch, function)(x, y) if function in BINARY else getattr(torch, function)(x)

    x, y = values.to("neuron"), other.to("neuron")
    with mode("adaptive"):
        whole = apply(x, y).cpu()
        for size in range(1, 71):
            offsets = {0, 1, 80 - size} | ({3, 5, 7} if size <= 70 else set())
            parts = {o: apply(x[o : o + size], y[o : o + size]) for o in offsets if o + size <= 80}
            for o, part in parts.items():
                assert torch.equal(part.cpu().nan_to_num(7.5), whole[o : o + size].nan_to_num(7.5)), (size, o)
        column = apply(x.view(8, 10).t(), y.view(8, 10).t()).cpu()
        assert torch.equal(column.t().reshape(-1).nan_to_num(7.5), whole.nan_to_num(7.5))
