"""The candidate table from small neighbourhoods: for graphs whose exact rows cost too much."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from asgat.errors import AsgatError
from asgat.tables.candidate_table import CandidateTable, Progress, SparseRows, check_build, compiled, map_in_order

Array = npt.NDArray[Any]
Arrays = tuple[Array, ...]

FANOUT = 256  # entries of a row that are looked at, the largest first; bounds the cost of a hub
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
    row v is exact up to order 2r + 1 − d at distance d. Restricting a symmetric matrix keeps its spectrum inside
    [-1, 1], so errors do not feed on themselves as they do where every order is cut on its own.

    What lies behind a node s at the edge of S is folded into two more nodes, the first two Lanczos vectors of what s
    sees outside: a link :math:`b_1^2 = \sum_{w \notin S} X_{sw}^2`, a diagonal entry
    :math:`a = \sum_w X_{sw}^2 X_{ww} / b_1^2`, and a link onward
    :math:`b_2^2 = \sum_w X_{sw}^2 (\sum_{z \ne w} X_{wz}^2 - X_{sw}^2) / b_1^2`. Walks that step out of S by up to two
    hops and come back the way they went are thereby counted; those that return elsewhere are lost.

    A row has at most ``candidates`` entries: v, its nearest neighbours (up to half of them), then the nodes with the
    largest :math:`\max_i |T_i|`; fewer only where fewer are reached. What is left out is not known, so ``above`` and
    ``below`` are NaN. A row is marked complete where S holds everything within R hops, and all of it is a candidate.

    O(keep · degree + R · keep) time per row, degrees above 256 counted as 256 but for v's own; O(keep · degree) memory
    per thread, and while it prepares 48 bytes per node and 40 per entry of X beside the table. The same table whatever
    the number of threads.

    Args:
        shifted: X, symmetric, a scipy sparse array.
        order: polynomial order R.
        candidates: entries of a row.
        keep: nodes of a neighbourhood, at least ``candidates``.
        rows: the rows to build, in this order; all by default.
        dtype: of the stored values: float32, float64 or float16.
        progress: called with the rows done and the rows in all.
    """
    matrix = SparseRows.of(shifted)
    chosen = check_build(matrix.num_nodes, order, candidates, rows, dtype)
    if keep < candidates:
        raise AsgatError(f"keep must be at least candidates = {candidates}, but is {keep}.")
    keep = min(keep, max(matrix.num_nodes, 1))
    candidates = min(candidates, keep)
    kernel = compiled(_neighbourhoods, HELPERS)
    indices, data = _largest_first(matrix, FANOUT)
    record = node_records(matrix) if matrix.records is None else matrix.records
    per_row = candidates * (order + 1) * 8
    size = max(1, min(4096, _BYTES_PER_TASK // per_row))
    tasks = [chosen[start : start + size] for start in range(0, len(chosen), size)]

    def work(nodes: Array) -> tuple[Array, ...]:
        count = np.zeros(len(nodes), dtype=np.int64)
        complete = np.zeros(len(nodes), dtype=bool)
        index = np.empty((len(nodes), candidates), dtype=np.int32)
        value = np.empty((len(nodes), candidates, order + 1))
        kernel(record, indices, data, nodes, keep, FANOUT, count, complete, index, value)
        kept = np.arange(candidates) < count[:, None]
        return count, complete, index[kept], value[kept]

    # Room for every row in full: pages that are never written to are never taken.
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
    if not len(long_rows):
        return matrix.indices, matrix.data
    indices, data = matrix.indices, matrix.data
    if matrix.records is None:
        indices, data = indices.copy(), data.copy()
    for v in long_rows:
        entries = slice(matrix.indptr[v], matrix.indptr[v + 1])
        order = np.argsort(-np.abs(data[entries]), kind="stable")
        indices[entries], data[entries] = indices[entries][order], data[entries][order]
    return indices, data


def node_records(matrix: SparseRows, entries_at_once: int = 1 << 22) -> Array:
    """What is read of a node, in one place: its row, and sums over its neighbours that tell what lies behind it.

    O(E) time; beside the result some 40 bytes per entry of the rows that are looked at at once.
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
    for first, last in blocks:
        entries, row, _, square = rows_of(first, last)
        near = record[matrix.indices[entries]]
        record["middle"][first:last] = np.bincount(row, square * near["diagonal"], minlength=last - first)
        square *= near["square"] - square
        record["onward"][first:last] = np.bincount(row, square, minlength=last - first)
    return record


# -- kernels: plain functions on arrays, compiled together ------------------------------------------------------------


def _neighbourhoods(
    record: Array,
    indices: Array,
    data: Array,
    rows: Array,
    keep: int,
    fanout: int,
    count: Array,
    complete: Array,
    index: Array,
    value: Array,
) -> None:
    """Fill count, complete, index [rows, candidates] and value [rows, candidates, R + 1], row by row."""
    candidates, orders = value.shape[1], value.shape[2]
    slots = 4
    while slots < 4 * keep:
        slots *= 2
    table = np.full(slots, -1, dtype=np.int32)  # open addressing; a used slot holds a local number
    slot = np.empty(keep, dtype=np.int64)
    node = np.empty(keep, dtype=np.int64)
    mass = np.empty(keep)
    first = np.empty(keep + 1, dtype=np.int64)
    end = np.empty(keep * (min(keep, fanout) + 1), dtype=np.int32)
    weight = np.empty(len(end))
    behind = np.empty((4, keep))
    term = np.empty((orders, keep))
    chain = np.empty((4, keep))
    best = np.empty(keep)
    key = np.empty(candidates, dtype=np.int64)
    start, degree = np.empty(keep, dtype=np.int64), np.empty(keep, dtype=np.int64)
    missing = np.empty(keep, dtype=np.int64)
    near = np.empty(keep * fanout, dtype=np.int32)
    graph, edges, spare = (record, indices, data), (first, end, weight), (start, degree, missing, near)
    for r in range(len(rows)):
        n, neighbours, inner, full = _collect(rows[r], graph, fanout, orders - 1, table, slot, node, mass)
        cut = _connect(n, inner, graph, fanout, table, node, edges, behind, spare)
        _recurrence(n, edges, behind, term, chain)
        found, reached = _choose(n, neighbours, node, mass, term, best, key)
        for j in range(found):
            a = key[j] % keep
            index[r, j] = node[a]
            for i in range(orders):
                value[r, j, i] = term[i, a]
        count[r] = found
        complete[r] = found == reached and not full and not cut
        for a in range(n):
            table[slot[a]] = -1


def _slot(table: Array, node: Array, w: Any) -> Any:
    """Where node w is in the hash table, or the free slot where it belongs."""
    mask = np.uint64(len(table) - 1)
    h = (np.uint64(w) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & mask
    while table[h] >= 0 and node[table[h]] != w:
        h = (h + np.uint64(1)) & mask
    return h


def _collect(
    v: int, graph: Arrays, fanout: int, hops: int, table: Array, slot: Array, node: Array, mass: Array
) -> tuple[int, int, int, bool]:
    """The neighbourhood of v, hop by hop; of a hop those first that carry the largest mass of walks from v.

    Returns its size, v's neighbours in it (numbers 1, 2, …), how many are fewer than R hops away, and whether the
    room ran out.
    """
    record, indices, data = graph
    node[0], mass[0] = v, 1.0
    slot[0] = _slot(table, node, v)
    table[slot[0]] = 0
    n, start, stop, neighbours = 1, 0, 1, 0
    for hop in range(hops):
        for offset in np.argsort(-mass[start:stop], kind="mergesort"):  # stable: the same order everywhere
            a = start + offset
            s = node[a]
            for e in range(record[s].start, record[s].start + min(record[s].degree, fanout)):
                w = np.int64(indices[e])
                h = _slot(table, node, w)
                b = table[h]
                if b >= stop:
                    mass[b] += mass[a] * abs(data[e])
                elif b < 0:
                    if n == len(node):
                        return n, neighbours if hop > 0 else n - 1, n, True
                    table[h], slot[n] = n, h
                    node[n], mass[n] = w, mass[a] * abs(data[e])
                    n += 1
        start, stop = stop, n
        if hop == 0:
            neighbours = n - 1
    return n, neighbours, start, False


def _connect(
    n: int,
    inner: int,
    graph: Arrays,
    fanout: int,
    table: Array,
    node: Array,
    edges: Arrays,
    behind: Array,
    spare: Arrays,
) -> bool:
    """The edges inside the neighbourhood, each once, and per node its diagonal entry and the chain behind it.

    Edges ``first[a]`` to ``first[a + 1] - 1`` belong to node a. Returns whether a walk of R steps can leave.
    """
    record, indices, data = graph
    first, end, weight = edges
    start, degree, missing, near = spare
    # Far memory is read in loops that do little else, so that many reads are under way at once.
    for a in range(n):
        far = record[node[a]]
        start[a], degree[a] = far.start, far.degree
        missing[a] = far.degree - (far.diagonal != 0.0)
        behind[0, a], behind[1, a], behind[2, a], behind[3, a] = far.diagonal, far.square, far.middle, far.onward
    read = 0
    for a in range(1, n):
        for e in range(start[a], start[a] + min(degree[a], fanout)):
            near[read] = indices[e]
            read += 1
    made = read = 0
    for a in range(n):
        first[a] = made
        s = node[a]
        for e in range(start[a], start[a] + (min(degree[a], fanout) if a > 0 else degree[a])):
            if a > 0:
                w = np.int64(near[read])
                read += 1
            else:  # v's own row is looked at in full, which for all v together is one look at every entry
                w = np.int64(indices[e])
            b = np.int64(table[_slot(table, node, w)])
            if b <= 0 or b == a:  # outside, or v, which has this edge
                continue
            if degree[b] <= fanout:  # b's row is looked at in full and has this edge too
                if b < a or (degree[a] > fanout and a > 0):
                    continue
            elif degree[a] > fanout and b < a:
                last = start[b] + fanout - 1
                size, least = abs(data[e]), abs(data[last])
                if size > least or (size == least and s <= indices[last]):
                    continue  # it is among those looked at in b's row
            x = data[e]
            end[made], weight[made] = b, x
            made += 1
            square = x * x
            missing[a] -= 1
            missing[b] -= 1
            behind[1, a] -= square
            behind[1, b] -= square
            behind[2, a] -= square * behind[0, b]
            behind[2, b] -= square * behind[0, a]
            behind[3, a] -= square * (record[w].square - square)
            behind[3, b] -= square * (record[s].square - square)
    first[n] = made
    cut = False
    for a in range(n):
        cut |= a < inner and missing[a] > 0
        total = behind[1, a]
        if missing[a] == 0 or total <= 0.0:  # an empty sum, but for rounding
            behind[1:, a] = 0.0
            continue
        behind[1, a] = np.sqrt(total)
        behind[2, a] /= total
        behind[3, a] = np.sqrt(max(behind[3, a] / total, 0.0))
    return cut


def _recurrence(n: int, edges: Arrays, behind: Array, term: Array, chain: Array) -> None:
    """term[i, a] = T_i of the neighbourhood's matrix with its chains, between v and a."""
    first, end, weight = edges
    diagonal, link, middle, onward = behind[0], behind[1], behind[2], behind[3]
    near, near_old, far, far_old = chain[0], chain[1], chain[2], chain[3]
    chain[:, :n] = 0.0
    term[0, :n] = 0.0
    term[0, 0] = 1.0
    for i in range(1, len(term)):
        double, subtract = (1.0, 0.0) if i == 1 else (2.0, 1.0)
        old, now, new = term[max(i - 2, 0)], term[i - 1], term[i]
        for a in range(n):
            new[a] = diagonal[a] * now[a] + link[a] * near[a]
        for a in range(n):
            total, here = new[a], now[a]
            for e in range(first[a], first[a + 1]):
                b = np.uint64(end[e])  # unsigned: no test for an index from the end
                total += weight[e] * now[b]
                new[b] += weight[e] * here
            new[a] = total
        for a in range(n):
            new[a] = double * new[a] - subtract * old[a]
            x = double * (link[a] * now[a] + middle[a] * near[a] + onward[a] * far[a]) - subtract * near_old[a]
            y = double * (onward[a] * near[a] + middle[a] * far[a]) - subtract * far_old[a]
            near_old[a], near[a] = near[a], x
            far_old[a], far[a] = far[a], y


def _largest_but(skip: int, values: Array) -> Any:
    """The largest value when so many larger ones are passed over (quickselect; the array is shuffled)."""
    low, high = 0, len(values) - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if skip <= j:
            high = j
        elif skip >= i:
            low = i
        else:
            break
    return values[skip]


def _choose(n: int, neighbours: int, node: Array, mass: Array, term: Array, best: Array, key: Array) -> tuple[int, int]:
    """Put the candidates into ``key``, ascending, as global number · len(node) + local number.

    Returns how many were chosen and how many could have been.
    """
    candidates = len(key)
    best[:n] = 0.0
    for i in range(1, len(term)):
        for a in range(n):
            best[a] = max(best[a], abs(term[i, a]))
    best[0] = np.inf
    if neighbours > 0:
        for a in np.argsort(-mass[1 : neighbours + 1], kind="mergesort")[: candidates // 2]:
            best[a + 1] = np.inf
    reached = 0
    for a in range(n):
        reached += best[a] > 0.0
    least, ties = 0.0, 0
    if reached > candidates:
        least = _largest_but(candidates - 1, best[:n].copy())
        ties = candidates
        for a in range(n):
            ties -= best[a] > least
    found = 0
    for a in range(n):
        if best[a] == least and ties > 0:
            ties -= 1
        elif not best[a] > least:
            continue
        key[found] = node[a] * len(node) + a
        found += 1
    key[:found].sort()
    return found, reached


HELPERS = (_slot, _collect, _connect, _recurrence, _largest_but, _choose)
