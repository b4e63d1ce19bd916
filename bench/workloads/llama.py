"""Training a stack of Llama blocks: RMS norm, rotary embedding, grouped-query attention, SwiGLU."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import training


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair of channels by its position's angle."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Block(nn.Module):
    """One block; `groups` heads of keys and values serve `heads` heads of queries."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.head = width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, groups * self.head, bias=False)
        self.value = nn.Linear(width, groups * self.head, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        hidden = 8 * width // 3
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Attend, then transform each position by itself."""
        y = self.norm1(x)
        q, k, v = (
            project(y).unflatten(-1, (-1, self.head)).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.output(attended.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """A language model of such blocks."""

    def __init__(self, vocabulary: int, width: int, heads: int, groups: int, layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, groups) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, vocabulary, bias=False)
        half = width // heads // 2
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(half) / half))

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits of the token that follows each position."""
        angles = torch.outer(torch.arange(ids.shape[1], device=ids.device), self.frequencies).repeat(1, 2)
        cos, sin = angles.cos(), angles.sin()
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


def make(
    device: str,
    width: int = 128,
    heads: int = 8,
    groups: int = 2,
    layers: int = 4,
    context: int = 128,
    batch: int = 4,
    vocabulary: int = 512,
) -> Callable[[], Tensor]:
    """Return the training step."""
    torch.manual_seed(0)
    model = Llama(vocabulary, width, heads, groups, layers).to(device)
    ids = torch.randint(vocabulary, (batch, context + 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    return training(optimizer, lambda: F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()))
