"""The graph convolutional network."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv


class GCN(nn.Module):
    """Graph convolutions (Kipf and Welling, ICLR 2017): PyG's ``GCNConv`` with ReLU and dropout.

    Args:
        in_channels: number of input features.
        hidden_channels: size of each hidden layer.
        out_channels: number of classes.
        num_layers: number of layers.
        dropout: on the input of every layer.
    """

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

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        for layer in self.layers[:-1]:
            x = torch.relu(layer(F.dropout(x, self.dropout, self.training), edge_index, edge_weight))
        out: Tensor = self.layers[-1](F.dropout(x, self.dropout, self.training), edge_index, edge_weight)
        return out
