"""The geometric graph convolutional network, Geom-GCN."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import LayerStack
from reproduce.geom_gcn.relations import KINDS, Relations

VIRTUAL_NODES = KINDS + 1  # the last is the node itself


class GeomGCN(LayerStack):
    r"""`"Geom-GCN: Geometric Graph Convolutional Networks" <https://arxiv.org/abs/2002.05287>`_: neighbours in the
    graph and in a latent space, grouped by direction.

    The nodes are points of a plane. A node's neighbours in the graph, and those in the plane, lie in four directions
    from it: with the node itself these are nine groups, whose sums are its virtual nodes. Group i has its own weights:

    .. math::
        e_{v,i} = \sum_{u \in N_i(v)} \frac{h_u W_i}{\sqrt{d_v d_u}}, \qquad
        h_v' = \mathrm{ReLU}(e_{v,1} \,\|\, \dots \,\|\, e_{v,9}),

    :math:`d_v` the size of all groups of v. The last layer takes the mean of the virtual nodes instead of
    concatenation and ReLU. The paper prints a sum over neighbours alone and one W after the concatenation; the group
    of the node itself, a W per group, and degrees over both neighbourhoods are as in the authors' program.

    The plane is that of Isomap, Poincaré or struc2vec, the setting ``space`` (:mod:`reproduce.geom_gcn.published`).
    ``forward`` takes the matrix of :func:`virtual_nodes` as sparse features.

    Arguments as in :class:`~asgat.nn.baselines.propagation.LayerStack`; ``hidden_channels`` is the size of a virtual
    node in hidden layers, which output nine times as many features.

    Cost per layer: O(9 · N · in · out + P · out), P pairs in both neighbourhoods.
    """

    activation = staticmethod(lambda virtual: torch.relu(virtual.flatten(1)))

    def __init__(self, *sizes: Any, **settings: Any) -> None:
        super().__init__(*sizes, **settings)
        self.reset_parameters()

    def make_layers(self, sizes: list[int]) -> Iterator[nn.Module]:  # type: ignore[override]
        in_channels, *others = sizes
        widths = [in_channels, *(VIRTUAL_NODES * channels for channels in others)]
        return (nn.Linear(a, b, bias=False) for a, b in pairwise(widths))

    def reset_parameters(self) -> None:
        for layer in self.layers:
            for weight in layer.weight.chunk(VIRTUAL_NODES):  # type: ignore[operator]
                nn.init.xavier_uniform_(weight)

    def forward(self, x: Tensor | SparseFeatures, groups: SparseFeatures) -> Tensor:  # type: ignore[override]
        return self.run(x, groups).mean(dim=1)

    def apply_layer(self, layer: Any, x: Tensor | SparseFeatures, groups: SparseFeatures) -> Tensor:
        """The virtual nodes of all nodes, [N, 9, C]."""
        h = linear(dropout(x, self.dropout, self.training), layer.weight)
        return groups.matmul(h.view(groups.size(1), -1)).view(x.size(0), VIRTUAL_NODES, -1)


def virtual_nodes(relations: Relations) -> sp.csr_array:
    """All groups as one matrix [9 N, 9 N]: row 9 v + i has an entry in column 9 u + i for every u in group i of v.

    So one product sums all groups, each over its own columns of h W.
    """
    count = relations.num_nodes
    itself = np.arange(count)
    node = np.concatenate([relations.node, itself])
    neighbour = np.concatenate([relations.neighbour, itself])
    kind = np.concatenate([relations.kind, np.full(count, KINDS)])
    root = np.sqrt(np.bincount(node, minlength=count))
    rows, columns = node * VIRTUAL_NODES + kind, neighbour * VIRTUAL_NODES + kind
    shape = (count * VIRTUAL_NODES, count * VIRTUAL_NODES)
    return sp.csr_array((1 / (root[node] * root[neighbour]), (rows, columns)), shape=shape)
