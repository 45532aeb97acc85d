"""The graph convolutional network."""

from typing import Any

from torch import Tensor

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import LayerStack, renormalised
from asgat.nn.pyg import GCNConv


class GCN(LayerStack):
    r"""Graph convolutions of `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_, with ReLU and dropout.

    .. math:: H' = \tilde D^{-1/2} \tilde A \tilde D^{-1/2} H W + b

    Arguments as in :class:`~asgat.nn.baselines.propagation.LayerStack`. Cost per layer: O(N · in · out + E · out).
    """

    matrix = staticmethod(renormalised)
    make_layer = GCNConv

    def apply_layer(self, layer: Any, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        out: Tensor = step.matmul(linear(dropout(x, self.dropout, self.training), layer.lin.weight)) + layer.bias
        return out
