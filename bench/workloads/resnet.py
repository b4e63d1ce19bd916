"""Training ResNet-18 in its form for 32x32 images, with SGD and momentum."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import training

VARIANTS = {"resnet18": {}}


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """Return a convolution that keeps the image's size, up to its stride, and its batch norm."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class Block(nn.Module):
    """Two convolutions around which the input is carried."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = convolution(inputs, outputs, 3, stride)
        self.second = convolution(outputs, outputs, 3)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else convolution(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both ways."""
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResNet(nn.Module):
    """ResNet-18: four stages of two blocks."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.stem = convolution(3, width, 3)
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.blocks = nn.Sequential(
            *(
                Block(inputs if i == 0 else outputs, outputs, 2 if i == 0 and inputs != outputs else 1)
                for inputs, outputs in pairwise(widths)
                for i in range(2)
            )
        )
        self.head = nn.Linear(8 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of the classes."""
        x = self.blocks(F.relu(self.stem(images)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def make(device: str, batch: int = 8, image: int = 32, width: int = 64, classes: int = 10) -> Callable[[], Tensor]:
    """Return the training step."""
    torch.manual_seed(0)
    model = ResNet(width, classes).to(device)
    images, labels = torch.randn(batch, 3, image, image).to(device), torch.randint(classes, (batch,)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, nesterov=True)
    return training(optimizer, lambda: F.cross_entropy(model(images), labels))
