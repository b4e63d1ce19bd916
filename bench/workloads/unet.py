"""Training a small diffusion U-Net: group norm, attention, down- and upsampling; noise is drawn each step."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import training

TIMES = 1000


class Residual(nn.Module):
    """Two convolutions, told the time in between."""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, inputs), nn.GroupNorm(8, outputs)
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """Return the sum of both ways."""
        y = self.first(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.second(F.silu(self.norm2(y))) + self.shortcut(x)


class Attention(nn.Module):
    """Attention between all places of the image."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(8, channels)
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.output = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the image with what each place learned from the others."""
        batch, channels, height, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, 3, self.heads, -1, height * width).transpose(-1, -2).unbind(1)
        attended = F.scaled_dot_product_attention(q, k, v)
        return x + self.output(attended.transpose(-1, -2).reshape(batch, channels, height, width))


class UNet(nn.Module):
    """Three resolutions; the way up sees what the way down left."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        c, time = channels, 4 * channels
        self.channels = channels
        self.time = nn.Sequential(nn.Linear(channels, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(3, c, 3, padding=1)
        self.down1, self.half1 = Residual(c, c, time), nn.Conv2d(c, c, 3, stride=2, padding=1)
        self.down2, self.half2 = Residual(c, 2 * c, time), nn.AvgPool2d(2)
        self.middle1, self.attention, self.middle2 = (
            Residual(2 * c, 2 * c, time),
            Attention(2 * c, 4),
            Residual(2 * c, 2 * c, time),
        )
        self.up2, self.up1 = Residual(4 * c, c, time), Residual(2 * c, c, time)
        self.leave = nn.Sequential(nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, images: Tensor, times: Tensor) -> Tensor:
        """Return the noise in the images."""
        half = self.channels // 2
        rates = torch.exp(torch.arange(half, device=times.device) * (-math.log(10000) / half))
        angles = times[:, None] * rates
        time = self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        first = self.down1(self.enter(images), time)
        second = self.down2(self.half1(first), time)
        x = self.middle2(self.attention(self.middle1(self.half2(second), time)), time)
        x = self.up2(torch.cat([F.interpolate(x, scale_factor=2, mode="nearest"), second], dim=1), time)
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return self.leave(self.up1(torch.cat([x, first], dim=1), time))


def make(device: str, batch: int = 8, image: int = 32, channels: int = 32) -> Callable[[], Tensor]:
    """Return the training step."""
    torch.manual_seed(0)
    model = UNet(channels).to(device)
    images = torch.randn(batch, 3, image, image).to(device)
    kept = torch.linspace(1 - 1e-4, 1 - 0.02, TIMES).cumprod(0).to(device)

    def loss() -> Tensor:
        times = torch.randint(TIMES, (batch,), device=device)
        noise = torch.randn_like(images)
        share = kept[times][:, None, None, None]
        return F.mse_loss(model(share.sqrt() * images + (1 - share).sqrt() * noise, times), noise)

    return training(torch.optim.AdamW(model.parameters(), lr=2e-4), loss)
