"""The candidate table: what is kept of all T_i(X) for every node, and a bound on what is not."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.errors import AsgatError

Progress = Callable[[int, int], None]
Item = TypeVar("Item")
Result = TypeVar("Result")

# Unit of relative rounding, and the absolute error below the range of normal numbers.
_ROUNDING = {
    torch.float64: (0.0, 0.0),  # the precision of the recurrence itself
    torch.float32: (2.0**-24, 2.0**-150),
    torch.float16: (2.0**-11, 2.0**-25),
}


@dataclass(frozen=True, eq=False)
class CandidateTable:
    r"""For every row v a set of candidates :math:`C(v)` and the values :math:`T_i(X)_{vu}`, u in C(v), i = 0 … R.

    A node u is reachable from v where some :math:`T_i(X)_{vu} \ne 0`; only reachable nodes are candidates, and v always
    is one. With any coefficients c the score :math:`\psi_{vu} = \sum_i c_i T_i(X)_{vu}` of a candidate is a product
    with its R + 1 values, and in an exact table every reachable u outside C(v) has

    .. math:: \psi_{vu} \le \sum_i \max(c_i \tau^+_i(v), c_i \tau^-_i(v)).

    The table holds (R + 1) numbers per candidate and 2 (R + 1) per row; it never grows with N².

    Attributes:
        indptr: int64 [rows + 1]; row v holds the entries ``indptr[v]`` to ``indptr[v + 1] - 1``.
        index: int32 [nnz], the candidates, ascending inside a row.
        value: [nnz, R + 1] in float32, float64 or float16.
        above: float64 [rows, R + 1], the largest value :math:`\tau^+_i(v)` over the reachable nodes left out; 0 in a
            complete row, NaN where it is not known.
        below: float64 [rows, R + 1], the smallest, :math:`\tau^-_i(v)`.
        complete: bool [rows], every reachable node is a candidate and its values are true ones.
        exact: values are true up to the rounding of their storage, ``above`` and ``below`` are proven. Otherwise the
            table is truncated: values are approximate, and what was left out is not known.
    """

    indptr: Tensor
    index: Tensor
    value: Tensor
    above: Tensor
    below: Tensor
    complete: Tensor
    exact: bool

    @property
    def num_nodes(self) -> int:
        """Number of rows: all nodes, or those the table was built for."""
        return self.indptr.numel() - 1

    @property
    def order(self) -> int:
        return self.value.size(1) - 1

    @property
    def num_candidates(self) -> int:
        return self.index.numel()

    @property
    def candidates_per_node(self) -> float:
        return self.num_candidates / max(self.num_nodes, 1)

    @property
    def rounding(self) -> float:
        """Unit of relative rounding of the stored values: ``|stored - true| <= rounding * |true| + underflow``."""
        return _ROUNDING[self.value.dtype][0]

    @property
    def underflow(self) -> float:
        """Absolute error of values too small for the relative one; in float16 those below 6e-5."""
        return _ROUNDING[self.value.dtype][1]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; one that repeats a single row counts as that row."""
        return sum(min(t.nbytes, t.untyped_storage().nbytes()) for t in self._tensors().values())

    @property
    def device(self) -> torch.device:
        return self.value.device

    def to(self, device: torch.device | str) -> CandidateTable:
        moved = {name: tensor.to(device) for name, tensor in self._tensors().items()}
        return CandidateTable(**moved, exact=self.exact)

    def replace_rows(self, rows: Any, other: CandidateTable) -> CandidateTable:
        """This table with row ``rows[j]`` replaced by row j of another: O(nnz) time and one more table of memory."""
        rows = torch.as_tensor(rows, dtype=torch.int64, device=self.device)
        if other.order != self.order or other.value.dtype != self.value.dtype:
            raise AsgatError(
                f"Rows of order {other.order} in {other.value.dtype} do not fit a table of order {self.order} in "
                f"{self.value.dtype}; build both with the same order and dtype."
            )
        if rows.numel() != other.num_nodes or rows.unique().numel() != rows.numel():
            raise AsgatError(
                f"replace_rows needs one row number, all different, for each of the {other.num_nodes} new rows, "
                f"but got {rows.numel()} numbers, {rows.unique().numel()} different."
            )
        if rows.numel() and not 0 <= int(rows.min()) <= int(rows.max()) < self.num_nodes:
            raise AsgatError(f"Row numbers must lie from 0 to {self.num_nodes - 1}, but range over {_span(rows)}.")
        other = other.to(self.device)
        size = self.indptr.diff().index_copy(0, rows, other.indptr.diff())
        indptr = torch.cat([size.new_zeros(1), size.cumsum(0)])
        index = self.index.new_empty(int(indptr[-1]))
        value = self.value.new_empty(index.numel(), self.order + 1)
        kept_rows = torch.ones_like(self.complete).index_fill(0, rows, False).nonzero().squeeze(1)
        for table, source, target in ((self, kept_rows, kept_rows), (other, torch.arange(len(rows)), rows)):
            entry, place = table._entries(source.to(self.device), indptr[target])
            index[place], value[place] = table.index[entry].to(index.dtype), table.value[entry]
        return CandidateTable(
            indptr=indptr,
            index=index,
            value=value,
            above=self.above.clone().index_copy_(0, rows, other.above),
            below=self.below.clone().index_copy_(0, rows, other.below),
            complete=self.complete.index_copy(0, rows, other.complete),
            exact=self.exact and other.exact,
        )

    def take(self, rows: Tensor) -> CandidateTable:
        """The given rows as a table of their own; O(their entries)."""
        rows = rows.to(self.device)
        size = self.indptr.diff()[rows]
        indptr = torch.cat([size.new_zeros(1), size.cumsum(0)])
        entry, _ = self._entries(rows, indptr[:-1])
        taken = {name: getattr(self, name)[rows] for name in ("above", "below", "complete")}
        return CandidateTable(indptr, self.index[entry], self.value[entry], **taken, exact=self.exact)

    def _entries(self, rows: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        """Positions of all entries of some rows, and where they go if row j is moved to ``start[j]``."""
        size = self.indptr.diff()[rows]
        within = torch.arange(int(size.sum()), device=rows.device) - (size.cumsum(0) - size).repeat_interleave(size)
        return self.indptr[rows].repeat_interleave(size) + within, start.repeat_interleave(size) + within

    def _tensors(self) -> dict[str, Tensor]:
        names = ("indptr", "index", "value", "above", "below", "complete")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        kind = "exact" if self.exact else "truncated"
        return (
            f"CandidateTable({kind}, num_nodes={self.num_nodes}, order={self.order}, "
            f"candidates_per_node={self.candidates_per_node:.1f}, dtype={str(self.value.dtype).removeprefix('torch.')})"
        )


def _span(rows: Tensor) -> str:
    return f"{int(rows.min())} to {int(rows.max())}"


# -- what both builders need ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SparseRows:
    """X as plain arrays: indices ascending and all different inside a row, no stored zeros.

    With ``records`` (what the truncated builder reads of a node, computed before) the arrays are maps of files, private
    to the process: parts of them may be put in another order in place, and what is not touched is never read.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    data: npt.NDArray[np.float64]
    records: npt.NDArray[Any] | None = None

    @classmethod
    def of(cls, shifted: Any) -> SparseRows:
        if isinstance(shifted, SparseRows):
            return shifted
        if shifted.ndim != 2 or shifted.shape[0] != shifted.shape[1]:
            raise AsgatError(f"X must be square, not {shifted.shape}.")
        matrix = sp.csr_array(shifted)
        if not matrix.has_canonical_format or (matrix.data == 0).any():
            matrix = matrix.copy()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
        return cls(
            matrix.indptr.astype(np.int64, copy=False),
            matrix.indices.astype(np.int32, copy=False),
            matrix.data.astype(np.float64, copy=False),
        )

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1


def check_build(num_nodes: int, order: int, candidates: int, rows: Any, dtype: torch.dtype) -> npt.NDArray[np.int64]:
    """Refuse settings no table can be built with; the row numbers otherwise, all of them by default."""
    if order < 1:
        raise AsgatError(f"order must be at least 1, but is {order}.")
    if candidates < 1:
        raise AsgatError(f"candidates must be at least 1, but is {candidates}.")
    if dtype not in _ROUNDING:
        raise AsgatError(f"A table is stored in float32, float64 or float16, not in {dtype}.")
    chosen = np.arange(num_nodes) if rows is None else np.asarray(rows, dtype=np.int64).reshape(-1)
    outside = chosen[(chosen < 0) | (chosen >= num_nodes)]
    if outside.size:
        raise AsgatError(f"Row {outside[0]} was asked for, but the graph has nodes 0 to {num_nodes - 1}.")
    return chosen


def map_in_order(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """``map`` over as many threads as torch uses, for functions that release the interpreter's lock.

    Results come in the order of the items and few wait at a time, so neither memory nor outcome depends on the
    threads; an interrupt stops after the items being worked on.
    """
    workers = max(1, torch.get_num_threads())
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def compiled(kernel: Callable[..., Any], helpers: Sequence[Callable[..., Any]] = ()) -> Callable[..., Any]:
    """A kernel in machine code, with the plain functions it calls; numba is imported at the first build only.

    What was compiled is kept on disk for the next process.
    """
    if kernel not in _COMPILED:
        import numba
        from numba.extending import register_jitable

        for helper in helpers:
            register_jitable(helper)
        _COMPILED[kernel] = numba.njit(kernel, cache=True, nogil=True)
    return _COMPILED[kernel]


_COMPILED: dict[Callable[..., Any], Callable[..., Any]] = {}
