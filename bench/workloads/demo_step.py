"""One training step of the demo's GPT, its loss read at the end."""

from collections.abc import Callable

from demo import train


def make(device: str) -> Callable[[], object]:
    """Return the step."""
    losses = train.train(train.make_model(device), train.load_text(), device, steps=1_000_000)
    return lambda: next(losses)
