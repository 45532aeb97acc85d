"""The graph convolutional network."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn import GCNConv

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.layer_stack import LayerStack, layer_sizes
from asgat.nn.baselines.propagation import renormalised


class GCN(LayerStack):
    r"""Graph convolutions of `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_, with ReLU and dropout.

    .. math:: H' = \tilde D^{-1/2} \tilde A \tilde D^{-1/2} H W + b

    Arguments as in :class:`~asgat.nn.baselines.layer_stack.LayerStack`. Cost per layer: O(N · in · out + E · out).
    """

    matrix = staticmethod(renormalised)

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int = 2, dropout: float = 0.5
    ) -> None:
        sizes = layer_sizes(in_channels, hidden_channels, out_channels, num_layers)
        super().__init__((GCNConv(a, b) for a, b in sizes), dropout)

    def apply_layer(self, layer: Any, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        out: Tensor = step.matmul(linear(dropout(x, self.dropout, self.training), layer.lin.weight)) + layer.bias
        return out
