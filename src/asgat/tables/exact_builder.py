"""The candidate table from exact rows of T_i(X): for graphs up to some hundred thousand nodes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.tables.candidate_table import CandidateTable, Progress, SparseRows, check_build, compiled, map_in_order

Array = npt.NDArray[Any]

WIDTH = 16  # rows computed at once: wide enough for vector instructions, narrow enough for a plane [N, 16] to stay near
_ROWS_PER_TASK = 64
_DEVICE_BYTES = 4 << 30  # working memory of a block on an accelerator

# What ``state`` says of a node: 0 not reached, 1 reached, 2 or more a candidate.
_CANDIDATE = 2


def build_exact(
    shifted: Any,
    order: int,
    candidates: int = 32,
    cap: int = 256,
    rows: Any = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> CandidateTable:
    r"""The candidate table of :math:`X`, every value and every bound on what was left out computed in float64.

    Row v's candidates are, for every order i, the largest entries of row v of :math:`T_i(X)` in magnitude, v itself,
    and v's neighbours.

    O(R · (E + N)) time per row, N · (R + 1) · 128 bytes of working memory per thread: 40 MB for Pubmed at order 15.

    Args:
        shifted: X, symmetric, a scipy sparse array.
        order: polynomial order R.
        candidates: entries kept of every order; ties go to the lower index.
        cap: neighbours kept at most, those with the largest :math:`|X_{vu}|` first.
        rows: the rows to build, in this order; all by default.
        dtype: of the stored values: float32, float64 or float16.
        device: where the table is built and stored.
        progress: called with the rows done and the rows in all.
    """
    matrix = SparseRows.of(shifted)
    chosen = check_build(matrix.num_nodes, order, candidates, rows, dtype)
    if cap < 0:
        raise AsgatError(f"cap must not be negative, but is {cap}.")
    device = torch.device(device)
    if device.type == "cpu":
        size = _ROWS_PER_TASK
        tasks = [chosen[start : start + size] for start in range(0, len(chosen), size)]
        parts = map_in_order(lambda task: _rows_on_cpu(matrix, order, candidates, cap, task, dtype), tasks)
    else:
        parts = _rows_on_device(matrix, order, candidates, cap, chosen, dtype, device)
    done, collected = 0, []
    for part in parts:
        collected.append(part)
        done += len(part[0])
        if progress is not None:
            progress(done, len(chosen))
    return _assemble(collected, order, dtype, device)


def exact_rows(shifted: Any, order: int, rows: Any) -> npt.NDArray[np.float64]:
    """True rows of all T_i(X), [R + 1, rows, N] in float64; O(R · E) time per row."""
    matrix = SparseRows.of(shifted)
    chosen = check_build(matrix.num_nodes, order, 1, rows, torch.float64)
    result = np.empty((order + 1, len(chosen), matrix.num_nodes))

    def fill(start: int) -> None:
        block = chosen[start : start + WIDTH]
        planes = np.empty((order + 1, matrix.num_nodes, WIDTH))
        state = np.empty(planes.shape[1:], dtype=np.uint8)
        compiled(_recurrence)(matrix.indptr, matrix.indices, matrix.data, block, planes, state, 1)
        result[:, start : start + WIDTH] = planes[:, :, : len(block)].transpose(0, 2, 1)

    for _ in map_in_order(fill, range(0, len(chosen), WIDTH)):
        pass
    return result


# A part is: candidates per row, index, value, above, below, complete.
Part = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def _assemble(parts: list[Part], order: int, dtype: torch.dtype, device: torch.device) -> CandidateTable:
    plain: dict[str, Any] = {"device": device}
    empty = (
        torch.empty(0, dtype=torch.int64, **plain),
        torch.empty(0, dtype=torch.int32, **plain),
        torch.empty(0, order + 1, dtype=dtype, **plain),
        torch.empty(0, order + 1, dtype=torch.float64, **plain),
        torch.empty(0, order + 1, dtype=torch.float64, **plain),
        torch.empty(0, dtype=torch.bool, **plain),
    )
    count, index, value, above, below, complete = (torch.cat(column) for column in zip(empty, *parts, strict=True))
    indptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    return CandidateTable(indptr, index, value, above, below, complete, exact=True)


# -- processor --------------------------------------------------------------------------------------------------------


def _rows_on_cpu(matrix: SparseRows, order: int, candidates: int, cap: int, rows: Array, dtype: torch.dtype) -> Part:
    n, p = matrix.num_nodes, order + 1
    planes = np.empty((p, n, WIDTH))
    state = np.empty((n, WIDTH), dtype=np.uint8)
    above, below = np.empty((len(rows), p)), np.empty((len(rows), p))
    count = np.zeros(len(rows), dtype=np.int64)
    complete = np.zeros(len(rows), dtype=bool)
    index, value = [], []
    for start in range(0, len(rows), WIDTH):
        block, here = rows[start : start + WIDTH], slice(start, start + WIDTH)
        compiled(_recurrence)(matrix.indptr, matrix.indices, matrix.data, block, planes, state, candidates)
        for column, v in enumerate(block):
            state[_neighbours(matrix, v, cap), column] = _CANDIDATE
            state[v, column] = _CANDIDATE
        compiled(_left_out)(planes, state, above[here], below[here], count[here], complete[here])
        found_index = np.empty(count[here].sum(), dtype=np.int32)
        found_value = np.empty((len(found_index), p))
        compiled(_gather)(planes, state, count[here], found_index, found_value)
        index.append(torch.from_numpy(found_index))
        value.append(torch.from_numpy(found_value).to(dtype))
    return (
        torch.from_numpy(count),
        torch.cat(index),
        torch.cat(value),
        torch.from_numpy(above),
        torch.from_numpy(below),
        torch.from_numpy(complete),
    )


def _neighbours(matrix: SparseRows, v: int, cap: int) -> Array:
    """Up to ``cap`` neighbours of v, the largest |X_vu| first, ties to the lower index."""
    entries = slice(matrix.indptr[v], matrix.indptr[v + 1])
    nodes, size = matrix.indices[entries], np.abs(matrix.data[entries])
    nodes, size = nodes[nodes != v], size[nodes != v]
    if len(nodes) > cap:
        nodes = nodes[np.argsort(-size, kind="stable")[:cap]]
    return np.asarray(nodes)


def _recurrence(
    indptr: Array, indices: Array, data: Array, rows: Array, planes: Array, state: Array, candidates: int
) -> None:
    """planes[i, :, b] = column rows[b] of T_i(X), which is its row as X is symmetric; columns without a row are 0.

    On the way ``state`` marks what is reached and, per order and column, the largest entries in magnitude: a heap per
    column holds the best so far, its worst on top, the smallest magnitude and of equal ones the highest index. Nearly
    every entry is passed over by one comparison with that magnitude while it is still at hand.
    """
    orders, n, width = planes.shape
    planes[0] = 0.0
    state[:] = 0
    for b in range(len(rows)):
        planes[0, rows[b], b] = 1.0
        state[rows[b], b] = 2
    total = np.empty(width)
    least = np.empty(width)
    size = np.empty(width, dtype=np.int64)
    magnitude = np.empty((width, candidates))
    node = np.empty((width, candidates), dtype=np.int64)
    for i in range(1, orders):
        now, after, before = planes[i - 1], planes[i], planes[max(i - 2, 0)]
        double, subtract = (1.0, 0.0) if i == 1 else (2.0, 1.0)
        size[:] = 0
        least[:] = 0.0
        for u in range(n):
            for b in range(width):
                total[b] = 0.0
            for e in range(indptr[u], indptr[u + 1]):
                x = data[e]
                row = now[np.uint64(indices[e])]  # unsigned: no test for an index from the end
                for b in range(width):
                    total[b] += x * row[b]
            old, new, mark = before[u], after[u], state[u]
            over = 0
            for b in range(width):
                total[b] = double * total[b] - subtract * old[b]
                new[b] = total[b]
            for b in range(width):
                over += abs(total[b]) > least[b]
            for b in range(width):
                mark[b] |= total[b] != 0.0
            if over == 0:
                continue
            for b in range(width):
                m = abs(total[b])
                if not m > least[b]:
                    continue
                key, who = magnitude[b], node[b]
                if size[b] < candidates:  # the newcomer rises
                    at = size[b]
                    size[b] += 1
                    while at > 0:
                        parent = (at - 1) // 2
                        if key[parent] < m:
                            break
                        key[at], who[at] = key[parent], who[parent]
                        at = parent
                else:  # the newcomer replaces the worst and sinks
                    at = 0
                    while 2 * at + 1 < candidates:
                        child = 2 * at + 1
                        if child + 1 < candidates and (
                            key[child + 1] < key[child]
                            or (key[child + 1] == key[child] and who[child + 1] > who[child])
                        ):
                            child += 1
                        if key[child] >= m:  # of equal ones the later is the worse
                            break
                        key[at], who[at] = key[child], who[child]
                        at = child
                key[at], who[at] = m, u
                if size[b] == candidates:
                    least[b] = key[0]
        for b in range(width):
            for j in range(size[b]):
                state[node[b, j], b] = 2


def _left_out(planes: Array, state: Array, above: Array, below: Array, count: Array, complete: Array) -> None:
    """Candidates per column, and the largest and smallest value of every order over the reached that are none."""
    orders, n, width = planes.shape
    rest = np.zeros(width, dtype=np.int64)
    chosen = np.zeros(width, dtype=np.int64)
    for u in range(n):
        for b in range(width):
            rest[b] += state[u, b] == 1
            chosen[b] += state[u, b] >= 2
    high = np.empty(width)
    low = np.empty(width)
    for i in range(orders):
        high[:] = -np.inf
        low[:] = np.inf
        for u in range(n):
            row, mark = planes[i, u], state[u]
            for b in range(width):  # written without branches, which makes it a few vector instructions
                upper = row[b] if mark[b] == 1 else -np.inf
                lower = row[b] if mark[b] == 1 else np.inf
                high[b] = upper if upper > high[b] else high[b]
                low[b] = lower if lower < low[b] else low[b]
        for b in range(len(count)):
            above[b, i] = high[b] if rest[b] > 0 else 0.0
            below[b, i] = low[b] if rest[b] > 0 else 0.0
    for b in range(len(count)):
        count[b] = chosen[b]
        complete[b] = rest[b] == 0


def _gather(planes: Array, state: Array, count: Array, index: Array, value: Array) -> None:
    """The candidates of every column one after the other, ascending, with their values of all orders."""
    orders, n, _ = planes.shape
    place = np.zeros(len(count), dtype=np.int64)
    for b in range(1, len(count)):
        place[b] = place[b - 1] + count[b - 1]
    for u in range(n):
        for b in range(len(count)):
            if state[u, b] >= 2:
                index[place[b]] = u
                for i in range(orders):
                    value[place[b], i] = planes[i, u, b]
                place[b] += 1


# -- accelerator ------------------------------------------------------------------------------------------------------


def _rows_on_device(
    matrix: SparseRows, order: int, candidates: int, cap: int, rows: Array, dtype: torch.dtype, device: torch.device
) -> Iterator[Part]:
    """The same by sparse products of one-hot columns, in blocks of rows that fit the working memory."""
    n = matrix.num_nodes
    x = _to_device(matrix, device)
    size = max(1, _DEVICE_BYTES // max(1, n * (order + 16) * 8))
    for start in range(0, len(rows), size):
        block = torch.from_numpy(rows[start : start + size]).to(device)
        basis = _device_rows(x, order, block)
        chosen = torch.zeros(basis.shape[1:], dtype=torch.bool, device=device)
        for plane in basis[1:]:
            chosen |= _largest(plane.abs(), candidates)
        chosen |= _device_neighbours(basis[1], block, cap)
        reached = chosen.clone()
        for plane in basis:
            reached |= plane != 0
        row, index = chosen.nonzero(as_tuple=True)
        value = basis[:, row, index].t().contiguous().to(dtype)
        left_out = reached & ~chosen
        complete = ~left_out.any(dim=1)
        above = torch.stack([plane.masked_fill(~left_out, -torch.inf).amax(dim=1) for plane in basis], dim=1)
        below = torch.stack([plane.masked_fill(~left_out, torch.inf).amin(dim=1) for plane in basis], dim=1)
        unknown = complete.unsqueeze(1)
        yield (
            chosen.sum(dim=1),
            index.to(torch.int32),
            value,
            above.masked_fill(unknown, 0.0),
            below.masked_fill(unknown, 0.0),
            complete,
        )


def _device_rows(x: Tensor, order: int, rows: Tensor) -> Tensor:
    """Rows of all T_i(X), [R + 1, B, N]."""
    n = x.size(0)
    before = torch.zeros(n, len(rows), dtype=torch.float64, device=x.device)
    before[rows, torch.arange(len(rows), device=x.device)] = 1.0
    basis = torch.empty(order + 1, len(rows), n, dtype=torch.float64, device=x.device)
    now = x @ before
    basis[0], basis[1] = before.t(), now.t()
    for i in range(2, order + 1):
        before, now = now, (x @ now).mul_(2.0).sub_(before)
        basis[i] = now.t()
    return basis


def _largest(magnitude: Tensor, count: int) -> Tensor:
    """Where the ``count`` largest of every row are, zeros excepted; ties to the lower index, which topk leaves open."""
    least = magnitude.topk(min(count, magnitude.size(1)), dim=1).values[:, -1:]
    more = magnitude > least
    tied = (magnitude == least) & (magnitude > 0)
    return more | (tied & (tied.cumsum(dim=1) <= count - more.sum(dim=1, keepdim=True)))


def _device_neighbours(first: Tensor, rows: Tensor, cap: int) -> Tensor:
    """The rows' neighbours up to ``cap`` by magnitude, from T_1(X) = X, and the rows themselves."""
    own = torch.zeros_like(first, dtype=torch.bool)
    own[torch.arange(len(rows), device=rows.device), rows] = True
    return own if cap == 0 else own | _largest(first.abs().masked_fill(own, 0.0), cap)


def _to_device(matrix: SparseRows, device: torch.device) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support is in beta|invariant checks)")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data),
            size=(matrix.num_nodes, matrix.num_nodes),
            device=device,
            check_invariants=False,
        )
