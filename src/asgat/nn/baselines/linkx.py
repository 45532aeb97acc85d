"""Features and adjacency rows, mapped separately."""

from operator import attrgetter

from torch import Tensor

from asgat.kernels.sparse_features import SparseFeatures, linear
from asgat.nn import pyg
from asgat.nn.baselines.propagation import Edges, propagation


class LINKX(pyg.LINKX):  # type: ignore[misc]
    r"""PyG's ``LINKX``, the model of `"Large Scale Learning on Non-Homophilous Graphs"
    <https://arxiv.org/abs/2110.14446>`_.

    .. math::
        H_A = A W_A + b_A, \qquad H_X = X W_X + b_X, \qquad
        Y = \mathrm{MLP}\big(\mathrm{ReLU}(W [H_A, H_X] + H_A + H_X)\big)

    :math:`W_A` has a row per node, so a trained model belongs to its graph. ``num_layers`` and ``dropout`` are those of
    the MLP. Cost: O(E · hidden + N · in · hidden).
    """

    matrix = attrgetter("adjacency")

    def __init__(
        self,
        num_nodes: int,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(num_nodes, in_channels, hidden_channels, out_channels, num_layers, dropout=dropout)

    def forward(self, x: Tensor | SparseFeatures, edge_index: Edges, edge_weight: Tensor | None = None) -> Tensor:
        links = propagation(x, edge_index, edge_weight, self.matrix)
        (lin,) = self.node_mlp.lins
        from_links = links.matmul(self.edge_lin.weight) + self.edge_lin.bias
        from_features = linear(x, lin.weight) + lin.bias
        both = self.cat_lin1(from_links) + self.cat_lin2(from_features) + from_links + from_features
        out: Tensor = self.final_mlp(both.relu())
        return out
