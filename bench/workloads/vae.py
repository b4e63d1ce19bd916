"""Training a variational autoencoder of convolutions on 32x32 images."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import training


class Autoencoder(nn.Module):
    """Convolutions to the mean and the logarithm of the variance of a code, and transposed ones back."""

    def __init__(self, image: int, channels: int, code: int) -> None:
        super().__init__()
        c, flat = channels, 2 * channels * (image // 4) ** 2
        self.encoder = nn.Sequential(
            nn.Conv2d(1, c, 4, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(c, 2 * c, 4, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.Flatten(),
            nn.Linear(flat, 2 * code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, flat),
            nn.LeakyReLU(0.1),
            nn.Unflatten(1, (2 * c, image // 4, image // 4)),
            nn.ConvTranspose2d(2 * c, c, 4, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.ConvTranspose2d(c, 1, 4, stride=2, padding=1),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return the loss: how far the images are from what became of them, and the code from a normal one."""
        mean, log_variance = self.encoder(images).chunk(2, dim=1)
        code = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        likeness = F.binary_cross_entropy_with_logits(self.decoder(code), images, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        return (likeness + divergence) / len(images)


def make(device: str, batch: int = 32, image: int = 32, channels: int = 16, code: int = 16) -> Callable[[], Tensor]:
    """Return the training step."""
    torch.manual_seed(0)
    model = Autoencoder(image, channels, code).to(device)
    images = torch.rand(batch, 1, image, image).to(device)
    return training(torch.optim.Adam(model.parameters(), lr=1e-3), lambda: model(images))
