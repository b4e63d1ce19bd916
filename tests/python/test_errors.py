"""Wrong arguments raise at the call what they raise on the CPU; memory that is short does too, and loses nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from modes import mode, run_script

# Errors at the call --------------------------------------------------------------------------------------------------


def ones(device: str, *shape: int, **options: Any) -> torch.Tensor:
    return torch.ones(*shape, device=device, **options)


WRONG: dict[str, Callable[[str], Any]] = {
    "add of shapes": lambda d: ones(d, 3) + ones(d, 4),
    "add in place grows": lambda d: ones(d, 3).add_(ones(d, 2, 3)),
    "add float into int": lambda d: ones(d, 3, dtype=torch.int64).add_(ones(d, 3)),
    "sub of bools": lambda d: ones(d, 3, dtype=torch.bool) - ones(d, 3, dtype=torch.bool),
    "neg of bool": lambda d: -ones(d, 3, dtype=torch.bool),
    "alpha for ints": lambda d: torch.add(ones(d, 3, dtype=torch.int64), 1, alpha=0.5),
    "bitwise and of floats": lambda d: ones(d, 3) & ones(d, 3),
    "mm of shapes": lambda d: ones(d, 2, 3) @ ones(d, 2, 3),
    "mm of dtypes": lambda d: ones(d, 2, 3) @ ones(d, 3, 2, dtype=torch.float64),
    "mm of ranks": lambda d: torch.mm(ones(d, 2), ones(d, 2, 2)),
    "bmm of batches": lambda d: torch.bmm(ones(d, 2, 3, 4), ones(d, 3, 4, 5)),
    "addmm of bias": lambda d: F.linear(ones(d, 2, 3), ones(d, 4, 3), ones(d, 5)),
    "sum of a missing dim": lambda d: ones(d, 2, 3).sum(2),
    "sum of a dim twice": lambda d: ones(d, 2, 3).sum((0, 0)),
    "amax of nothing": lambda d: ones(d, 0).amax(),
    "mean of ints": lambda d: ones(d, 3, dtype=torch.int64).mean(),
    "softmax of a missing dim": lambda d: ones(d, 2).softmax(3),
    "softmax of ints": lambda d: ones(d, 2, dtype=torch.int64).softmax(0),
    "cat of shapes": lambda d: torch.cat((ones(d, 2, 3), ones(d, 2, 4))),
    "cat of nothing": lambda d: torch.cat([]),
    "view of size": lambda d: ones(d, 6).view(4),
    "view of a transpose": lambda d: ones(d, 2, 3).t().view(6),
    "reshape of size": lambda d: ones(d, 6).reshape(4),
    "index out of range": lambda d: ones(d, 6)[7],
    "slice write of shapes": lambda d: ones(d, 6).__setitem__(slice(0, 3), ones(d, 2)),
    "where of shapes": lambda d: torch.where(ones(d, 2) > 0, ones(d, 3), ones(d, 3)),
    "layer norm of shapes": lambda d: F.layer_norm(ones(d, 2, 3), (4,)),
    "cross entropy of shapes": lambda d: F.cross_entropy(ones(d, 2, 3), ones(d, 3, dtype=torch.int64)),
    "embedding of floats": lambda d: F.embedding(ones(d, 2), ones(d, 2, 3)),
    "dropout of p": lambda d: F.dropout(ones(d, 2), 1.5),
    "uniform of a range": lambda d: ones(d, 2).uniform_(2, 1),
    "normal of a deviation": lambda d: ones(d, 2).normal_(0, -1),
    "clamp of nothing": lambda d: ones(d, 2).clamp(),
    "item of many": lambda d: ones(d, 2).item(),
    "expand of size": lambda d: ones(d, 2).expand(3),
    "negative size": lambda d: torch.empty(-1, device=d),
    "float of an unknown mode": lambda d: torch.div(ones(d, 2), 2, rounding_mode="up"),
    "integer division by zero": lambda d: ones(d, 2, dtype=torch.int64) // torch.zeros(2, dtype=torch.int64, device=d),
    "integer to a negative power": lambda d: ones(d, 2, dtype=torch.int64).pow(-1),
    "grad of ints": lambda d: ones(d, 2, dtype=torch.int64).requires_grad_(),
    "in-place on a leaf": lambda d: ones(d, 2, requires_grad=True).add_(1),
    "backward of a vector": lambda d: ones(d, 2, requires_grad=True).mul(2).backward(),
    "out of another dtype": lambda d: torch.add(ones(d, 2), 1, out=ones(d, 2, dtype=torch.int64)),
    "mm out of another dtype": lambda d: torch.mm(ones(d, 2, 2), ones(d, 2, 2), out=ones(d, 2, 2, dtype=torch.float64)),
    "attention of shapes": lambda d: F.scaled_dot_product_attention(
        ones(d, 1, 1, 2, 4), ones(d, 1, 1, 3, 5), ones(d, 1, 1, 3, 5)),
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
    with (
        mode(name),
        pytest.raises(
            RuntimeError, match=r"Expected .*same device.*neuron:0.*cpu|Expected .*same device.*cpu.*neuron:0"
        ),
    ):
        MIXED[which](torch.ones(2, 2, device="neuron"), torch.ones(2, 2))


# Memory --------------------------------------------------------------------------------------------------------------


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
