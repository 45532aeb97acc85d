"""The graph convolutional network."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import Edges, propagation, renormalised


class GCN(nn.Module):
    r"""Graph convolutions of `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_, with ReLU and dropout.

    .. math:: H' = \tilde D^{-1/2} \tilde A \tilde D^{-1/2} H W + b

    Args:
        in_channels: number of input features.
        hidden_channels: size of each hidden layer.
        out_channels: number of classes.
        num_layers: number of layers.
        dropout: on the input of every layer.

    Cost per layer: O(N · in · out + E · out).
    """

    matrix = staticmethod(renormalised)

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int = 2, dropout: float = 0.5
    ) -> None:
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(GCNConv(a, b) for a, b in pairwise(sizes))
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | SparseFeatures, edge_index: Edges, edge_weight: Tensor | None = None) -> Tensor:
        step = propagation(x, edge_index, edge_weight, self.matrix)
        for layer in self.layers[:-1]:
            x = torch.relu(self._convolve(layer, x, step))
        return self._convolve(self.layers[-1], x, step)

    def _convolve(self, layer: Any, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        out: Tensor = step.matmul(linear(dropout(x, self.dropout, self.training), layer.lin.weight)) + layer.bias
        return out
