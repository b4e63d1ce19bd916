"""AdamW with its default options over 20 M parameters: the 62 tensors of a GPT of six layers, or a single one."""

from collections.abc import Callable

import torch

PIECE = True
VARIANTS = {"adamw_20m": {"single": False}, "adamw_20m_single": {"single": True}}
LAYER = [(512,), (512,), (1536, 512), (1536,), (512, 512), (512,), (2048, 512), (2048,), (512, 2048), (512,)]


def make(device: str, single: bool) -> Callable[[], object]:
    """Return the optimizer's step; the gradients stay as they are."""
    generator = torch.Generator().manual_seed(0)
    parameters = []
    for shape in [(4472, 4472)] if single else [(1536, 512), (512, 512), *(6 * LAYER)]:
        parameter = torch.nn.Parameter(torch.randn(shape, generator=generator).to(device))
        parameter.grad = torch.randn(shape, generator=generator).to(device)
        parameters.append(parameter)
    optimizer = torch.optim.AdamW(parameters)
    return optimizer.step
