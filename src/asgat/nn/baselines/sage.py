"""GraphSAGE on the whole graph."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import Edges, mean, propagation


class SAGE(nn.Module):
    r"""The mean aggregator of `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_, with ReLU and dropout.

    .. math:: H' = H W_{self} + D^{-1} A H W + b

    All neighbours are taken, none is sampled, and rows are not scaled to length 1.

    Args:
        in_channels: number of input features.
        hidden_channels: size of each hidden layer.
        out_channels: number of classes.
        num_layers: number of layers.
        dropout: on the input of every layer.

    Cost per layer: O(N · in · out + E · out).
    """

    matrix = staticmethod(mean)

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int = 2, dropout: float = 0.5
    ) -> None:
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(SAGEConv(a, b) for a, b in pairwise(sizes))
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | SparseFeatures, edge_index: Edges, edge_weight: Tensor | None = None) -> Tensor:
        step = propagation(x, edge_index, edge_weight, self.matrix)
        for layer in self.layers[:-1]:
            x = torch.relu(self._aggregate(layer, x, step))
        return self._aggregate(self.layers[-1], x, step)

    def _aggregate(self, layer: Any, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        x = dropout(x, self.dropout, self.training)
        around, own = linear(x, torch.cat([layer.lin_l.weight, layer.lin_r.weight])).chunk(2, dim=1)
        out: Tensor = step.matmul(around) + own + layer.lin_l.bias
        return out
