"""The network of Chebyshev filters."""

from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import LayerStack
from asgat.nn.pyg import ChebConv


class ChebNet(LayerStack):
    r"""Polynomial filters of `"Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering"
    <https://arxiv.org/abs/1606.09375>`_, with ReLU and dropout.

    .. math:: H' = \sum_{k=0}^{order} T_k(\hat L) H W_k + b, \qquad \hat L = L - I

    which is :math:`2 L / \lambda_{max} - I` with the bound :math:`\lambda_{max} = 2`. The products :math:`H W_k` are
    computed first and summed by Clenshaw's recurrence, so only ``order`` products with ``out`` columns are needed.

    Arguments as in :class:`~asgat.nn.baselines.propagation.LayerStack`, and ``order``, the degree of the polynomials,
    PyG's K - 1. Cost per layer: O(order · (N · in · out + E · out)).
    """

    @staticmethod
    def matrix(graph: Graph) -> sp.csr_array:
        return -graph.normalised_adjacency

    @staticmethod
    def make_layer(in_channels: int, out_channels: int, order: int = 2) -> ChebConv:
        return ChebConv(in_channels, out_channels, K=order + 1)

    def apply_layer(self, layer: Any, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        x = dropout(x, self.dropout, self.training)
        terms = linear(x, torch.cat([lin.weight for lin in layer.lins])).chunk(len(layer.lins), dim=1)
        out: Tensor = chebyshev_sum(step, terms) + layer.bias
        return out


def chebyshev_sum(matrix: SparseFeatures, terms: tuple[Tensor, ...]) -> Tensor:
    r""":math:`\sum_k T_k(M) \, terms_k` by Clenshaw's recurrence, one product less than there are terms."""
    last, before = terms[-1], torch.zeros_like(terms[-1])
    if len(terms) == 1:
        return last
    for term in terms[-2:0:-1]:
        last, before = term + 2.0 * matrix.matmul(last) - before, last
    return terms[0] + matrix.matmul(last) - before
