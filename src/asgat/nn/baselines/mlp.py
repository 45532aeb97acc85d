"""Features alone: the baseline that shows what a graph adds."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.layer_stack import LayerStack, layer_sizes


class MLP(LayerStack):
    """A multi-layer perceptron with ReLU and dropout; it does not use the graph.

    Arguments as in :class:`~asgat.nn.baselines.layer_stack.LayerStack`.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int = 2, dropout: float = 0.5
    ) -> None:
        sizes = layer_sizes(in_channels, hidden_channels, out_channels, num_layers)
        super().__init__((nn.Linear(a, b) for a, b in sizes), dropout)

    def forward(self, x: Tensor | SparseFeatures) -> Tensor:  # type: ignore[override]
        return self.run_layers(x)

    def apply_layer(self, layer: Any, x: Tensor | SparseFeatures) -> Tensor:
        out: Tensor = linear(dropout(x, self.dropout, self.training), layer.weight) + layer.bias
        return out
