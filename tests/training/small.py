"""A small data set on which ASGAT trains in single or double precision, and runs on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from asgat.config import TrainConfig
from asgat.data.dataset import Dataset
from asgat.data.splits import stratified_splits
from asgat.graph import Graph
from asgat.nn.registry import make_config, model_spec
from asgat.training.inputs import make_inputs
from asgat.training.program import Task
from asgat.training.run_state import Job, RunResult

NODES = 40


def small_dataset(splits: int = 4, noise: float = 0.6) -> Dataset:
    """Two classes on a random weighted graph, with features that are mostly zero."""
    rng = np.random.default_rng(0)
    y = (np.arange(NODES) % 3 == 0).astype(np.int64)
    edges = rng.integers(0, NODES, size=(2, 90))
    graph = Graph.from_edges(edges, NODES, rng.uniform(0.5, 2.0, 90))
    x = np.zeros((NODES, 30))
    x[np.arange(NODES), y] = 1.0
    x[np.arange(NODES), 2 + rng.integers(0, 28, NODES)] = noise * rng.standard_normal(NODES)
    return Dataset("small", graph, x.astype(np.float32), y, stratified_splits(y, seed=0)[:splits], 2, "micro_f1")


def settings(model: str, **changes: Any) -> TrainConfig:
    """Settings of a model for a few epochs; what only the ASGAT models have is left out for the others."""
    values: dict[str, Any] = {"epochs": 50, "patience": 12, "hidden": 5, "max_restarts": 0, "normalize_features": False}
    if model.startswith("asgat"):
        values |= {"heads": 2, "k": 4, "filter_hidden": (6,)}
    return make_config(model, **{**values, **changes})


def jobs(model: str, differences: list[dict[str, Any]], **shared: Any) -> list[Job]:
    """One run per entry, on split i with seed i."""
    splits = small_dataset().splits
    return [
        Job(splits[i % len(splits)], i, settings(model, **{**shared, **own}), run=i)
        for i, own in enumerate(differences)
    ]


def make_task(
    model: str,
    config: TrainConfig,
    dtype: torch.dtype = torch.float64,
    metric: str = "micro_f1",
    device: str = "cpu",
) -> Task:
    """What runs of a model on the small data set share."""
    dataset = small_dataset()
    inputs = tuple(part.to(dtype=dtype) for part in make_inputs(dataset, model, config, torch.device(device)))
    sizes = dataset.num_features, dataset.num_classes, dataset.num_nodes

    def build(own: TrainConfig) -> nn.Module:
        return model_spec(model).make(own, *sizes).to(dtype)

    return Task(build, inputs, torch.from_numpy(dataset.y).to(device), metric)


def assert_same(one: object, other: object) -> None:
    """Two results of a run are equal to the last bit, except for the time they took."""
    assert isinstance(one, RunResult)
    assert isinstance(other, RunResult)
    figures, others = ({**vars(result), "seconds": 0, "state": 0} for result in (one, other))
    assert figures == others
    assert one.state.keys() == other.state.keys()
    for name, value in other.state.items():
        assert torch.equal(one.state[name], value), name
