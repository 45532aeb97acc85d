"""Features alone: the baseline that shows what a graph adds."""

from typing import Any

from torch import Tensor, nn

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import LayerStack


class MLP(LayerStack):
    """A multi-layer perceptron with ReLU and dropout, which does not use the graph."""

    make_layer = nn.Linear

    def forward(self, x: Tensor | SparseFeatures) -> Tensor:  # type: ignore[override]
        return self.run(x)

    def apply_layer(self, layer: Any, x: Tensor | SparseFeatures) -> Tensor:
        out: Tensor = linear(dropout(x, self.dropout, self.training), layer.weight) + layer.bias
        return out
