"""Scores by Chebyshev polynomials, for a few candidates per node instead of all nodes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.spectral.certificate import Certificate, SampledCertificate, certify_rows
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation
from asgat.spectral.graph_operator import GraphOperator
from asgat.spectral.rational import polynomial_bound
from asgat.spectral.shifted_laplacian import LambdaMax, ShiftedLaplacian
from asgat.tables.candidate_table import CandidateTable, Progress
from asgat.tables.exact_builder import exact_rows
from asgat.tables.row_operator import RowOperator
from asgat.tables.table_cache import TableCache, TableRecipe, cached_table
from asgat.tables.table_settings import Builder, TableSettings


class TableOperator(GraphOperator):
    r"""The scores of :class:`~asgat.spectral.ChebyshevOperator` on a :class:`CandidateTable`: linear in the nodes.

    The graph does not change while a filter is learned, only the coefficients do, :math:`\psi_{vu} = \sum_i c_i
    T_i(X)_{vu}`. So the values :math:`T_i(X)_{vu}` are computed once, for the pairs that can matter, and every
    evaluation is a product with the coefficients, O(N · C · R · heads), with top-k over the C candidates of a row.
    :meth:`certify` bounds the difference from top-k over all nodes.

    Args:
        order, sampling_points, lambda_max, damping, dtype, device: as for :class:`~asgat.spectral.ChebyshevOperator`.
        candidates: entries kept of every order in every row; at least k, and more for a tighter certificate.
        cap: largest number of neighbours kept in a row.
        storage: precision of the stored values; its rounding is part of the certificate.
        builder: ``"exact"``, O(R · E) time per node and a proven certificate; ``"truncated"``, a cost per node that
            does not depend on the size of the graph, certified by a sample of rows. ``candidates`` is then the total
            number of entries of a row.
        progress: called with the number of rows built and the number of all rows.
        neighbourhood: nodes the truncated builder looks at for a row, at least ``candidates``.
        caches: where the table is looked for, and stored in the last of them; by default it is built in memory.

    Attributes:
        rows: the operator of the table's rows, which scores and selects.
        shifted: the graph's matrix X, which filters signals.
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
        candidates: int = 32,
        cap: int = 256,
        storage: torch.dtype = torch.float32,
        builder: Builder = "exact",
        progress: Progress | None = None,
        neighbourhood: int = 512,
        caches: Sequence[TableCache] = (),
    ) -> None:
        precision = str(storage).removeprefix("torch.")
        settings = TableSettings(order, candidates, cap, precision, builder, neighbourhood)
        self.graph, self.num_nodes, self.order = graph, graph.num_nodes, order
        self.device, self.dtype = torch.device(device), dtype
        self.shifted = ShiftedLaplacian(graph, lambda_max, dtype, self.device)
        self.lambda_max = self.shifted.lambda_max
        if caches:
            sizes = graph.digest, graph.num_nodes, graph.num_entries
            recipe = TableRecipe(*sizes, settings, self.lambda_max, self.device.type)
            table = cached_table(recipe, lambda: self.shifted.matrix, caches, progress)
        else:
            table = settings.build(self.shifted.matrix, None, self.device, progress)
        interpolation = ChebyshevInterpolation(order, sampling_points, self.lambda_max, damping, dtype, self.device)
        self.rows = RowOperator(table, candidates, interpolation, wide_index=True)

    def _move(self) -> None:
        self.shifted = self.shifted.to(self.device, self.dtype)
        self.rows = self.rows.to(self.device, self.dtype)

    @property
    def table(self) -> CandidateTable:
        return self.rows.table

    @property
    def candidates(self) -> int:
        return self.rows.candidates

    def coefficients(self, filter: SpectralFilter) -> Tensor:
        """The coefficients c [heads, R + 1], differentiable in the filter."""
        return self.rows.coefficients(filter)

    def scores(
        self, filter: SpectralFilter, rows: slice | None = None, include_unreachable: bool = False
    ) -> tuple[Tensor, Tensor]:
        return self.rows.scores(filter, rows, include_unreachable)

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        return self.rows.top(filter, k, include_unreachable)

    def top_each(
        self, filters: Sequence[SpectralFilter], k: int, include_unreachable: bool = False
    ) -> list[tuple[Tensor, Tensor]]:
        return self.rows.top_each(filters, k, include_unreachable)

    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        """See :meth:`GraphOperator.apply`; by products with the graph's matrix, whatever the candidates."""
        return self.shifted.apply(self.coefficients(filter), signal)

    def filter_channels(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        return self.shifted.filter_channels(self.coefficients(filter), signal)

    def certify(self, filter: SpectralFilter, index: Tensor, score: Tensor, sample: int = 128) -> Certificate:
        """Bounds on the error of the rows :meth:`top` selected.

        Proven for an exact table, O(heads · N · R). For a truncated one ``sample`` rows are computed exactly, O(R · E)
        each, and confidence limits for all rows follow from their errors.
        """
        if self.table.exact:
            return self.rows.certify(filter, index, score)
        coefficients = self.coefficients(filter).detach().cpu()
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randperm(self.num_nodes, generator=generator)[:sample].sort().values
        at_once = max(16, (1 << 28) // (8 * (self.order + 1) * max(self.num_nodes, 1)))
        errors = []
        for rows in torch.split(drawn, at_once):  # a true row has N entries per order: few rows at a time
            truth = torch.from_numpy(exact_rows(self.shifted.matrix, self.order, rows.numpy()))
            kept = index[:, rows.to(index.device)].cpu(), score.detach()[:, rows.to(index.device)].cpu()
            errors.append(certify_rows(coefficients, truth, *kept))
        error = torch.cat(errors, dim=1)
        # True scores lie within the range of the polynomial, kept ones are known: an error is at most their sum.
        kept_size = float(score.detach().masked_fill(score.isneginf(), 0.0).abs().amax()) if score.numel() else 0.0
        largest = float(polynomial_bound(coefficients).amax()) + kept_size
        return SampledCertificate(error, error <= 1e-6, self.num_nodes, largest)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.table})"
