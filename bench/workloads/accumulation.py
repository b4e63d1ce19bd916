"""Training the demo's GPT, narrow and without dropout, with gradients accumulated over small batches.

Four batches a step, then gradients are clipped and the optimizer steps under a OneCycle learning rate.
"""

from collections.abc import Callable

import torch
from demo import train
from torch import Tensor, nn

STEPS = 100_000  # of the learning rate's cycle


def make(
    device: str,
    width: int = 64,
    heads: int = 4,
    layers: int = 2,
    context: int = 64,
    batch: int = 4,
    accumulated: int = 4,
) -> Callable[[], Tensor]:
    """Return the training step; it gives the mean of its batches' losses."""
    model = train.make_model(device, dropout=0.0, width=width, heads=heads, layers=layers, context=context)
    text, generator = train.load_text(), torch.Generator().manual_seed(0)
    batches = [train.sample_batch(text, generator, batch, context).to(device) for _ in range(accumulated)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=STEPS)

    def step() -> Tensor:
        optimizer.zero_grad()
        total = 0.0
        for stretches in batches:
            loss = train.next_byte_loss(model, stretches) / accumulated
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        return total

    return step
