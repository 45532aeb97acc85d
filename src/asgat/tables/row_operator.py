"""Scores on rows of a candidate table: all of them, or those that one rank holds."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.kernels import RaggedRows, nodes_at, rescore, select_top
from asgat.spectral.certificate import Certificate, certify
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation
from asgat.spectral.spectral_operator import UNREACHABLE, SpectralOperator
from asgat.tables.candidate_table import ROUNDING, CandidateTable
from asgat.tables.held_selections import Key, Selection, held_selection, hold_selection


class RowOperator(SpectralOperator):
    r"""Scores :math:`\psi_{vu} = \sum_i c_i T_i(X)_{vu}` of some rows v, from their rows of the table alone.

    The indices of :meth:`top` refer to what :meth:`exchange` returns: by default the nodes of the whole graph, after
    :meth:`renumbered` those the caller gathers. On the CPU the last selection of every filter is remembered: the same
    coefficients again cost nothing, similar ones little.

    Args:
        table: the rows.
        candidates: the largest k that can be selected.
        interpolation: gives the coefficients, of the table's order; its dtype and device are the operator's.
        wide_index: on CUDA hold a copy of the candidates in int64, which is faster to select from.
    """

    def __init__(
        self,
        table: CandidateTable,
        candidates: int,
        interpolation: ChebyshevInterpolation,
        wide_index: bool = False,
    ) -> None:
        self.interpolation, self.dtype, self.lambda_max = interpolation, interpolation.dtype, interpolation.lambda_max
        self.device = torch.device(interpolation.device)
        self.candidates, self._wide_index = candidates, wide_index
        self._gather: Callable[[Tensor], Tensor] | None = None
        self._hold(table.to(self.device))

    def _hold(self, table: CandidateTable) -> None:
        self.table, self.num_nodes = table, table.num_nodes
        wide = self._wide_index and table.device.type == "cuda"
        self._rows, self._nodes = RaggedRows(table.indptr), table.index.long() if wide else table.index
        self._selected: WeakKeyDictionary[SpectralFilter, _Selection] = WeakKeyDictionary()
        self._magnitude: Tensor | None = None

    def _move(self) -> None:
        self.interpolation = self.interpolation.to(self.device, self.dtype)
        self._hold(self.table.to(self.device))

    def renumbered(
        self,
        number: Tensor,
        gather: Callable[[Tensor], Tensor],
    ) -> Self:
        """The same rows with node u called ``number[u]``, a row of what ``gather`` returns for a layer's input.

        Args:
            number: [N], int32; any value for a node that is never selected.
            gather: called with the rows a layer has, one for each of this operator's, returns the rows the numbers
                refer to.
        """
        other = copy.copy(self)
        other._gather = gather
        other._hold(replace(self.table, index=number[self.table.index]))
        return other

    def exchange(self, x: Tensor) -> Tensor:
        return x if self._gather is None else self._gather(x)

    def coefficients(self, filter: SpectralFilter) -> Tensor:
        """The coefficients c [heads, R + 1], differentiable in the filter."""
        return self.interpolation.coefficients(filter)

    def scores(
        self, filter: SpectralFilter, rows: slice | None = None, include_unreachable: bool = False
    ) -> tuple[Tensor, Tensor]:
        """See :meth:`SpectralOperator.scores`; rows are padded to the longest with score -∞, or 0 on request."""
        table, coefficients = self.table, self.coefficients(filter)
        first, last, _ = (rows or slice(None)).indices(table.num_nodes)
        size = table.indptr[first : last + 1].diff()
        column = torch.arange(int(size.max()) if size.numel() else 0, device=table.device)
        there = column < size.unsqueeze(1)
        entry = (table.indptr[first:last].unsqueeze(1) + column).where(there, 0)
        score = torch.einsum("hp,bcp->hbc", coefficients, table.value[entry].to(coefficients.dtype))
        return table.index[entry].long(), score.masked_fill(~there, 0.0 if include_unreachable else UNREACHABLE)

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        (found,) = self.top_each([filter], k, include_unreachable)
        return found

    def top_each(
        self, filters: Sequence[SpectralFilter], k: int, include_unreachable: bool = False
    ) -> list[tuple[Tensor, Tensor]]:
        """See :meth:`SpectralOperator.top_each`: one pass over the table, most of whose time is reading."""
        if include_unreachable:
            raise AsgatError("include_unreachable needs all pairs, but a table holds only some; use ChebyshevOperator.")
        if k > self.candidates:
            raise AsgatError(f"k = {k} needs at least as many candidates, but there are {self.candidates}.")
        coefficients = [self.coefficients(filter) for filter in filters]
        on_cpu = self.device.type == "cpu" and not torch.compiler.is_compiling()
        selected = (self._remembered if on_cpu else self._select_on_device)(filters, coefficients, k)
        return [(index, score) for index, _, score in selected]

    def _remembered(self, filters: Sequence[SpectralFilter], coefficients: list[Tensor], k: int) -> list[Selection]:
        """Selections, made once for equal coefficients: an epoch trains with filters that were just evaluated."""
        self._remember(dict(zip(filters, coefficients, strict=True)), k)
        found = []
        for filter, c in zip(filters, coefficients, strict=True):
            last, learned = self._selected[filter], c.requires_grad and torch.is_grad_enabled()
            score = rescore(self.table.value, c, last.position, last.score) if learned else last.score
            found.append((last.index, last.position, score))
        return found

    def _select_on_device(
        self, filters: Sequence[SpectralFilter], coefficients: list[Tensor], k: int
    ) -> list[Selection]:
        """Selections where comparing coefficients would wait for the device. Padding gets the last entry's node."""
        keys: list[Key] = [(self, filter, k) for filter in filters]
        value, found = self.table.value, []
        for key, c in zip(keys, coefficients, strict=True):
            held = held_selection(key)
            if held is not None:
                index, position, score = held
                found.append((index, position, rescore(value, c, position, score)))
        if len(found) == len(keys):
            return found
        positions, scores = select_top(value, self._rows, _joined(coefficients), k)
        sizes = [c.size(0) for c in coefficients]
        found = []
        for key, position, score in zip(keys, torch.split(positions, sizes), torch.split(scores, sizes), strict=True):
            index = self._nodes[position]
            hold_selection(key, (index, position, score.detach()))
            found.append((index, position, score))
        return found

    @torch.no_grad()
    def _remember(self, coefficients: dict[SpectralFilter, Tensor], k: int) -> None:
        """Selects for all filters at once whose coefficients are not those of the last selection."""
        new = {filter: c.detach() for filter, c in coefficients.items() if self._last(filter, c, k) is None}
        if not new:
            return
        hints = [last.position for filter in new if (last := self._selected.get(filter)) is not None]
        usable = len(hints) == len(new) and all(hint.size(-1) == k for hint in hints)
        dtype = torch.int32 if self.table.value.size(0) < 2**31 else torch.int64
        hint = _joined(hints) if usable else torch.empty(0, 0, 0, dtype=dtype)
        positions, scores = select_top(self.table.value, self._rows, _joined(list(new.values())), k, hint)
        sizes = [c.size(0) for c in new.values()]
        for filter, position, score in zip(new, torch.split(positions, sizes), torch.split(scores, sizes), strict=True):
            self._selected[filter] = _Selection(new[filter], nodes_at(self._nodes, position), position, score)

    def _last(self, filter: SpectralFilter, coefficients: Tensor, k: int) -> "_Selection | None":
        """The last selection of a filter if it was for the same coefficients and k."""
        last = self._selected.get(filter)
        same = last is not None and last.position.size(-1) == k and torch.equal(last.coefficients, coefficients)
        return last if same else None

    def certify(self, filter: SpectralFilter, index: Tensor, score: Tensor) -> Certificate:
        """Proven bounds on the error of the rows :meth:`top` selected; O(heads · N · R)."""
        table = self.table
        if not table.exact:
            raise AsgatError("A truncated table is certified with rows of the whole graph; use TableOperator.certify.")
        if self._magnitude is None:
            self._magnitude = _largest_magnitudes(table)
        bounds = table.above, table.below, self._magnitude, table.complete, *ROUNDING[table.value.dtype]
        return certify(self.coefficients(filter), score.amin(dim=-1), *bounds)

    def __getstate__(self) -> dict[str, Any]:
        """Without the remembered selections, which are keyed by filters of this process."""
        return {**self.__dict__, "_selected": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _selected=WeakKeyDictionary())


@dataclass(frozen=True, eq=False)
class _Selection:
    """The last selection of a filter."""

    coefficients: Tensor
    index: Tensor
    position: Tensor
    score: Tensor


def _largest_magnitudes(table: CandidateTable) -> Tensor:
    """The largest stored magnitude of every order in every row, [N, R + 1]; one order at a time to save memory."""
    owner = torch.arange(table.num_nodes, device=table.device).repeat_interleave(table.indptr.diff())
    largest = torch.zeros(table.num_nodes, table.order + 1, dtype=torch.float32, device=table.device)
    for i in range(table.order + 1):
        largest[:, i].scatter_reduce_(0, owner, table.value[:, i].abs().float(), "amax")
    return largest


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)
