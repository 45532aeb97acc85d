"""Small data sets and models on which training takes milliseconds."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data.dataset import Dataset
from asgat.data.splits import stratified_splits
from asgat.graph import Graph


def tiny_dataset(splits: int = 3, noise: float = 1.0, metric: str = "micro_f1", num_nodes: int = 60) -> Dataset:
    """A ring of two classes, 2 : 1 in size, whose features differ up to noise."""
    rng = np.random.default_rng(0)
    y = (np.arange(num_nodes) % 3 == 0).astype(np.int64)
    x = np.stack([1 - y, y, np.zeros(num_nodes)], axis=1) + noise * rng.standard_normal((num_nodes, 3))
    ring = np.arange(num_nodes)
    graph = Graph.from_edges(np.stack([ring, np.roll(ring, -1)]), num_nodes)
    parts = stratified_splits(y, seed=0)[:splits]
    return Dataset("tiny", graph, x.astype(np.float32), y, parts, 2, metric)


def quick(**changes: object) -> TrainConfig:
    """Settings for a few quick epochs, without restarts by default."""
    values = {"epochs": 30, "patience": 30, "hidden": 8, "weight_decay": 0.0, "max_restarts": 0}
    return TrainConfig(**{**values, "normalize_features": False, **changes})  # type: ignore[arg-type]


class Linear(nn.Module):
    """Learns; with dropout, so that the random stream matters."""

    def __init__(self, channels: int = 3, classes: int = 2, dropout: float = 0.2) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.dropout(x))
        return logits


class Constant(nn.Module):
    """Predicts the same for every node; it cannot learn."""

    def __init__(self, logits: tuple[float, ...] = (1.0, -1.0)) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1))
        self.register_buffer("logits", torch.tensor(logits))

    def forward(self, x: Tensor) -> Tensor:
        return self.get_buffer("logits").expand(len(x), -1) + 0.0 * self.weight


class Diverging(Linear):
    """Returns NaN from one epoch on."""

    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.epoch, self.trained = epoch, 0

    def forward(self, x: Tensor) -> Tensor:
        self.trained += self.training
        return super().forward(x) * (float("nan") if self.trained >= self.epoch else 1.0)
