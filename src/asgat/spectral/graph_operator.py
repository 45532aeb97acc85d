"""Operators of a whole graph."""

from functools import cached_property
from typing import Self

import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.spectral.signal_operator import SignalOperator


class GraphOperator(SignalOperator):
    r"""A :class:`SpectralOperator` of a whole graph: it also applies :math:`g(L)` to signals.

    A new one implements ``scores``, ``apply`` and ``_move``; the conformance tests compare it with dense mathematics.

    Attributes:
        graph: what it was built for.
    """

    graph: Graph

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Self:
        moved = super().to(device, dtype)
        if moved is not self:
            moved.__dict__.pop("_means", None)
        return moved

    def neighbour_mean(self, signal: Tensor) -> Tensor:
        rows = signal.size(-2)
        if rows not in self._means:
            mean = self.graph.mean_adjacency.tocoo()
            row, col = mean.coords
            col = col // 2 if 2 * rows == self.num_nodes else col
            matrix = sp.csr_array((mean.data, (row, col)), shape=(self.num_nodes, rows))
            self._means[rows] = SparseFeatures.from_dense(matrix, self.device, self.dtype)
        return self._means[rows].matmul(signal)

    @cached_property
    def _means(self) -> dict[int, SparseFeatures]:
        return {}

    def dense(self, filter: SpectralFilter) -> Tensor:
        """All scores [heads, N, N]. Costly: N² numbers per head; meant for tests and small graphs."""
        index, score = self.scores(filter, include_unreachable=True)
        full = score.new_zeros(score.size(0), self.num_nodes, self.num_nodes)
        return full.scatter_add(-1, index.expand_as(score), score)  # padding adds 0
