"""The inputs of a model's ``forward`` for one data set: features, and what the model prepares from the graph."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from asgat.config import SpectralConfig, TrainConfig
from asgat.data.dataset import Dataset
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.graph.knn_edges import add_knn_edges
from asgat.kernels.sparse_features import SparseFeatures, features_tensor
from asgat.nn.asgat import with_adjacency
from asgat.nn.registry import MODELS, model_spec
from asgat.tables.candidate_table import Progress


def graph_for(dataset: Dataset, config: TrainConfig) -> Graph:
    """The graph of a data set as these settings ask for it: self-loops treated, k-nearest-neighbour edges added."""
    graph = dataset.graph.with_self_loops(config.self_loops)
    if isinstance(config, SpectralConfig) and config.similar:
        return add_knn_edges(graph, dataset.x, config.similar, config.similar_weight)
    return graph


def normalise_rows(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Feature rows scaled so that their absolute values sum to 1; rows of zeros stay."""
    total = np.abs(x).sum(axis=1, keepdims=True)
    return np.asarray(x / np.where(total > 0, total, 1.0), dtype=np.float32)


def make_inputs(
    dataset: Dataset, model: str, config: TrainConfig, device: torch.device, building: Progress | None = None
) -> tuple[Any, ...]:
    """What the model's ``forward`` takes for this data set: features, then what it prepared from the graph."""
    return make_features(dataset, config, device), *prepare_graph(dataset, model, config, device, building)


def make_features(dataset: Dataset, config: TrainConfig, device: torch.device) -> torch.Tensor | SparseFeatures:
    """The features of a data set as a model with these settings takes them."""
    x: Any = normalise_rows(dataset.x) if config.normalize_features else dataset.x
    if getattr(config, "adjacency", False):
        x = with_adjacency(x, graph_for(dataset, config))
    return features_tensor(x, device)


def prepare_graph(
    dataset: Dataset, model: str, config: TrainConfig, device: torch.device, building: Progress | None = None
) -> tuple[Any, ...]:
    """What the model prepares from the graph of a data set."""
    check_direction(dataset, model)
    return model_spec(model).prepare(graph_for(dataset, config), config, device, building, dataset)


def check_direction(dataset: Any, model: str) -> None:
    """Refuses an unknown model, and a directed graph for one that cannot use directions."""
    usable = model_spec(model).directed
    if dataset.directed and not usable:
        able = ", ".join(name for name, spec in MODELS.items() if spec.directed)
        raise AsgatError(
            f"The graph of {dataset.name} is directed, and {model} cannot use directions. Models that can: {able}. "
            "Otherwise use the undirected data set, or leave --directed out."
        )
