"""Geom-GCN as a model of asgat's registry: ``python -m reproduce train DATASET --model geom-gcn``.

Importing it loads neither PyTorch nor PyG.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from asgat.config import TrainConfig
from asgat.nn.registry import ModelSpec


@dataclass(frozen=True, kw_only=True)
class GeomGCNConfig(TrainConfig):
    """Settings of Geom-GCN."""

    space: Literal["isomap", "poincare", "struc2vec"] = field(
        default="isomap", metadata={"group": "model", "help": "latent space the nodes are embedded in"}
    )


def _build(config: Any, in_channels: int, out_channels: int) -> Any:
    from reproduce.geom_gcn.model import GeomGCN

    return GeomGCN(in_channels, config.hidden, out_channels, config.layers, config.dropout)


def _prepare(graph: Any, config: Any, device: Any, _: Any, dataset: Any) -> tuple[Any, ...]:
    from asgat.kernels.sparse_features import SparseFeatures
    from reproduce.geom_gcn.model import virtual_nodes
    from reproduce.geom_gcn.published import find_relations

    relations = find_relations(graph, config.space, dataset.name, dataset.data_dir)
    return (SparseFeatures.from_dense(virtual_nodes(relations), device),)


SPEC = ModelSpec(
    "neighbours in the graph and in a latent space, by direction",
    "Pei et al., ICLR 2020",
    "O(N·F·H + E·H)",
    GeomGCNConfig,
    _build,
    _prepare,
    {"lr": 0.05, "weight_decay": 5e-6, "hidden": 48},
)
