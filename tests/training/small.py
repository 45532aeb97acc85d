"""A small data set on which ASGAT trains in double precision, and runs on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data.dataset import Dataset
from asgat.data.splits import stratified_splits
from asgat.graph import Graph
from asgat.nn.registry import make_config, model_spec
from asgat.training.batched_step import Job
from asgat.training.runner import make_inputs

NODES = 40


def small_dataset(splits: int = 4, noise: float = 0.6) -> Dataset:
    """Two classes on a random weighted graph, told apart by features that are mostly zero."""
    rng = np.random.default_rng(0)
    y = (np.arange(NODES) % 3 == 0).astype(np.int64)
    edges = rng.integers(0, NODES, size=(2, 90))
    graph = Graph.from_edges(edges, NODES, rng.uniform(0.5, 2.0, 90))
    x = np.zeros((NODES, 30))
    x[np.arange(NODES), y] = 1.0
    x[np.arange(NODES), 2 + rng.integers(0, 28, NODES)] = noise * rng.standard_normal(NODES)
    return Dataset("small", graph, x.astype(np.float32), y, stratified_splits(y, seed=0)[:splits], 2, "micro_f1")


def settings(model: str, **changes: Any) -> TrainConfig:
    values: dict[str, Any] = {"epochs": 50, "patience": 12, "hidden": 5, "heads": 2, "k": 4, "filter_hidden": (6,)}
    return make_config(model, **{**values, "max_restarts": 0, "normalize_features": False, **changes})


def jobs(model: str, differences: list[dict[str, Any]], **shared: Any) -> list[Job]:
    """One run per entry, on split i with seed i."""
    splits = small_dataset().splits
    return [Job(splits[i % len(splits)], i, settings(model, **{**shared, **own})) for i, own in enumerate(differences)]


def problem(
    model: str, config: TrainConfig, device: str = "cpu", dtype: torch.dtype = torch.float64
) -> tuple[Callable[[TrainConfig], nn.Module], tuple[Any, ...], Tensor]:
    """How to build the model, its inputs, and labels."""
    dataset = small_dataset()
    inputs = tuple(part.to(dtype=dtype) for part in make_inputs(dataset, model, config, torch.device(device)))
    spec = model_spec(model)

    def build(config: TrainConfig) -> nn.Module:
        return spec.make(config, dataset.num_features, dataset.num_classes, dataset.num_nodes).to(dtype)

    return build, inputs, torch.from_numpy(dataset.y).to(device)
