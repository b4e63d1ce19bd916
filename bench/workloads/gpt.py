"""Training the demo's GPT at several widths, with dropout, gradient clipping and the loss read at the end of a step.

``gpt_128`` is the demo's own training step.
"""

from collections.abc import Callable

from demo import train

VARIANTS = {
    "gpt_64": {"width": 64},
    "gpt_128": {"width": 128},
    "gpt_384": {"width": 384, "heads": 6, "batch": 4},
}


def make(
    device: str, width: int = 128, heads: int = 4, layers: int = 4, context: int = 128, batch: int = 8
) -> Callable[[], float]:
    """Return the step."""
    model = train.make_model(device, width=width, heads=heads, layers=layers, context=context)
    losses = train.train(model, train.load_text(), device, steps=1_000_000, batch=batch)
    return lambda: next(losses)
