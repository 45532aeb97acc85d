"""Some rows of a candidate table as an operator of their own: what one rank, or one batch, holds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Self
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.kernels import RaggedRows
from asgat.spectral.certificate import Certificate
from asgat.spectral.chebyshev import _interpolation
from asgat.tables.candidate_table import CandidateTable
from asgat.tables.table_operator import TableOperator


class ShardOperator(TableOperator):
    r"""The scores of a few rows of a graph, from their rows of the table alone; the graph itself is not held.

    What :meth:`top` selects is numbered within the rows that :meth:`exchange` gives for the rows held here: by default
    the nodes of the whole graph, after :meth:`renumbered` whatever the caller has gathered.

    Args:
        table: the rows.
        candidates: the k that can be asked for at most.
        sampling_points, lambda_max, damping, dtype, device: as for :class:`~asgat.spectral.ChebyshevOperator`, but with
            the largest eigenvalue as a number.
        exact_sums: as for :class:`~asgat.spectral.SpectralOperator`.
    """

    def __init__(
        self,
        table: CandidateTable,
        candidates: int,
        sampling_points: int | None = None,
        lambda_max: float = 2.0,
        damping: bool = False,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        exact_sums: bool = False,
    ) -> None:
        self.exact_sums = exact_sums
        self.order, self.candidates, self.lambda_max = table.order, candidates, lambda_max
        self.device, self.dtype = torch.device(device), dtype
        points, transform = _interpolation(self.order, sampling_points or self.order + 1, lambda_max, damping)
        self.points, self._transform = points.to(self.device), transform.to(self.device)
        self._interpolation = self.points.to(dtype), self._transform.to(dtype)
        self._gather: Callable[[Tensor], Tensor] | None = None
        self._share: Callable[[Tensor], Tensor] | None = None
        self._use(table)

    @classmethod
    def of(cls, operator: TableOperator) -> ShardOperator:
        """All rows of an operator: what batches are taken from. The table is shared."""
        shard = cls.__new__(cls)
        shard.order, shard.candidates, shard.lambda_max = operator.order, operator.candidates, operator.lambda_max
        shard.device, shard.dtype = operator.device, operator.dtype
        shard.points, shard._transform = operator.points, operator._transform
        shard._interpolation = operator._interpolation
        shard.exact_sums, shard._gather, shard._share = operator.exact_sums, None, None
        shard._use(operator.table)
        return shard

    def _use(self, table: CandidateTable) -> None:
        self.num_nodes = self._num_inputs = table.num_nodes
        self.table = table.to(self.device)
        self._rows, self._index = RaggedRows(self.table.indptr), self.table.index  # no second copy in int64
        self._selected = WeakKeyDictionary()
        self._magnitude = None

    def take(self, rows: Tensor) -> Self:
        """The operator of some of the rows, numbered as before."""
        taken = copy.copy(self)
        taken._use(self.table.take(rows))
        return taken

    def renumbered(
        self,
        number: Tensor,
        num_inputs: int,
        gather: Callable[[Tensor], Tensor] | None = None,
        share: Callable[[Tensor], Tensor] | None = None,
    ) -> Self:
        """The same rows with node u called ``number[u]``, a place in what ``gather`` makes of a layer's input.

        Args:
            number: [N], int32; anything for a node that is never selected.
            num_inputs: rows of the input a layer is given.
            gather: called with the rows a layer has, returns those the numbers count; None takes them as they are.
            share: does what :meth:`shared` says where the sums go over the rows of others too.
        """
        other = copy.copy(self)
        other.table = replace(self.table, index=number[self.table.index])
        other._index, other._num_inputs = other.table.index, num_inputs
        other._gather, other._share = gather, share
        other._selected = WeakKeyDictionary()
        for filter, last in self._selected.items():  # what was selected stays so
            other._selected[filter] = replace(last, index=other._nodes(last.position))
        return other

    @property
    def num_inputs(self) -> int:
        return self._num_inputs

    def exchange(self, x: Tensor) -> Tensor:
        return x if self._gather is None else self._gather(x)

    def shared(self, weight: Tensor) -> Tensor:
        return self._share(weight) if self.exact_sums and self._share is not None else super().shared(weight)

    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        raise AsgatError("A few rows of a table cannot filter a signal; use the operator of the whole graph.")

    def certify(self, filter: SpectralFilter, index: Tensor, score: Tensor, sample: int = 128) -> Certificate:
        if not self.table.exact:
            raise AsgatError("A truncated table is certified by rows of the whole graph, which a part does not hold.")
        return super().certify(filter, index, score)

    def widened(self, rows: Tensor, factor: int = 4) -> Self:
        raise AsgatError("A few rows of a table cannot be widened; build the table with more candidates.")

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Self:
        device, dtype = torch.device(device or self.device), dtype or self.dtype
        if device == self.device and dtype == self.dtype:
            return self
        moved = copy.copy(self)
        moved.device, moved.dtype = device, dtype
        moved.points, moved._transform = self.points.to(device), self._transform.to(device)
        moved._interpolation = moved.points.to(dtype), moved._transform.to(dtype)
        moved._use(self.table)
        moved._num_inputs = self._num_inputs
        return moved
