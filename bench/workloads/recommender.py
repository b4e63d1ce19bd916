"""Training a recommender: embeddings of users, items and bags of tags, their dot products, and a perceptron."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from workloads import training


class Recommender(nn.Module):
    """Says whether a user will like an item."""

    def __init__(self, users: int, items: int, tags: int, width: int, hidden: int) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        self.tags = nn.EmbeddingBag(tags, width, mode="mean")
        self.dense = nn.Sequential(nn.Linear(8, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + 6, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, user: Tensor, item: Tensor, tags: Tensor, starts: Tensor, dense: Tensor) -> Tensor:
        """Return a logit for each pair."""
        features = torch.stack([self.users(user), self.items(item), self.tags(tags, starts), self.dense(dense)], dim=1)
        products = features @ features.transpose(1, 2)
        rows, columns = torch.triu_indices(4, 4, offset=1, device=products.device)
        return self.top(torch.cat([features[:, 3], products[:, rows, columns]], dim=1)).squeeze(1)


def make(
    device: str,
    batch: int = 256,
    users: int = 5000,
    items: int = 2000,
    tags: int = 500,
    width: int = 32,
    hidden: int = 128,
) -> Callable[[], Tensor]:
    """Return the training step."""
    torch.manual_seed(0)
    model = Recommender(users, items, tags, width, hidden).to(device)
    user, item = torch.randint(users, (batch,)).to(device), torch.randint(items, (batch,)).to(device)
    lengths = torch.randint(1, 6, (batch,))
    starts = (lengths.cumsum(0) - lengths).to(device)
    bags = torch.randint(tags, (int(lengths.sum()),)).to(device)
    dense, liked = torch.randn(batch, 8).to(device), torch.randint(2, (batch,)).float().to(device)
    return training(
        torch.optim.Adagrad(model.parameters(), lr=0.01),
        lambda: F.binary_cross_entropy_with_logits(model(user, item, bags, starts, dense), liked),
    )
