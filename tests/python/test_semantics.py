"""What PyTorch's eager mode promises holds on the device in every mode, and errors come where the CPU raises them."""

from __future__ import annotations

import copy
import gc
import io
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from modes import MODES, bits, mode, run_everywhere
from torch import nn
from torch.utils.checkpoint import checkpoint

import torch_neuron_eager._C as _C

every_mode = pytest.mark.parametrize("name", MODES)


def data(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def run_script(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("NEURON_")} | environment
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], env=env, capture_output=True, text=True, timeout=120)


# The scenarios beside the table of cases ------------------------------------------------------------------------------


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
        return y, s - x, torch.where(x > 0, x, torch.tensor(-1.0)), i + torch.tensor(2), i * torch.tensor(0.5), x.pow(torch.tensor(2.0))

    run_everywhere(program)


def test_an_empty_tensor_in_a_chain() -> None:
    def program(device: str):
        x = data(3, 4).to(device)
        empty = x[:0] * 2 + 1
        y = torch.cat((empty.exp(), x + 1))
        return empty, y, empty.sum(), empty.sum(0), torch.zeros(0, device=device).prod(), empty.add_(1), empty @ data(4, 2).to(device)

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
        y = data(4, 4).to(device)
        torch.mul(y, y.t(), out=y) if device == "never" else None
        with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input tensor and the written-to"):
            torch.add(x[:-1], 1, out=x[1:])
        with pytest.raises(RuntimeError, match="unsupported operation: more than one element of the written-to tensor"):
            torch.add(x[:4], 1, out=x[:1].expand(4))
        return x, y

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
    dtypes = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool]

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
        with pytest.raises(RuntimeError, match="one of the variables needed for gradient computation has been modified by an inplace"):
            y.backward()


# Values that Python sees ------------------------------------------------------------------------------------------------


def test_values_look_the_same_as_on_the_cpu() -> None:
    def program(device: str):
        x = torch.arange(6.0).view(2, 3).to(device) / 4
        text = repr(x).replace(", device='neuron:0'", "")
        assert str(x) == repr(x)
        numbers = (x[1, 2].item(), x.tolist(), float(x[0, 1]), int(x[1, 0] * 8), bool(x[0, 0]), f"{x[1, 1]:.2f}", len(x), 3 in x)
        return text, numbers, x.cpu().numpy().tolist(), [row.sum().item() for row in x], torch.arange(3).to(device)[1].__index__()

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


# Errors at the call -----------------------------------------------------------------------------------------------------

WRONG: dict[str, Callable[[str], Any]] = {
    "add of shapes": lambda d: torch.ones(3, device=d) + torch.ones(4, device=d),
    "add in place grows": lambda d: torch.ones(3, device=d).add_(torch.ones(2, 3, device=d)),
    "add float into int": lambda d: torch.ones(3, dtype=torch.int64, device=d).add_(torch.ones(3, device=d)),
    "sub of bools": lambda d: torch.ones(3, dtype=torch.bool, device=d) - torch.ones(3, dtype=torch.bool, device=d),
    "neg of bool": lambda d: -torch.ones(3, dtype=torch.bool, device=d),
    "alpha for ints": lambda d: torch.add(torch.ones(3, dtype=torch.int64, device=d), 1, alpha=0.5),
    "bitwise and of floats": lambda d: torch.ones(3, device=d) & torch.ones(3, device=d),
    "mm of shapes": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    "mm of dtypes": lambda d: torch.ones(2, 3, device=d) @ torch.ones(3, 2, dtype=torch.float64, device=d),
    "mm of ranks": lambda d: torch.mm(torch.ones(2, device=d), torch.ones(2, 2, device=d)),
    "bmm of batches": lambda d: torch.bmm(torch.ones(2, 3, 4, device=d), torch.ones(3, 4, 5, device=d)),
    "addmm of bias": lambda d: F.linear(torch.ones(2, 3, device=d), torch.ones(4, 3, device=d), torch.ones(5, device=d)),
    "sum of a missing dim": lambda d: torch.ones(2, 3, device=d).sum(2),
    "sum of a dim twice": lambda d: torch.ones(2, 3, device=d).sum((0, 0)),
    "amax of nothing": lambda d: torch.ones(0, device=d).amax(),
    "mean of ints": lambda d: torch.ones(3, dtype=torch.int64, device=d).mean(),
    "softmax of a missing dim": lambda d: torch.ones(2, device=d).softmax(3),
    "softmax of ints": lambda d: torch.ones(2, dtype=torch.int64, device=d).softmax(0),
    "cat of shapes": lambda d: torch.cat((torch.ones(2, 3, device=d), torch.ones(2, 4, device=d))),
    "cat of nothing": lambda d: torch.cat([]),
    "view of size": lambda d: torch.ones(6, device=d).view(4),
    "view of a transpose": lambda d: torch.ones(2, 3, device=d).t().view(6),
    "reshape of size": lambda d: torch.ones(6, device=d).reshape(4),
    "index out of range": lambda d: torch.ones(6, device=d)[7],
    "slice write of shapes": lambda d: torch.ones(6, device=d).__setitem__(slice(0, 3), torch.ones(2, device=d)),
    "where of shapes": lambda d: torch.where(torch.ones(2, device=d) > 0, torch.ones(3, device=d), torch.ones(3, device=d)),
    "layer norm of shapes": lambda d: F.layer_norm(torch.ones(2, 3, device=d), (4,)),
    "cross entropy of shapes": lambda d: F.cross_entropy(torch.ones(2, 3, device=d), torch.ones(3, dtype=torch.int64, device=d)),
    "embedding of floats": lambda d: F.embedding(torch.ones(2, device=d), torch.ones(2, 3, device=d)),
    "dropout of p": lambda d: F.dropout(torch.ones(2, device=d), 1.5),
    "uniform of a range": lambda d: torch.ones(2, device=d).uniform_(2, 1),
    "normal of a deviation": lambda d: torch.ones(2, device=d).normal_(0, -1),
    "clamp of nothing": lambda d: torch.ones(2, device=d).clamp(),
    "item of many": lambda d: torch.ones(2, device=d).item(),
    "expand of size": lambda d: torch.ones(2, device=d).expand(3),
    "negative size": lambda d: torch.empty(-1, device=d),
    "float of an unknown mode": lambda d: torch.div(torch.ones(2, device=d), 2, rounding_mode="up"),
    "integer division by zero": lambda d: torch.ones(2, dtype=torch.int64, device=d) // torch.zeros(2, dtype=torch.int64, device=d),
    "integer to a negative power": lambda d: torch.ones(2, dtype=torch.int64, device=d).pow(-1),
    "overflow of a scalar": lambda d: torch.ones(2, dtype=torch.uint8, device=d).fill_(float("nan")) if False else torch.full((2,), 1, device=d).view(3),
    "grad of ints": lambda d: torch.ones(2, dtype=torch.int64, device=d).requires_grad_(),
    "in-place on a leaf": lambda d: torch.ones(2, device=d, requires_grad=True).add_(1),
    "backward of a vector": lambda d: torch.ones(2, device=d, requires_grad=True).mul(2).backward(),
    "out of another dtype": lambda d: torch.add(torch.ones(2, device=d), 1, out=torch.empty(2, dtype=torch.int64, device=d)),
    "mm out of another dtype": lambda d: torch.mm(torch.ones(2, 2, device=d), torch.ones(2, 2, device=d), out=torch.empty(2, 2, dtype=torch.float64, device=d)),
    "attention of shapes": lambda d: F.scaled_dot_product_attention(torch.ones(1, 1, 2, 4, device=d), torch.ones(1, 1, 3, 5, device=d), torch.ones(1, 1, 3, 5, device=d)),
}  # fmt: skip


def refusal(call: Callable[[str], Any], device: str) -> tuple[type, str]:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is the result
        call(device)
    return caught.type, re.sub(r"neuron:0|neuron|cpu|CPU", "DEVICE", str(caught.value).splitlines()[0])


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["unfused", "adaptive"])
def test_wrong_arguments_raise_at_the_call_what_the_cpu_raises(wrong: str, name: str) -> None:
    with mode(name):
        assert refusal(WRONG[wrong], "neuron") == refusal(WRONG[wrong], "cpu")
        assert (torch.ones(2, device="neuron") + 1).tolist() == [2, 2]


MIXED: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "add": lambda x, y: x + y,
    "reversed": lambda x, y: y + x,
    "in place": lambda x, y: x.add_(y),
    "where": lambda x, y: torch.where(x > 0, x, y),
    "mm": lambda x, y: x @ y,
    "linear": lambda x, y: F.linear(x, y),
    "cat": lambda x, y: torch.cat((x, y)),
    "layer norm": lambda x, y: F.layer_norm(x, (2,), y[0]),
    "embedding": lambda x, y: F.embedding(x.long(), y),
    "cross entropy": lambda x, y: F.cross_entropy(x, y),
    "out": lambda x, y: torch.add(x, x, out=y),
}


@pytest.mark.parametrize("which", MIXED)
@pytest.mark.parametrize("name", ["unfused", "adaptive"])
def test_mixed_devices_raise_the_message_of_pytorch(which: str, name: str) -> None:
    with mode(name), pytest.raises(RuntimeError, match=r"Expected .*same device.*neuron:0.*cpu|Expected .*same device.*cpu.*neuron:0"):
        MIXED[which](torch.ones(2, 2, device="neuron"), torch.ones(2, 2))


# Memory -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adaptive", ["0", "1"])
def test_memory_that_is_short_is_an_error_at_the_line_that_asked_and_loses_nothing(adaptive: str) -> None:
    result = run_script(
        """
        import torch
        torch.neuron.set_per_process_memory_fraction(1.0)
        total = torch.neuron.mem_get_info()[1]
        torch.neuron.set_per_process_memory_fraction(64 * 2**20 / total)
        kept = [torch.full((1 << 20,), float(i), device="neuron") * 2 for i in range(4)]
        line = None
        try:
            big = torch.ones(1 << 23, device="neuron")     # 32 MiB
            more = big + 1
            line = "more"
            last = more + big
            line = "last"
            raise SystemExit("nothing was raised")
        except torch.OutOfMemoryError as error:
            text = str(error)
        assert line == "more" or line is None, line
        assert [x[-1].item() for x in kept] == [0.0, 2.0, 4.0, 6.0]
        big = more = last = None
        for _ in range(20):
            again = torch.ones(1 << 22, device="neuron") + 1
        assert again.sum().item() == 2.0 * (1 << 22)
        print(text)
        """,
        NEURON_ADAPTIVE_EAGER=adaptive,
    )
    assert result.returncode == 0, result.stderr
    assert "MiB" in result.stdout or "GiB" in result.stdout or "bytes" in result.stdout, result.stdout


# Environment ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NEURON_ADAPTIVE_EAGER", "yes"),
        ("NEURON_LAUNCH_BLOCKING", "2"),
        ("NEURON_EAGER_THREADS", "many"),
        ("NEURON_EAGER_THREADS", "0"),
        ("NEURON_FUSION_REPORT", "report.pdf"),
    ],
)
def test_an_unknown_value_of_a_variable_is_an_error_at_first_use(variable: str, value: str) -> None:
    result = run_script(
        """
        import torch
        assert torch.neuron.is_available()
        print("imported")
        try:
            torch.ones(2, device="neuron")
        except (RuntimeError, ValueError) as error:
            print(str(error).splitlines()[0])
        """,
        **{variable: value},
    )
    assert result.returncode == 0, result.stderr
    imported, message = result.stdout.splitlines()[:2]
    assert imported == "imported"
    assert variable in message
    assert value in message


def test_launch_blocking_raises_on_the_operators_own_line() -> None:
    result = run_script(
        """
        import torch
        import torch.nn.functional as F
        ids = torch.tensor([1, 2]).to("neuron") + 8
        table = torch.ones(4, 2).to("neuron")
        try:
            rows = F.embedding(ids, table)
        except IndexError:
            print("here")
        """,
        NEURON_LAUNCH_BLOCKING="1",
        NEURON_ADAPTIVE_EAGER="1",
    )
    assert result.stdout == "here\n", result.stderr


# Report -----------------------------------------------------------------------------------------------------------------


def test_the_report_names_the_lines_that_forced_flushes(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train_loop.py"
    script.write_text(
        textwrap.dedent("""
        import torch
        torch.neuron.adaptive_eager(True)
        x = torch.ones(8, device="neuron")
        for i in range(5):
            x = x * 2 + 1
            x.sum().item()
        print(torch.neuron.fusion_report())
        """)
    )
    env = {key: value for key, value in os.environ.items() if not key.startswith("NEURON_")}
    result = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert f"{script.name}:7" in result.stdout, result.stdout


def test_an_error_that_depends_on_data_names_the_line_of_its_operator(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "lookup.py"
    script.write_text(
        textwrap.dedent("""
        import torch
        import torch.nn.functional as F
        torch.neuron.adaptive_eager(True)
        ids = torch.tensor([1, 2]).to("neuron") + 8
        table = torch.ones(4, 2).to("neuron")
        rows = F.embedding(ids, table)
        after = rows * 2
        try:
            print(after.tolist())
        except IndexError as error:
            print(error)
        """)
    )
    env = {key: value for key, value in os.environ.items() if not key.startswith("NEURON_")}
    result = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "index out of range" in result.stdout
    assert f"{script.name}:7" in result.stdout, result.stdout


def test_the_report_at_exit(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "report.json"
    result = run_script(
        "import torch; x = torch.ones(3, device='neuron') * 2 + 1; print(x.sum().item())",
        NEURON_FUSION_REPORT=str(path),
        NEURON_ADAPTIVE_EAGER="1",
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(path.read_text())
    assert report["operators_recorded"] >= 3
    assert report["launches"] >= 1


# Processes and threads --------------------------------------------------------------------------------------------------


def test_a_forked_child_is_told_what_to_do_and_the_parent_goes_on() -> None:
    result = run_script(
        """
        import os, torch
        x = torch.ones(3, device="neuron") + 1
        x.sum().item()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                torch.ones(3, device="neuron")
                text = "no error"
            except RuntimeError as error:
                text = str(error)
            os.write(write, text.encode())
            os._exit(0)
        os.close(write)
        print(os.fdopen(read).read().splitlines()[0])
        assert os.waitpid(child, 0)[1] == 0
        print((x + 1).tolist())
        """,
        NEURON_ADAPTIVE_EAGER="1",
    )
    assert result.returncode == 0, result.stderr
    message, values = result.stdout.splitlines()
    assert "fork" in message
    assert "spawn" in message
    assert values == "[3.0, 3.0, 3.0]"


def test_many_threads_record_at_once() -> None:
    start = data(64)
    errors: list[str] = []

    def work(number: int, device: str) -> torch.Tensor:
        x = start.to(device) + number
        for i in range(50):
            x = (x * 0.5 + i).relu()
            if i % 10 == number:
                x.sum().item()
        return x.cpu()

    def thread(number: int) -> None:
        value = work(number, "neuron")
        if not torch.equal(bits(value), bits(work(number, "cpu"))):
            errors.append(f"thread {number}: {value}")

    with mode("adaptive"):
        threads = [threading.Thread(target=thread, args=(number,)) for number in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert errors == []


def test_a_tensor_made_by_one_thread_is_read_by_another() -> None:
    with mode("adaptive"):
        made: list[torch.Tensor] = []
        maker = threading.Thread(target=lambda: made.append(torch.full((8,), 3.0, device="neuron") * 2))
        maker.start()
        maker.join()
        assert made[0].tolist() == [6.0] * 8


def test_an_interrupt_ends_a_wait() -> None:
    result = run_script(
        """
        import signal, time, torch
        x = torch.ones(2000, 2000, device="neuron", dtype=torch.float64)
        for _ in range(40):
            x = x @ x * 1e-4
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        def interrupt(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        start = time.monotonic()
        try:
            x.sum().item()
            print("finished early")
        except KeyboardInterrupt:
            print("interrupted" if time.monotonic() - start < 2 else "late")
        import os; os._exit(0)
        """,
        NEURON_ADAPTIVE_EAGER="1",
    )
    assert "interrupted" in result.stdout, (result.stdout, result.stderr)


# The switch -------------------------------------------------------------------------------------------------------------


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
