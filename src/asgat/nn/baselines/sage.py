"""GraphSAGE on the whole graph."""

from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import LayerStack
from asgat.nn.pyg import SAGEConv


class SAGE(LayerStack):
    r"""The mean aggregator of `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_, with ReLU and dropout.

    .. math:: H' = H W_{self} + D^{-1} A H W + b

    All neighbours are used, none is sampled, and rows are not normalised. Arguments as in
    :class:`~asgat.nn.baselines.propagation.LayerStack`. Cost per layer: O(N · in · out + E · out).
    """

    matrix = attrgetter("mean_adjacency")
    make_layer = SAGEConv

    def apply_layer(self, layer: Any, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        x = dropout(x, self.dropout, self.training)
        neighbours, itself = linear(x, torch.cat([layer.lin_l.weight, layer.lin_r.weight])).chunk(2, dim=1)
        out: Tensor = step.matmul(neighbours) + itself + layer.lin_l.bias
        return out
