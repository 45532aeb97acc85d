"""The network of Chebyshev filters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.nn import ChebConv

from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import Edges, propagation


class ChebNet(nn.Module):
    r"""Polynomial filters of `"Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering"
    <https://arxiv.org/abs/1606.09375>`_, with ReLU and dropout.

    .. math:: H' = \sum_{k=0}^{order} T_k(\hat L) H W_k + b, \qquad \hat L = L - I

    which is :math:`2 L / \lambda_{max} - I` with the bound :math:`\lambda_{max} = 2`. The products :math:`H W_k` come
    first and are summed by Clenshaw's recurrence, so that only ``order`` products with ``out`` columns are needed.

    Args:
        in_channels: number of input features.
        hidden_channels: size of each hidden layer.
        out_channels: number of classes.
        num_layers: number of layers.
        dropout: on the input of every layer.
        order: degree of the polynomials, PyG's K - 1.

    Cost per layer: O(order · (N · in · out + E · out)).
    """

    @staticmethod
    def matrix(graph: Graph) -> sp.csr_array:
        return -graph.normalised_adjacency

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        order: int = 2,
    ) -> None:
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(ChebConv(a, b, K=order + 1) for a, b in pairwise(sizes))
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | SparseFeatures, edge_index: Edges, edge_weight: Tensor | None = None) -> Tensor:
        step = propagation(x, edge_index, edge_weight, self.matrix)
        for layer in self.layers[:-1]:
            x = torch.relu(self._filter(layer, x, step))
        return self._filter(self.layers[-1], x, step)

    def _filter(self, layer: Any, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
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
