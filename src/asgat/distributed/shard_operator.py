"""The operator of one rank's nodes: attention, filters and neighbour means, with the rows of other ranks they need."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.distributed.exchange import Exchange
from asgat.distributed.process_group import Group
from asgat.filters.spectral_filter import SpectralFilter
from asgat.kernels.sparse_features import SparseFeatures
from asgat.spectral.certificate import Certificate
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation
from asgat.spectral.shifted_laplacian import CSR, csr_arrays, filter_by_each, filter_slices
from asgat.spectral.signal_operator import SignalOperator
from asgat.tables import CandidateTable, RowOperator


@dataclass(frozen=True, eq=False)
class AttentionRows:
    """A rank's rows of the table, their candidates numbered as ``exchange`` returns rows."""

    rows: RowOperator
    exchange: Exchange

    @classmethod
    def of(cls, rows: RowOperator, exchange: Exchange) -> Self:
        return cls(rows.renumbered(exchange.numbers(), exchange), exchange)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        return replace(self, rows=self.rows.to(device, dtype))


@dataclass(frozen=True, eq=False)
class FilterRows:
    """A rank's rows of X in CSR form, columns in the order of the graph's, numbered as ``boundary`` returns rows."""

    arrays: CSR
    boundary: Exchange

    @classmethod
    def of(cls, rows: sp.csr_array, boundary: Exchange, dtype: torch.dtype) -> Self:
        """The order of a row's entries stays: a row's sum is, to the last bit, that of a single process."""
        indptr, column, value = csr_arrays(rows, boundary.group.device, dtype)
        return cls((indptr, boundary.numbers()[column].long(), value), boundary)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        indptr, index, value = (part.to(device) for part in self.arrays)
        return replace(self, arrays=(indptr, index, value.to(dtype)))


@dataclass(frozen=True, eq=False)
class MeanRows:
    """A rank's rows of the mean over neighbours, columns numbered as ``exchange`` returns rows."""

    matrix: SparseFeatures
    exchange: Exchange

    @classmethod
    def of(cls, rows: sp.csr_array, exchange: Exchange, dtype: torch.dtype) -> Self:
        index = exchange.numbers().cpu().numpy()[rows.indices]
        shape = rows.shape[0], exchange.own + exchange.num_needed
        matrix = sp.csr_array((rows.data, index, rows.indptr), shape=shape)
        return cls(SparseFeatures.from_dense(matrix, exchange.group.device, dtype), exchange)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        return replace(self, matrix=self.matrix.to(device, dtype))


class ShardOperator(SignalOperator):
    r"""What layers need of a graph, for the rows of one rank; every method is called by all ranks, in the same order.

    Attention is computed from the rank's rows of the table; filters by a recurrence on its rows of X, which before
    every order gets the rows at the boundary from their owners; means from its rows of :math:`D^{-1} A`. A part that
    the model does not use is None.

    Args:
        bounds: where the rows of every rank begin and end: nodes, or their copies in a double cover.
        interpolation: gives coefficients; its dtype and device are the operator's.

    Attributes:
        attention, filters, means: the rank's rows of the table, of X and of the mean over neighbours, whose columns
            are nodes, not copies; set by who builds the operator.
    """

    capturable = False

    def __init__(
        self,
        group: Group,
        bounds: npt.NDArray[np.int64],
        interpolation: ChebyshevInterpolation,
    ) -> None:
        self.group, self.interpolation = group, interpolation
        self.num_nodes, self._graph_size = int(np.diff(bounds)[group.rank]), int(bounds[-1])
        self.attention: AttentionRows | None = None
        self.filters: FilterRows | None = None
        self.means: MeanRows | None = None
        self.dtype, self.device = interpolation.dtype, torch.device(interpolation.device)
        self.lambda_max = interpolation.lambda_max

    def _move(self) -> None:
        self.interpolation = self.interpolation.to(self.device, self.dtype)
        where = self.device, self.dtype
        self.attention = self.attention and self.attention.to(*where)
        self.filters = self.filters and self.filters.to(*where)
        self.means = self.means and self.means.to(*where)

    @property
    def graph_size(self) -> int:
        return self._graph_size

    @property
    def table(self) -> CandidateTable | None:
        return None if self.attention is None else self.attention.rows.table

    @property
    def boundary_rows(self) -> int:
        """Rows of neighbours that other ranks own."""
        exchanges = [self.filters.boundary] if self.filters else [self.means.exchange] if self.means else []
        return sum(exchange.num_needed for exchange in exchanges)

    def _rows(self) -> RowOperator:
        assert self.attention is not None, "this model has no attention"
        return self.attention.rows

    def scores(
        self, filter: SpectralFilter, rows: slice | None = None, include_unreachable: bool = False
    ) -> tuple[Tensor, Tensor]:
        return self._rows().scores(filter, rows, include_unreachable)

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        return self._rows().top(filter, k, include_unreachable)

    def certify(self, filter: SpectralFilter, index: Tensor, score: Tensor) -> Certificate:
        return self._rows().certify(filter, index, score)

    def exchange(self, x: Tensor) -> Tensor:
        return self._rows().exchange(x)

    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        assert self.filters is not None, "this model has no filters"
        if signal.dim() == 3:
            heads, rows, width = signal.shape
            filtered = self.filter_channels(filter, signal.transpose(0, 1).flatten(1))
            return filtered.view(rows, heads, width).transpose(0, 1)
        return filter_by_each(
            self.filters.arrays, self.interpolation.coefficients(filter), signal, self.filters.boundary
        )

    def filter_channels(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        assert self.filters is not None, "this model has no filters"
        return filter_slices(
            self.filters.arrays, self.interpolation.coefficients(filter), signal, self.filters.boundary
        )

    def neighbour_mean(self, signal: Tensor) -> Tensor:
        """See :meth:`SignalOperator.neighbour_mean`; signals are given per node."""
        assert self.means is not None, "this model has no neighbour means"
        return self.means.matrix.matmul(self.means.exchange(signal))
