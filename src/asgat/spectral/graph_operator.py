"""Operators of a whole graph, which can filter signals."""

from abc import abstractmethod

from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.spectral.spectral_operator import SpectralOperator


class GraphOperator(SpectralOperator):
    r"""A :class:`SpectralOperator` of a whole graph: it also applies :math:`g(L)` to signals.

    A new one implements ``scores``, ``apply`` and ``_move``; the conformance tests compare it with dense mathematics.
    """

    @abstractmethod
    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        r"""Filtered signals :math:`g(L) x`, [heads, N, F], without an N×N matrix if possible.

        Args:
            filter: the response g.
            signal: [N, F], the same for all heads, or [heads, N, F], one for each.
        """

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
