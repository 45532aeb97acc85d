"""Operators of a whole graph, which can filter signals."""

from abc import abstractmethod
from functools import cached_property
from typing import Self

import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.filter_stack import FilterStack
from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.spectral.spectral_operator import SpectralOperator


class GraphOperator(SpectralOperator):
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

    @abstractmethod
    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        r"""Filtered signals :math:`g(L) x`, [heads, N, F], without an N×N matrix if possible.

        Args:
            filter: the response g.
            signal: [N, F], the same for all heads, or [heads, N, F], one for each.
        """

    def filter_channels(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        """Signals [N, F] with every head's response applied to its slice of the F channels; [R, N, F] of stacked runs.

        F is a multiple of the number of heads.
        """
        if isinstance(filter, FilterStack):
            runs = zip(filter.each(), signal.unbind(), strict=True)
            return torch.stack([self.filter_channels(single, own) for single, own in runs])
        filtered = self.apply(filter, signal.view(signal.size(0), filter.heads, -1).transpose(0, 1))
        return filtered.transpose(0, 1).reshape(signal.shape)

    def neighbour_mean(self, signal: Tensor) -> Tensor:
        """The weighted mean of the neighbours' rows of a signal [N, F], or [R, N, F]; 0 for a node without any.

        On a double cover, signals may be given per node instead, [N / 2, F]: both copies of a node then have its row.
        """
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


def as_graph_operator(operator: SpectralOperator) -> GraphOperator:
    """The operator itself; an error if it cannot filter signals."""
    if not isinstance(operator, GraphOperator):
        raise AsgatError(
            f"{type(operator).__name__} holds only some rows of a graph and cannot filter a signal; use an operator of "
            "the whole graph, such as TableOperator."
        )
    return operator
