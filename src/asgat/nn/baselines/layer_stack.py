"""What the baselines with several layers share: layers in sequence, an activation between them, a prepared graph."""

from collections.abc import Callable, Iterator
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

    PyG's layers hold the weights, and sparse products take the place of PyG's messages.

    Args:
        in_channels: number of input features.
        hidden_channels: size of each hidden layer.
        out_channels: number of classes.
        dropout: on the input of every layer.
        settings: the model's own arguments, those of its ``make_layer``.
    """

    matrix: Callable[[Graph], sp.csr_array]
    make_layer: Callable[..., nn.Module]  # from the numbers of input and output channels
    apply_layer: Callable[..., Tensor]  # a layer, its input and the graph to its output before the activation
    activation: Callable[[Tensor], Tensor] = staticmethod(torch.relu)

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        **settings: Any,
    ) -> None:
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(self.make_layers(sizes, **settings))
        self.dropout = dropout

    def make_layers(self, sizes: list[int], **settings: Any) -> Iterator[nn.Module]:
        """The layers between these numbers of channels."""
        return (self.make_layer(a, b, **settings) for a, b in pairwise(sizes))

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
