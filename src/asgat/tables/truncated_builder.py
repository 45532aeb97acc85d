"""The candidate table from small neighbourhoods: for graphs whose exact rows cost too much."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from asgat.errors import AsgatError
from asgat.tables.building import check_build, map_in_order
from asgat.tables.candidate_table import CandidateTable, Progress
from asgat.tables.sparse_rows import SparseRows

Array = npt.NDArray[Any]

_BYTES_PER_TASK = 8 << 20

RECORD = np.dtype(
    [
        ("start", np.int64),
        ("degree", np.int64),  # stored entries, the diagonal one included
        ("diagonal", np.float64),  # X_ww
        ("square", np.float64),  # Σ_u X_wu², here and below over u ≠ w
        ("middle", np.float64),  # Σ_u X_wu² X_uu
        ("onward", np.float64),  # Σ_u X_wu² (Σ_z X_uz² − X_wu²)
    ]
)


def fanout_for(candidates: int) -> int:
    """Entries read of a row, the largest first: bounds the cost of a hub, and leaves no row short of candidates."""
    return max(256, candidates)


def build_truncated(
    shifted: Any,
    order: int,
    candidates: int = 48,
    keep: int = 512,
    rows: Any = None,
    dtype: torch.dtype = torch.float32,
    progress: Progress | None = None,
) -> CandidateTable:
    r"""An approximate candidate table whose cost per row does not depend on the size of the graph.

    Row v is taken from :math:`T_i(X_S)`, X restricted to a neighbourhood S of v: whole hops while they fit, then the
    nodes that carry the largest mass :math:`\sum |X| \cdots |X|` of walks from v. If all nodes within r hops are in S,
    row v is exact up to order 2r + 1 − d at distance d. The spectrum of a restricted symmetric matrix stays inside
    [-1, 1], so errors do not grow with the order as they do if every order is truncated separately.

    The graph behind a node s at the edge of S is replaced by two more nodes, the first two Lanczos vectors of what s
    sees outside: a link :math:`b_1^2 = \sum_{w \notin S} X_{sw}^2`, a diagonal entry
    :math:`a = \sum_w X_{sw}^2 X_{ww} / b_1^2`, and a link onward
    :math:`b_2^2 = \sum_w X_{sw}^2 (\sum_{z \ne w} X_{wz}^2 - X_{sw}^2) / b_1^2`. Walks that step out of S by up to two
    hops and return the same way are thereby counted; those that return elsewhere are lost.

    A row has at most ``candidates`` entries: v, its nearest neighbours (up to half of them), then the nodes with the
    largest :math:`\max_i |T_i|`; fewer only where fewer are reached. The values left out are not known, so ``above``
    and ``below`` are NaN. A row is complete if S holds everything within R hops and all of it is a candidate.

    O(keep · degree + R · keep) time per row, with degrees above 256 (or ``candidates``, if more) counted as 256 except
    v's; O(keep · degree) memory per thread and, during preparation, 48 bytes per node and 40 per entry of X.

    Args:
        shifted, order, rows, dtype, progress: as for :func:`~asgat.tables.exact_builder.build_exact`.
        candidates: entries of a row.
        keep: nodes of a neighbourhood, at least ``candidates``.
    """
    from asgat.tables.truncated_kernels import neighbourhoods

    matrix = SparseRows.of(shifted)
    chosen = check_build(matrix.num_nodes, order, candidates, rows, dtype)
    if keep < candidates:
        raise AsgatError(f"keep must be at least candidates = {candidates}, but is {keep}.")
    keep = min(keep, max(matrix.num_nodes, 1))
    candidates = min(candidates, keep)
    fanout = fanout_for(candidates)
    indices, data = _largest_first(matrix, fanout)
    record = node_records(matrix) if matrix.records is None else matrix.records
    size = max(1, min(4096, _BYTES_PER_TASK // (candidates * (order + 1) * 8)))
    tasks = [chosen[start : start + size] for start in range(0, len(chosen), size)]

    def work(nodes: Array) -> tuple[Array, ...]:
        count = np.zeros(len(nodes), dtype=np.int64)
        complete = np.zeros(len(nodes), dtype=bool)
        index = np.empty((len(nodes), candidates), dtype=np.int32)
        value = np.empty((len(nodes), candidates, order + 1))
        neighbourhoods(record, indices, data, nodes, keep, fanout, count, complete, index, value)
        kept = np.arange(candidates) < count[:, None]
        return count, complete, index[kept], value[kept]

    # Room for full rows: memory that is never written to is never allocated.
    index = torch.empty(len(chosen) * candidates, dtype=torch.int32)
    value = torch.empty(len(chosen) * candidates, order + 1, dtype=dtype)
    indptr = torch.zeros(len(chosen) + 1, dtype=torch.int64)
    complete = torch.zeros(len(chosen), dtype=torch.bool)
    done = end = 0
    for part_count, part_complete, part_index, part_value in map_in_order(work, tasks):
        start, end = end, end + len(part_index)
        index[start:end] = torch.from_numpy(part_index)
        value[start:end] = torch.from_numpy(part_value)
        indptr[done + 1 : done + 1 + len(part_count)] = torch.from_numpy(part_count)
        complete[done : done + len(part_count)] = torch.from_numpy(part_complete)
        done += len(part_count)
        if progress is not None:
            progress(done, len(chosen))
    unknown = torch.full((1, order + 1), torch.nan, dtype=torch.float64).expand(len(chosen), -1)
    return CandidateTable(indptr.cumsum(0), index[:end], value[:end], unknown, unknown, complete, exact=False)


def _largest_first(matrix: SparseRows, fanout: int) -> tuple[Array, Array]:
    """Indices and data with the rows of more than ``fanout`` entries sorted by magnitude, ties by index."""
    long_rows = np.flatnonzero(np.diff(matrix.indptr) > fanout)
    indices, data = matrix.indices, matrix.data
    if len(long_rows) and matrix.records is None:
        indices, data = indices.copy(), data.copy()
    for v in long_rows:
        entries = slice(matrix.indptr[v], matrix.indptr[v + 1])
        order = np.argsort(-np.abs(data[entries]), kind="stable")
        indices[entries], data[entries] = indices[entries][order], data[entries][order]
    return indices, data


def node_records(matrix: SparseRows, entries_at_once: int = 1 << 22) -> Array:
    """What the builder reads of a node, in one place: its row, and sums over its neighbours for what lies behind it.

    O(E) time; in addition to the result about 40 bytes per entry of the rows processed at once.
    """
    n = matrix.num_nodes
    record = np.zeros(n, dtype=RECORD)
    record["start"], record["degree"] = matrix.indptr[:-1], np.diff(matrix.indptr)
    last_row = np.searchsorted(matrix.indptr, np.arange(0, int(matrix.indptr[-1]), entries_at_once)[1:])
    blocks = list(pairwise(np.unique(np.concatenate([[0], last_row, [n]]))))

    def rows_of(first: Any, last: Any) -> tuple[slice, Array, Array, Array]:
        entries = slice(matrix.indptr[first], matrix.indptr[last])
        row = np.repeat(np.arange(last - first, dtype=np.int32), record["degree"][first:last])
        own = row + first == matrix.indices[entries]
        return entries, row, own, np.where(own, 0.0, matrix.data[entries] ** 2)

    for first, last in blocks:
        entries, row, own, square = rows_of(first, last)
        record["diagonal"][first + row[own]] = matrix.data[entries][own]
        record["square"][first:last] = np.bincount(row, square, minlength=last - first)
    diagonals, squares = record["diagonal"].copy(), record["square"].copy()  # close together: they are read at random
    for first, last in blocks:
        entries, row, _, square = rows_of(first, last)
        near = matrix.indices[entries]
        record["middle"][first:last] = np.bincount(row, square * diagonals[near], minlength=last - first)
        square *= squares[near] - square
        record["onward"][first:last] = np.bincount(row, square, minlength=last - first)
    return record
