"""What the baselines with several layers share: layers in sequence, an activation between them, a prepared graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.baselines.propagation import Edges, propagation


class LayerStack(nn.Module):
    """Layers in sequence with an activation between them. A model defines its matrix and how a layer is applied.

    Models take ``in_channels``, the number of input features; ``hidden_channels``, the size of each hidden layer;
    ``out_channels``, the number of classes; ``num_layers``; and ``dropout``, on the input of every layer. PyG's layers
    hold their weights, and sparse products take the place of PyG's messages.

    Args:
        layers: the layers.
        dropout: on the input of every layer.
    """

    matrix: Callable[[Graph], sp.csr_array]
    activation: Callable[[Tensor], Tensor] = staticmethod(torch.relu)

    def __init__(self, layers: Iterable[nn.Module], dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | SparseFeatures, edge_index: Edges, edge_weight: Tensor | None = None) -> Tensor:
        return self.run_layers(x, propagation(x, edge_index, edge_weight, self.matrix))

    def run_layers(self, x: Tensor | SparseFeatures, *graph: Any) -> Tensor:
        """The output of the last layer; ``graph`` is passed to every layer."""
        for layer in self.layers[:-1]:
            x = self.activation(self.apply_layer(layer, x, *graph))
        return self.apply_layer(self.layers[-1], x, *graph)

    def apply_layer(self, layer: Any, x: Tensor | SparseFeatures, *graph: Any) -> Tensor:
        """One layer before its activation."""
        raise NotImplementedError


def layer_sizes(
    in_channels: int, hidden_channels: int, out_channels: int, num_layers: int
) -> Iterator[tuple[int, int]]:
    """Numbers of input and output channels of every layer."""
    return pairwise([in_channels, *[hidden_channels] * (num_layers - 1), out_channels])
