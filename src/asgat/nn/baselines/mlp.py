"""Features alone: what the graph must beat."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear


class MLP(nn.Module):
    """A multi-layer perceptron with ReLU and dropout; it does not look at the graph.

    Args:
        in_channels: number of input features.
        hidden_channels: size of each hidden layer.
        out_channels: number of classes.
        num_layers: number of linear maps.
        dropout: on the input of every layer.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int = 2, dropout: float = 0.5
    ) -> None:
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | SparseFeatures) -> Tensor:
        for layer in self.layers[:-1]:
            x = torch.relu(self._map(layer, x))
        return self._map(self.layers[-1], x)

    def _map(self, layer: nn.Module, x: Tensor | SparseFeatures) -> Tensor:
        assert isinstance(layer, nn.Linear)
        return linear(dropout(x, self.dropout, self.training), layer.weight) + layer.bias
