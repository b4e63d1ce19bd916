"""Training an LSTM and a GRU: torch's modules, and cells of one's own in a Python loop."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import training

VARIANTS = {
    "lstm_module": {"kind": "lstm_module"},
    "lstm_loop": {"kind": "lstm_loop"},
    "gru_module": {"kind": "gru_module"},
    "gru_loop": {"kind": "gru_loop"},
}


class LSTM(nn.Module):
    """A long short-term memory, step by step."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.inputs, self.state = nn.Linear(inputs, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, sequence: Tensor) -> Tensor:
        """Return the last output."""
        h = c = sequence.new_zeros(len(sequence), self.width)
        for x in sequence.unbind(1):
            i, f, g, o = (self.inputs(x) + self.state(h)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


class GRU(nn.Module):
    """A gated recurrent unit, step by step."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.inputs, self.state = nn.Linear(inputs, 3 * width), nn.Linear(width, 3 * width)

    def forward(self, sequence: Tensor) -> Tensor:
        """Return the last output."""
        h = sequence.new_zeros(len(sequence), self.width)
        for x in sequence.unbind(1):
            (xr, xz, xn), (hr, hz, hn) = self.inputs(x).chunk(3, dim=1), self.state(h).chunk(3, dim=1)
            r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
            h = torch.lerp(torch.tanh(xn + r * hn), h, z)
        return h


class Last(nn.Module):
    """A module of torch's of which the last output is wanted."""

    def __init__(self, module: nn.RNNBase) -> None:
        super().__init__()
        self.module = module

    def forward(self, sequence: Tensor) -> Tensor:
        """Return the last output."""
        return self.module(sequence)[0][:, -1]


def make(
    device: str, kind: str, batch: int = 32, steps: int = 50, inputs: int = 32, width: int = 128, classes: int = 10
) -> Callable[[], Tensor]:
    """Return the training step: classify sequences by the last output."""
    torch.manual_seed(0)
    makers: dict[str, Callable[[], nn.Module]] = {
        "lstm_module": lambda: Last(nn.LSTM(inputs, width, batch_first=True)),
        "lstm_loop": lambda: LSTM(inputs, width),
        "gru_module": lambda: Last(nn.GRU(inputs, width, batch_first=True)),
        "gru_loop": lambda: GRU(inputs, width),
    }
    model = nn.Sequential(makers[kind](), nn.Linear(width, classes)).to(device)
    sequence, labels = torch.randn(batch, steps, inputs).to(device), torch.randint(classes, (batch,)).to(device)
    return training(torch.optim.Adam(model.parameters()), lambda: F.cross_entropy(model(sequence), labels))
