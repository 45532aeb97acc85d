"""What the baselines share: sparse matrices by which they propagate, built once per graph, and layers in sequence."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures

Edges = Tensor | Graph | SparseFeatures


def propagation(
    x: Tensor | SparseFeatures,
    edges: Edges,
    edge_weight: Tensor | None,
    matrix: Callable[[Graph], sp.csr_array],
) -> SparseFeatures:
    """The matrix of a graph as sparse features, so that one product is a whole step of message passing.

    O(E · F) time for F channels, and no message is stored, where a gather and a scatter would store all E of them. The
    graph is given as edges [2, E] (read as undirected), a ``Graph``, or such a matrix built before, which has the
    device and type of the features x.
    """
    if not isinstance(edges, SparseFeatures):
        graph = edges if isinstance(edges, Graph) else Graph.from_edges(edges, x.size(0), edge_weight)
        edges = SparseFeatures.from_dense(matrix(graph), x.device, x.dtype)
    if edges.size(1) != x.size(0):
        raise AsgatError(f"x has {x.size(0)} rows, but the graph has {edges.size(1)} nodes.")
    return edges


def renormalised(graph: Graph) -> sp.csr_array:
    r""":math:`\tilde D^{-1/2} \tilde A \tilde D^{-1/2}`, where every node without a self-loop gets one of weight 1."""
    return graph.with_self_loops("add").normalised_adjacency


class Propagating(nn.Module):
    """A model that runs on the features of a graph and the matrix it propagates them by."""

    matrix: Callable[[Graph], sp.csr_array]
    run: Callable[..., Tensor]  # from the features and the matrix

    def forward(self, x: Tensor | SparseFeatures, edge_index: Edges, edge_weight: Tensor | None = None) -> Tensor:
        return self.run(x, propagation(x, edge_index, edge_weight, self.matrix))


class LayerStack(Propagating):
    """Layers in sequence with an activation between them. A model defines its matrix and how a layer is applied.

    PyG's layers hold the weights, and sparse products take the place of PyG's messages. ``dropout`` is on the input of
    every layer; None is the model's default. ``settings`` are the model's own, those of its ``make_layer``.
    """

    make_layer: Callable[..., nn.Module]  # from the numbers of input and output channels
    apply_layer: Callable[..., Tensor]  # a layer, its input and the graph to its output before the activation
    activation: Callable[[Tensor], Tensor] = staticmethod(torch.relu)
    default_dropout = 0.5

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(self.make_layers(sizes, **settings))
        self.dropout = self.default_dropout if dropout is None else dropout

    def make_layers(self, sizes: list[int], **settings: Any) -> Iterator[nn.Module]:
        """The layers between these numbers of channels."""
        return (self.make_layer(a, b, **settings) for a, b in pairwise(sizes))

    def reset_parameters(self) -> None:
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]

    def run(self, x: Tensor | SparseFeatures, *graph: Any) -> Tensor:
        """The output of the last layer; ``graph`` is passed to every layer."""
        for layer in self.layers[:-1]:
            x = self.activation(self.apply_layer(layer, x, *graph))
        return self.apply_layer(self.layers[-1], x, *graph)
