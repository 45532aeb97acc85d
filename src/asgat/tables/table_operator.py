"""Scores by Chebyshev polynomials, for a few candidates per node instead of all nodes."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal, Self
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.kernels import RaggedRows, rescore, select_top
from asgat.spectral.certificate import Certificate, SampledCertificate, certify, certify_rows
from asgat.spectral.chebyshev import ChebyshevOperator, LambdaMax
from asgat.spectral.spectral_operator import UNREACHABLE
from asgat.tables.candidate_table import CandidateTable, Progress
from asgat.tables.exact_builder import build_exact, exact_rows
from asgat.tables.truncated_builder import build_truncated

Builder = Literal["exact", "truncated"]


class TableOperator(ChebyshevOperator):
    r"""The scores of :class:`ChebyshevOperator` on a :class:`CandidateTable`: linear in the number of nodes.

    The graph does not change while a filter is learned, only the coefficients do, :math:`\psi_{vu} = \sum_i c_i
    T_i(X)_{vu}`. So the values :math:`T_i(X)_{vu}` are computed once, for the pairs that can matter, and every
    evaluation is a product with the coefficients, O(N · |C| · R · heads), with top-k over the |C| candidates of a row.
    :meth:`certify` says how far that can be from top-k over all nodes.

    Args:
        graph: the graph.
        order, sampling_points, lambda_max, damping, dtype, device: as for :class:`ChebyshevOperator`.
        candidates: entries kept of every order in every row; at least k, and more for a tighter certificate.
        cap: neighbours kept in every row at most.
        storage: precision of the stored values; its rounding is part of the certificate.
        builder: ``"exact"``, O(R · E) time per node and a proven certificate; ``"truncated"``, a cost per node that
            does not depend on the size of the graph, certified by a sample of rows. ``candidates`` is then their number
            in all.
        progress: called with the rows built and the rows in all.
    """

    table: CandidateTable

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
    ) -> None:
        super().__init__(graph, order, sampling_points, lambda_max, damping, dtype, device, cache_bytes=0)
        if builder not in ("exact", "truncated"):
            raise AsgatError(f"builder must be exact or truncated, not {builder!r}.")
        self.candidates, self.cap = candidates, cap
        if builder == "exact":
            table = build_exact(
                self._shifted, order, candidates, cap, dtype=storage, device=self.device, progress=progress
            )
        else:
            table = build_truncated(self._shifted, order, candidates, dtype=storage, progress=progress)
        self._use(table)

    def _use(self, table: CandidateTable) -> None:
        self.table = table.to(self.device)
        self._rows, self._index = RaggedRows(self.table.indptr), self.table.index.long()
        self._selected: WeakKeyDictionary[SpectralFilter, _Selection] = WeakKeyDictionary()
        self._magnitude: Tensor | None = None

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Self:
        device, dtype = torch.device(device or self.device), dtype or self.dtype
        if device == self.device and dtype == self.dtype:
            return self
        moved = copy.copy(self)
        moved.device, moved.dtype = device, dtype
        moved._prepare()
        moved._use(self.table)
        return moved

    def scores(
        self, filter: SpectralFilter, rows: slice | None = None, include_unreachable: bool = False
    ) -> tuple[Tensor, Tensor]:
        """See :meth:`SpectralOperator.scores`; rows are padded to the longest with score -∞, or 0 on request."""
        first, last, _ = (rows or slice(None)).indices(self.num_nodes)
        size = self.table.indptr[first : last + 1].diff()
        column = torch.arange(int(size.max()) if size.numel() else 0, device=self.device)
        there = column < size.unsqueeze(1)
        entry = (self.table.indptr[first:last].unsqueeze(1) + column).where(there, 0)
        value = self.table.value[entry].to(self.dtype)
        score = torch.einsum("hp,bcp->hbc", self.coefficients(filter), value)
        filler = 0.0 if include_unreachable else UNREACHABLE
        return self.table.index[entry].long(), score.masked_fill(~there, filler)

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        if include_unreachable:
            raise AsgatError("include_unreachable needs every pair, which no table holds; use ChebyshevOperator.")
        if k > self.candidates:
            raise AsgatError(f"k = {k} needs at least as many candidates, but there are {self.candidates}.")
        coefficients = self.coefficients(filter)
        if not self.exact_sums:
            index, _, score = self._select(filter, coefficients, k)
            return index, score
        index, position, score = self._select(filter, coefficients.detach(), k)
        return index, rescore(self.table.value, self.shared(coefficients), position, score.double())

    @property
    def stacks_heads(self) -> bool:
        return True

    def _select(self, filter: SpectralFilter, coefficients: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """Nodes, entries and scores of what the coefficients of a filter select."""
        value = self.table.value
        if coefficients.is_cuda or torch.compiler.is_compiling():  # to compare coefficients would wait for the device
            position, score = select_top(value, self._rows, coefficients, k)
            return self._nodes(position), position, score
        last = self._selected.get(filter)
        hint = None
        if last is not None and last.position.size(-1) == k:
            if torch.equal(last.coefficients, coefficients):  # an epoch trains with the filters the last was judged by
                return last.index, last.position, rescore(value, coefficients, last.position, last.score)
            hint = last.position
        position, score = select_top(value, self._rows, coefficients, k, hint)
        index = self._nodes(position)
        self._selected[filter] = _Selection(coefficients.detach(), index, position, score.detach())
        return index, position, score

    def _nodes(self, position: Tensor) -> Tensor:
        """What the selected entries stand for; a filler, -1, becomes the last entry's node, and weighs nothing."""
        return self._index[position]

    def certify(self, filter: SpectralFilter, index: Tensor, score: Tensor, sample: int = 128) -> Certificate:
        """Bounds on the error of the rows :meth:`top` selected.

        Proven for an exact table, O(heads · N · R). For a truncated one ``sample`` rows are computed exactly, O(R · E)
        each, and the rest is judged by them.
        """
        coefficients = self.coefficients(filter).detach()
        table = self.table
        if table.exact:
            if self._magnitude is None:
                self._magnitude = _largest_magnitudes(table)
            worst = score.amin(dim=-1)
            return certify(
                coefficients,
                worst,
                table.above,
                table.below,
                self._magnitude,
                table.complete,
                table.rounding,
                table.underflow,
            )
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randperm(self.num_nodes, generator=generator)[:sample].sort().values
        at_once = max(16, (1 << 28) // (8 * (self.order + 1) * max(self.num_nodes, 1)))
        errors = []
        for rows in torch.split(drawn, at_once):  # true rows are as long as the graph: few at a time
            truth = torch.from_numpy(exact_rows(self._shifted, self.order, rows.numpy()))
            kept = index[:, rows.to(index.device)].cpu(), score.detach()[:, rows.to(index.device)].cpu()
            errors.append(certify_rows(coefficients.cpu(), truth, *kept))
        error = torch.cat(errors, dim=1)
        return SampledCertificate(bound=error, exact=error <= 1e-6, num_nodes=self.num_nodes)

    def widened(self, rows: Tensor, factor: int = 4) -> Self:
        """The same operator with ``factor`` times the candidates in the given rows."""
        if not self.table.exact:
            raise AsgatError("Only an exact table can be widened; build a truncated one with more candidates.")
        wider = build_exact(
            self._shifted, self.order, factor * self.candidates, factor * self.cap, rows.cpu().numpy(),
            self.table.value.dtype, self.device,
        )  # fmt: skip
        widened = copy.copy(self)
        widened.candidates, widened.cap = factor * self.candidates, factor * self.cap
        widened._use(self.table.replace_rows(rows, wider))
        return widened

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.table})"


@dataclass(frozen=True, eq=False)
class _Selection:
    """What a filter last selected, on the CPU: the same again costs nothing, something similar little."""

    coefficients: Tensor
    index: Tensor
    position: Tensor
    score: Tensor


def _largest_magnitudes(table: CandidateTable) -> Tensor:
    """The largest stored magnitude of every order in every row, [N, R + 1]; one order at a time, to copy little."""
    owner = torch.arange(table.num_nodes, device=table.device).repeat_interleave(table.indptr.diff())
    largest = torch.zeros(table.num_nodes, table.order + 1, dtype=torch.float32, device=table.device)
    for i in range(table.order + 1):
        largest[:, i].scatter_reduce_(0, owner, table.value[:, i].abs().float(), "amax")
    return largest
