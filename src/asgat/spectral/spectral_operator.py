"""The interface of all spectral operators."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.spectral.certificate import Certificate
from asgat.spectral.rational import Fallback
from asgat.spectral.top_k import top_k

UNREACHABLE = float("-inf")


class SpectralOperator(ABC):
    r"""Scores :math:`\psi = U g(\Lambda) U^\top` of nodes of a fixed graph for any filter g.

    Built once for a graph and free of parameters; differentiable in the parameters of the filter. One that also filters
    signals is a :class:`~asgat.spectral.GraphOperator`. Operators do not change in use, caches aside, so
    ``copy.deepcopy`` returns the operator itself: a copied model shares it.

    Attributes:
        num_nodes: number of rows: all nodes of the graph, or those the operator was built for.
        lambda_max: upper end of the interval on which filters are evaluated.
        dtype, device: of the scores.
        capturable: whether an evaluation never waits for the host, so that CUDA can record and replay it.
        records_fallbacks: whether evaluations are recorded for :meth:`take_fallback`.
    """

    num_nodes: int
    lambda_max: float
    dtype: torch.dtype
    device: torch.device
    capturable: bool = True
    records_fallbacks: bool = False

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
    def _move(self) -> None:
        """Move all tensors to ``self.device`` and ``self.dtype``, without changing them in place."""

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Self:
        """The same operator on another device or in another precision."""
        device, dtype = torch.device(device or self.device), dtype or self.dtype
        if device == self.device and dtype == self.dtype:
            return self
        moved = copy.copy(self)
        moved.device, moved.dtype = device, dtype
        moved._move()
        return moved

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        r"""The k best-scored nodes of every row and head: index and score, both [heads, N, min(k, C)].

        Ties go to the lower index. Rows with fewer than k reachable nodes are padded with score :math:`-\infty`.
        Gradients reach the filter through the kept scores.
        """
        index, score = self.scores(filter, include_unreachable=include_unreachable)
        position = top_k(score, k)
        return index.expand_as(score).gather(-1, position), score.gather(-1, position)

    def top_each(
        self, filters: Sequence[SpectralFilter], k: int, include_unreachable: bool = False
    ) -> list[tuple[Tensor, Tensor]]:
        """What :meth:`top` gives for each of several filters; an operator may be faster with all of them at once."""
        return [self.top(filter, k, include_unreachable) for filter in filters]

    def select(self, filter: SpectralFilter, k: int | None, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        """What every row and head attends to: :meth:`top`, or with None all nodes that are scored, unsorted."""
        if k is not None:
            return self.top(filter, k, include_unreachable)
        index, score = self.scores(filter, include_unreachable=include_unreachable)
        return index.expand_as(score), score

    def certify(self, filter: SpectralFilter, index: Tensor, score: Tensor) -> Certificate:
        """Bounds on the error of the rows :meth:`top` returned against the best of all nodes: 0 if all are scored."""
        rows = score.shape[:-1]
        return Certificate(score.new_zeros(rows), torch.ones(rows, dtype=torch.bool, device=score.device))

    def take_fallback(self) -> Fallback | None:
        """Heads that could not be evaluated as requested since the last call; only ARMA operators have any."""
        return None

    @property
    def graph_size(self) -> int:
        """Number of nodes of the graph, where the operator has only some of their rows."""
        return self.num_nodes

    def exchange(self, x: Tensor) -> Tensor:
        """The rows that the indices of :meth:`top` refer to, from the rows a layer has."""
        return x

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_nodes={self.num_nodes})"


def check_k(k: int | None) -> None:
    if k is not None and k < 1:
        raise AsgatError(f"k must be at least 1, but is {k}; None keeps every reachable node.")
