"""What PyTorch's eager mode promises holds on the device in every mode."""

from __future__ import annotations

import copy
import gc
import io
import pickle

import pytest
import torch
import torch.nn.functional as F
import torch_neuron_eager._C as _C
from torch import nn
from torch.utils.checkpoint import checkpoint

from modes import MODES, mode, run_everywhere

every_mode = pytest.mark.parametrize("name", MODES)


def data(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


# The scenarios beside the table of cases -----------------------------------------------------------------------------


def test_a_tensor_may_be_deleted_before_it_is_computed() -> None:
    def program(device: str):
        x = data(32).to(device)
        y = x * 2
        z = y + 1
        w = y.exp()
        del y, w
        gc.collect()
        return z, x

    run_everywhere(program)


@every_mode
def test_an_in_place_operator_returns_its_argument(name: str) -> None:
    with mode(name):
        x = data(4).to("neuron")
        assert x.add_(1) is x
        assert x.zero_() is x
        assert torch.relu_(x) is x
        assert torch.add(x, 1, out=x) is x


def test_a_write_through_a_six_dimensional_slice() -> None:
    def program(device: str):
        x = torch.zeros(2, 3, 2, 3, 2, 3).to(device)
        x[:, 1:, 0, ::2, :, 1] = torch.arange(2 * 2 * 2 * 2.0).view(2, 2, 2, 2).to(device)
        x[1, ..., 2] += 1
        x[:, ::2, :, 1:, 1:, ::2] *= 3
        return x

    run_everywhere(program, exact=True)


def test_negative_axes() -> None:
    def program(device: str):
        x = data(3, 4, 5).to(device)
        return (x.sum(-1), x.mean((-2, 0)), x.softmax(-2), x.amax(-3), x.transpose(-1, -2) + 1, x.unsqueeze(-1) * 2,
                torch.cat((x, x), -1), x.var(-1), x.flip(-1), x.select(-1, -2), torch.stack((x, x), -2))  # fmt: skip

    run_everywhere(program)


def test_a_scalar_tensor_of_the_cpu_may_be_mixed_in() -> None:
    def program(device: str):
        x = data(5).to(device)
        s = torch.tensor(2.5)
        y = x * s
        s.fill_(100)  # after the call: must not be seen
        i = torch.arange(4).to(device)
        return (
            y,
            s - x,
            torch.where(x > 0, x, torch.tensor(-1.0)),
            i + torch.tensor(2),
            i * torch.tensor(0.5),
            x.pow(torch.tensor(2.0)),
        )

    run_everywhere(program)


def test_an_empty_tensor_in_a_chain() -> None:
    def program(device: str):
        x = data(3, 4).to(device)
        empty = x[:0] * 2 + 1
        y = torch.cat((empty.exp(), x + 1))
        return (
            empty,
            y,
            empty.sum(),
            empty.sum(0),
            torch.zeros(0, device=device).prod(),
            empty.add_(1),
            empty @ data(4, 2).to(device),
        )

    run_everywhere(program)


def test_out_arguments_that_are_views() -> None:
    def program(device: str):
        x, base = data(3, 4).to(device), torch.zeros(4, 3, 2).to(device)
        torch.add(x, 1, out=base[..., 1].t())
        torch.mm(x, x.t(), out=base[:3, :, 0])
        torch.sum(x, 0, out=base[:, 2, 1])
        return base

    run_everywhere(program)


def test_out_arguments_that_are_too_small_grow_with_a_warning() -> None:
    def program(device: str):
        x = data(3, 4).to(device)
        empty, small = torch.empty(0, device=device), torch.ones(2, device=device)
        torch.exp(x, out=empty)
        with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
            torch.add(x, x, out=small)
        return empty, small

    run_everywhere(program)


def test_out_arguments_that_overlap_an_input() -> None:
    def program(device: str):
        x = data(8).to(device)
        torch.add(x, 1, out=x)
        with pytest.raises(
            RuntimeError, match="unsupported operation: some elements of the input tensor and the written-to"
        ):
            torch.add(x[:-1], 1, out=x[1:])
        with pytest.raises(RuntimeError, match="unsupported operation: more than one element of the written-to tensor"):
            torch.add(x[:4], 1, out=x[:1].expand(4))
        return x

    run_everywhere(program)


def test_backward_called_from_a_hook() -> None:
    def program(device: str):
        x, w = data(6).to(device).requires_grad_(), data(6, seed=2).to(device).requires_grad_()

        def hook(grad: torch.Tensor) -> torch.Tensor:
            with torch.enable_grad():
                torch.autograd.backward((w * grad.detach()).sum())
            return grad * 2

        y = x.exp()
        y.register_hook(hook)
        (y * y).sum().backward()
        return x.grad, w.grad

    run_everywhere(program)


def test_double_backward() -> None:
    def program(device: str):
        x = data(5).to(device).requires_grad_()
        y = (x.tanh() * x.exp() + x.pow(3)).sum()
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        return first, second

    run_everywhere(program)


def test_checkpoint_with_dropout_repeats_the_mask() -> None:
    def program(device: str):
        def block(x: torch.Tensor) -> torch.Tensor:
            return F.dropout(x * 3, 0.5).tanh()

        grads = []
        for use in (True, False):
            torch.manual_seed(3)
            x = torch.ones(64, device=device, requires_grad=True)
            y = checkpoint(block, x, use_reentrant=False) if use else block(x)
            y.sum().backward()
            grads += [y, x.grad]
        return grads

    y, grad, plain, plain_grad = run_everywhere(program, cpu=False)
    assert torch.equal(y, plain)
    assert torch.equal(grad, plain_grad)
    assert 0 < (y == 0).sum() < 64


def test_copies_between_dtypes_and_from_expanded_sources() -> None:
    dtypes = [
        torch.float32,
        torch.bfloat16,
        torch.float16,
        torch.float64,
        torch.int64,
        torch.int32,
        torch.uint8,
        torch.bool,
    ]

    def program(device: str):
        out = []
        source = (data(3, 4).abs() * 5).to(device)
        for a in dtypes:
            for b in dtypes:
                target = torch.zeros(3, 4, dtype=b).to(device)
                target.copy_(source.to(a))
                out.append(target)
        wide = torch.zeros(5, 3, dtype=torch.bfloat16).to(device)
        wide.copy_(source[:, 0].expand(5, 3))
        wide.t()[1:].copy_(source[1:, 1:2].expand(2, 5))
        return out, wide, source[:1].expand(4, 4).contiguous(), source[0].expand(2, 2, 4).clone()

    run_everywhere(program, exact=True)


def test_data_assignment() -> None:
    def program(device: str):
        x = data(4).to(device).requires_grad_()
        y = x * 2
        before = x._version
        x.data = data(4, seed=2).to(device)
        z = x * 3
        x.data.add_(1)
        assert x._version == before
        y.sum().backward()
        return y, z, x, x.grad

    run_everywhere(program)


def test_set_makes_tensors_share_a_storage() -> None:
    def program(device: str):
        x, y = data(8).to(device), data(4, seed=2).to(device)
        pending = y + 1
        y.set_(x)
        x.mul_(2)
        z = torch.empty(0, device=device).set_(x.untyped_storage(), 2, (2, 2), (3, 1))
        z.add_(10)
        return pending, y, z, x

    run_everywhere(program)


@every_mode
def test_a_write_between_forward_and_backward_is_found_by_its_version(name: str) -> None:
    with mode(name):
        x = data(4).to("neuron").requires_grad_()
        y = (x * x).sum()
        with torch.no_grad():
            x.add_(1)
        with pytest.raises(
            RuntimeError, match="one of the variables needed for gradient computation has been modified by an inplace"
        ):
            y.backward()


# Values that Python sees ---------------------------------------------------------------------------------------------


def test_values_look_the_same_as_on_the_cpu() -> None:
    def program(device: str):
        x = torch.arange(6.0).view(2, 3).to(device) / 4
        text = repr(x).replace(", device='neuron:0'", "")
        assert str(x) == repr(x)
        numbers = (
            x[1, 2].item(),
            x.tolist(),
            float(x[0, 1]),
            int(x[1, 0] * 8),
            bool(x[0, 0]),
            f"{x[1, 1]:.2f}",
            len(x),
            3 in x,
        )
        return (
            text,
            numbers,
            x.cpu().numpy().tolist(),
            [row.sum().item() for row in x],
            torch.arange(3).to(device)[1].__index__(),
        )

    results = {}
    for name in MODES:
        with mode(name):
            results[name] = program("neuron")
    expected = program("cpu")
    assert all(result == expected for result in results.values()), (results, expected)


@every_mode
def test_a_condition_reads_the_value(name: str) -> None:
    with mode(name):
        x = torch.zeros(1, device="neuron")
        taken = []
        for i in range(5):
            x.add_(1)
            if x > 2:
                taken.append(i)
        assert taken == [2, 3, 4]
        with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
            bool(torch.ones(2, device="neuron"))


@every_mode
def test_numpy_refuses_a_device_tensor(name: str) -> None:
    with mode(name), pytest.raises(TypeError, match=r"can't convert neuron:0 device type tensor to numpy"):
        (torch.ones(2, device="neuron") + 1).numpy()


@every_mode
def test_copies_of_tensors_and_modules_hold_what_was_pending(name: str) -> None:
    with mode(name):
        x = data(3, 4).to("neuron") * 2
        expected = data(3, 4) * 2
        file = io.BytesIO()
        torch.save({"x": x, "row": x[1]}, file)
        for device in ("neuron", "cpu"):
            file.seek(0)
            loaded = torch.load(file, map_location=device)
            assert loaded["x"].device.type == device
            assert torch.equal(loaded["x"].cpu(), expected)
            assert loaded["row"].untyped_storage()._cdata == loaded["x"].untyped_storage()._cdata
        deep, pickled = copy.deepcopy(x), pickle.loads(pickle.dumps(x))
        x.zero_()
        assert torch.equal(deep.cpu(), expected)
        assert torch.equal(pickled.cpu(), expected)
        assert pickled.device.type == "neuron"
        model = nn.Linear(3, 2).to("neuron")
        twin = copy.deepcopy(model)
        with torch.no_grad():
            model.weight.zero_()
        assert twin.weight.abs().sum().item() > 0


# The switch ----------------------------------------------------------------------------------------------------------


def test_the_switch_works_as_a_function_and_as_a_context_manager() -> None:
    before = _C.settings()["adaptive"]
    try:
        torch.neuron.adaptive_eager(True)
        assert _C.settings()["adaptive"]
        with torch.neuron.adaptive_eager(False):
            x = torch.ones(3, device="neuron") + 1
            assert not _C.settings()["adaptive"]
            assert _C.pending() == 0
        assert _C.settings()["adaptive"]
        y = x + 1
        assert _C.pending() > 0
        assert y.tolist() == [3.0] * 3
    finally:
        torch.neuron.adaptive_eager(before)
