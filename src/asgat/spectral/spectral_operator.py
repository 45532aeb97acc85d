"""The one interface of all spectral operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.spectral.certificate import Certificate
from asgat.spectral.topk import top_k

UNREACHABLE = float("-inf")


class SpectralOperator(ABC):
    r"""Scores :math:`\psi = U g(\Lambda) U^\top` of a fixed graph for any filter g.

    Built once for a graph and free of parameters; differentiable in the parameters of the filter it is given. What
    reads the scores (attention, layer, model) never learns which operator gave them.

    A new operator says what :meth:`scores` and :meth:`apply` return; the conformance tests hold both against dense
    mathematics, values and gradients.

    Attributes:
        num_nodes: N.
        lambda_max: upper end of the interval on which filters are evaluated.
        dtype: floating point type of the scores.
        device: where they are computed.
        capturable: whether an evaluation waits for nothing on the host, so that CUDA can record and replay it.
        exact_sums: whether layers compute in double precision with weights of their own precision, see :meth:`shared`.
    """

    num_nodes: int
    lambda_max: float
    dtype: torch.dtype
    device: torch.device
    capturable: bool = True
    exact_sums: bool = False

    @abstractmethod
    def scores(
        self, filter: SpectralFilter, rows: slice | None = None, include_unreachable: bool = False
    ) -> tuple[Tensor, Tensor]:
        r"""The scores of the node pairs this operator holds.

        Args:
            filter: the response g.
            rows: a range of nodes v; all of them by default.
            include_unreachable: give pairs that are not connected their score (0) instead of :math:`-\infty`.

        Returns:
            index [B, C], the nodes u that row v holds a score for, and score [heads, B, C].
        """

    @abstractmethod
    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        r"""Filtered signals :math:`g(L) x`, [heads, N, F], without any N×N matrix if possible.

        Args:
            filter: the response g.
            signal: [N, F], the same for all heads, or [heads, N, F], one for each.
        """

    @abstractmethod
    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Self:
        """The same operator on another device or in another precision."""

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        r"""The k best-scored nodes of every row and head: index and score, both [heads, N, min(k, C)].

        Ties go to the lower index. Rows with fewer than k reachable nodes are filled up with score :math:`-\infty`.
        Gradients reach the filter through the kept scores.
        """
        index, score = self.scores(filter, include_unreachable=include_unreachable)
        position = top_k(score, k)
        return index.expand_as(score).gather(-1, position), score.gather(-1, position)

    def certify(self, filter: SpectralFilter, index: Tensor, score: Tensor) -> Certificate:
        """How far the rows :meth:`top` gave can be from the best of all nodes: not at all, where all are scored."""
        rows = score.shape[:-1]
        return Certificate(score.new_zeros(rows), torch.ones(rows, dtype=torch.bool, device=score.device))

    @property
    def stacks_heads(self) -> bool:
        """Whether the heads of several runs can be computed in one call.

        On the CPU that needs results that are the same to the last bit whatever the other heads are, which products
        with all N nodes are not.
        """
        return self.device.type != "cpu"

    @property
    def num_inputs(self) -> int:
        """Rows of features a layer on this operator is given: one per node, its own nodes first."""
        return self.num_nodes

    def exchange(self, x: Tensor) -> Tensor:
        """The rows that the nodes of :meth:`top` count, from a layer's rows: these themselves, where all are held."""
        return x

    def shared(self, weight: Tensor) -> Tensor:
        """A weight that all rows share, as a layer on this operator is to use it.

        With ``exact_sums`` that is in double precision. What a layer makes of the rows, and the sums over rows that
        are the gradients, then differ in their last bits of a double where rows come in another order, or in parts; the
        gradient is rounded to the weight's precision once, at the end, and comes out the same.
        """
        return weight.double() if self.exact_sums else weight

    def dense(self, filter: SpectralFilter) -> Tensor:
        """All scores [heads, N, N]. Costly: N² numbers per head; meant for tests and small graphs."""
        index, score = self.scores(filter, include_unreachable=True)
        full = score.new_zeros(score.size(0), self.num_nodes, self.num_nodes)
        return full.scatter_add(-1, index.expand_as(score), score)  # fillers of short rows add 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_nodes={self.num_nodes})"


def check_k(k: int | None) -> None:
    if k is not None and k < 1:
        raise AsgatError(f"k must be at least 1, but is {k}; None keeps every reachable node.")
