"""Scores by Chebyshev polynomials of the Laplacian."""

from collections.abc import Iterator

import torch
from torch import Tensor

from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation
from asgat.spectral.graph_operator import GraphOperator
from asgat.spectral.shifted_laplacian import LambdaMax, ShiftedLaplacian
from asgat.spectral.spectral_operator import UNREACHABLE
from asgat.spectral.top_k import row_blocks, top_by_blocks


class ChebyshevOperator(GraphOperator):
    r"""Scores :math:`\psi = \sum_{i=0}^{R} c_i T_i(X)` with :math:`X = 2L/\lambda_{\max} - I`.

    The coefficients interpolate the filter (:class:`~asgat.spectral.chebyshev_interpolation.ChebyshevInterpolation`);
    the graph enters through :math:`T_0 = I`, :math:`T_1 = X`, :math:`T_{i+1} = 2 X T_i - T_{i-1}` alone. A node reaches
    the nodes within R hops.

    Rows are computed in blocks, O(R · E) time each, and the R + 1 matrices are kept where they fit ``cache_bytes``.
    Training holds O(heads · N · k · R) numbers and never an N×N gradient.

    Args:
        order, sampling_points, damping: of the interpolation.
        lambda_max: ``"bound"`` takes 2, valid for every graph and the same for all of them; ``"lanczos"`` estimates
            the largest eigenvalue (times 1.01).
        dtype, device: of the scores.
        cache_bytes: memory allowed for keeping all :math:`T_i(X)`.
        block_bytes: working memory allowed for one block of rows.
    """

    def __init__(
        self,
        graph: Graph,
        order: int = 15,
        sampling_points: int | None = None,
        lambda_max: LambdaMax = "bound",
        damping: bool = False,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        cache_bytes: int = 4 << 30,
        block_bytes: int = 1 << 30,
    ) -> None:
        self.graph, self.num_nodes, self.order = graph, graph.num_nodes, order
        self.cache_bytes, self.block_bytes = cache_bytes, block_bytes
        self.device, self.dtype = torch.device(device), dtype
        self.shifted = ShiftedLaplacian(graph, lambda_max, dtype, self.device)
        self.lambda_max = self.shifted.lambda_max
        self.interpolation = ChebyshevInterpolation(
            order, sampling_points, self.lambda_max, damping, dtype, self.device
        )
        self._fill_cache()

    def _fill_cache(self) -> None:
        self._cached: tuple[Tensor, Tensor] | None = None
        bytes_needed = (self.order + 1) * self.num_nodes**2 * self.dtype.itemsize
        if 0 < bytes_needed <= self.cache_bytes:
            basis = torch.empty(self.order + 1, self.num_nodes, self.num_nodes, dtype=self.dtype, device=self.device)
            unreached = torch.empty(basis.shape[1:], dtype=torch.bool, device=self.device)
            for rows in self._blocks(heads=0):
                basis[:, rows], unreached[rows] = self.shifted.rows(self.order, rows)
            self._cached = basis, unreached

    def _move(self) -> None:
        self.shifted = self.shifted.to(self.device, self.dtype)
        self.interpolation = self.interpolation.to(self.device, self.dtype)
        self._fill_cache()

    def coefficients(self, filter: SpectralFilter) -> Tensor:
        """The coefficients c [heads, R + 1], differentiable in the filter."""
        return self.interpolation.coefficients(filter)

    def scores(
        self, filter: SpectralFilter, rows: slice | None = None, include_unreachable: bool = False
    ) -> tuple[Tensor, Tensor]:
        basis, unreached = self._basis(rows or slice(0, self.num_nodes))
        score = torch.tensordot(self.coefficients(filter), basis, dims=1)
        if not include_unreachable:
            score = score.masked_fill(unreached, UNREACHABLE)
        return torch.arange(self.num_nodes, device=self.device).expand(score.shape[1:]), score

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        coefficients = self.coefficients(filter)

        def terms(rows: slice) -> tuple[Tensor, Tensor, Tensor]:
            basis, unreached = self._basis(rows)
            return torch.tensordot(coefficients, basis, dims=1), basis, unreached

        unreachable = 0.0 if include_unreachable else UNREACHABLE
        return top_by_blocks(self._blocks(coefficients.size(0)), terms, coefficients, k, unreachable)

    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        """See :meth:`GraphOperator.apply`; O(R · E · F) time, O(heads · N · F) memory."""
        return self.shifted.apply(self.coefficients(filter), signal)

    def filter_channels(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        return self.shifted.filter_channels(self.coefficients(filter), signal)

    def _basis(self, rows: slice) -> tuple[Tensor, Tensor]:
        """Rows of all T_i(X), [R + 1, B, N], and the pairs [B, N] that are not reached."""
        if self._cached is not None:
            return self._cached[0][:, rows], self._cached[1][rows]
        return self.shifted.rows(self.order, rows)

    def _blocks(self, heads: int) -> Iterator[slice]:
        """Ranges of rows whose matrices, scores and selection keys fit ``block_bytes``."""
        item = self.dtype.itemsize
        per_row = self.num_nodes * ((self.order + 4) * item + heads * (2 * item + 3 * 8))
        return row_blocks(self.num_nodes, per_row, self.block_bytes)
