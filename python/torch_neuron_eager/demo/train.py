"""Train a small byte-level GPT on the Python standard library's own sources: plain PyTorch, for any device.

``python train.py DEVICE`` trains on that device. Nothing in here knows of a device but its name.
"""

from __future__ import annotations

import argparse
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, CONTEXT, BATCH, VOCABULARY = 4, 128, 4, 128, 8, 256


class Block(nn.Module):
    """One pre-norm transformer block."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Attend, then transform each position by itself."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.project(attended.transpose(1, 2).reshape(batch, length, width)))
        return x + self.dropout(self.contract(F.gelu(self.expand(self.norm2(x)))))


class GPT(nn.Module):
    """A byte-level language model."""

    def __init__(
        self,
        dropout: float,
        width: int = WIDTH,
        heads: int = HEADS,
        layers: int = LAYERS,
        context: int = CONTEXT,
    ) -> None:
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Parameter(torch.randn(context, width) * 0.02)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits of the byte that follows each position."""
        x = self.dropout(self.tokens(ids) + self.positions[: ids.shape[1]])
        return self.head(self.norm(self.blocks(x)))


def load_text() -> Tensor:
    """Return the standard library's top-level modules, one after the other, as bytes."""
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return torch.frombuffer(bytearray(b"\n".join(path.read_bytes() for path in sources)), dtype=torch.uint8)


def sample_batch(text: Tensor, generator: torch.Generator, batch: int = BATCH, context: int = CONTEXT) -> Tensor:
    """Return random stretches of the text, one byte longer than the context."""
    starts = torch.randint(len(text) - context, (batch, 1), generator=generator)
    return text[starts + torch.arange(context + 1)].long()


def make_model(device: str, dropout: float = 0.1, **sizes: int) -> GPT:
    """Return a model whose initial weights do not depend on the device; `sizes` are arguments of ``GPT``."""
    torch.manual_seed(1)
    return GPT(dropout, **sizes).to(device)


def next_byte_loss(model: GPT, stretches: Tensor) -> Tensor:
    """Return the mean loss of each byte that follows another in the stretches of text."""
    logits = model(stretches[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), stretches[:, 1:].flatten())


def train(
    model: GPT, text: Tensor, device: str, steps: int = 200, foreach: bool | None = None, batch: int = BATCH
) -> Iterator[float]:
    """Train the model, yielding each step's loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, foreach=foreach)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    generator = torch.Generator().manual_seed(2)
    for _ in range(steps):
        loss = next_byte_loss(model, sample_batch(text, generator, batch, model.context).to(device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=foreach)
        optimizer.step()
        scheduler.step()
        yield loss.item()


@torch.no_grad()
def generate(model: GPT, text: Tensor, device: str, length: int = 240) -> str:
    """Let the model continue the beginning of the text."""
    model.eval()
    generator = torch.Generator().manual_seed(3)
    ids = text[: model.context].long()
    for _ in range(length):
        logits = model(ids[-model.context :].unsqueeze(0).to(device))[0, -1].cpu()
        ids = torch.cat([ids, torch.multinomial(logits.softmax(0), 1, generator=generator)])
    return bytes(ids[model.context :].tolist()).decode("utf-8", errors="replace")


def main() -> None:
    """Train on the device named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", nargs="?", default="cpu")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--no-foreach", action="store_true", help="update the parameters one by one")
    args = parser.parse_args()
    text = load_text()
    model = make_model(args.device, args.dropout)
    losses = train(model, text, args.device, args.steps, False if args.no_foreach else None)
    for step, loss in enumerate(losses, 1):
        print(f"step {step}/{args.steps} loss {loss:.4f}")
    print(generate(model, text, args.device))


if __name__ == "__main__":
    main()
