"""Text generation with the demo's GPT: one token at a time, with a cache of keys and values that grows with each.

The most likely token is taken, or one is drawn from the ten most likely.
"""

from collections.abc import Callable

import torch
from demo import train
from torch import Tensor
from torch.nn import functional as F

VARIANTS = {"gpt_generate": {"sample": False}, "gpt_generate_sampled": {"sample": True}}
Cache = list[tuple[Tensor, Tensor]]


def attend(block: train.Block, x: Tensor, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run one block on the new positions and return its output and the longer cache."""
    batch, length, width = x.shape
    qkv = block.qkv(block.norm1(x)).view(batch, length, 3, block.heads, width // block.heads)
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    if past is not None:
        k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
    attended = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
    x = x + block.project(attended.transpose(1, 2).reshape(batch, length, width))
    return x + block.contract(F.gelu(block.expand(block.norm2(x)))), (k, v)


def forward(model: train.GPT, ids: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
    """Return the logits after the last of the new tokens, and the cache that has them."""
    start = cache[0][0].shape[2] if cache else 0
    x = model.tokens(ids) + model.positions[start : start + ids.shape[1]]
    longer: Cache = []
    for i, block in enumerate(model.blocks):
        x, entry = attend(block, x, cache[i] if cache else None)
        longer.append(entry)
    return model.head(model.norm(x[:, -1])), longer


def choose(logits: Tensor, sample: bool) -> Tensor:
    """Return the next token of each row."""
    if not sample:
        return logits.argmax(dim=-1, keepdim=True)
    best, tokens = logits.topk(10)
    return tokens.gather(1, torch.multinomial((best / 0.8).softmax(dim=-1), 1))


def make(
    device: str,
    sample: bool = False,
    width: int = 128,
    heads: int = 4,
    layers: int = 4,
    context: int = 128,
    prompt: int = 64,
    tokens: int = 32,
    batch: int = 1,
) -> Callable[[], Tensor]:
    """Return a step that continues the prompts by some tokens."""
    model = train.make_model(device, dropout=0.0, width=width, heads=heads, layers=layers, context=context).eval()
    ids = train.load_text()[: batch * prompt].view(batch, prompt).long().to(device)

    @torch.no_grad()
    def step() -> Tensor:
        logits, cache = forward(model, ids, [])
        new = [choose(logits, sample)]
        while len(new) < tokens:
            logits, cache = forward(model, new[-1], cache)
            new.append(choose(logits, sample))
        return torch.cat(new, dim=1)

    return step
