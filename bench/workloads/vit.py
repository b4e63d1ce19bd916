"""Training a vision transformer on 32x32 images, built of torch's own encoder layers."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import training


class VisionTransformer(nn.Module):
    """Patches of the image, a class token, and an encoder."""

    def __init__(self, image: int, patch: int, width: int, heads: int, layers: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of the classes."""
        patches = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(images), -1, -1), patches], dim=1) + self.positions
        return self.head(self.norm(self.encoder(x)[:, 0]))


def make(
    device: str,
    batch: int = 16,
    image: int = 32,
    patch: int = 4,
    width: int = 128,
    heads: int = 4,
    layers: int = 4,
    classes: int = 10,
) -> Callable[[], Tensor]:
    """Return the training step."""
    torch.manual_seed(0)
    model = VisionTransformer(image, patch, width, heads, layers, classes).to(device)
    images, labels = torch.randn(batch, 3, image, image).to(device), torch.randint(classes, (batch,)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    return training(optimizer, lambda: F.cross_entropy(model(images), labels, label_smoothing=0.1))
