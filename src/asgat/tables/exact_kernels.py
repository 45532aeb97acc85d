"""Compiled loops of the exact builder.

Importing this module imports numba, so the builder does it at its first call.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.kernels.cpu.jit import compiled

Array = npt.NDArray[Any]

CANDIDATE = 2  # in ``state``: 0 is a node that is not reached, 1 a reached one, 2 or 3 a candidate


@compiled(set())
def recurrence(
    indptr: Array, indices: Array, data: Array, rows: Array, planes: Array, state: Array, candidates: int
) -> None:
    """planes[i, :, b] = column rows[b] of T_i(X), which is its row as X is symmetric; columns without a row are 0.

    ``state`` marks reached nodes and, per order and column, the largest entries in magnitude. A heap per column holds
    the best so far, the worst of them on top: the smallest magnitude, and of equal ones the highest index. One
    comparison with that magnitude skips nearly every entry.
    """
    orders, n, width = planes.shape
    planes[0] = 0.0
    state[:] = 0
    for b in range(len(rows)):
        planes[0, rows[b], b] = 1.0
        state[rows[b], b] = CANDIDATE
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
                row = now[np.uint64(indices[e])]  # unsigned: no test for a negative index
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
                if size[b] < candidates:  # the new entry rises
                    at = size[b]
                    size[b] += 1
                    while at > 0:
                        parent = (at - 1) // 2
                        if key[parent] < m:
                            break
                        key[at], who[at] = key[parent], who[parent]
                        at = parent
                else:  # the new entry replaces the worst and sinks
                    at = 0
                    while 2 * at + 1 < candidates:
                        child = 2 * at + 1
                        if child + 1 < candidates and (
                            key[child + 1] < key[child]
                            or (key[child + 1] == key[child] and who[child + 1] > who[child])
                        ):
                            child += 1
                        if key[child] >= m:  # of equal ones the later is worse
                            break
                        key[at], who[at] = key[child], who[child]
                        at = child
                key[at], who[at] = m, u
                if size[b] == candidates:
                    least[b] = key[0]
        for b in range(width):
            for j in range(size[b]):
                state[node[b, j], b] = CANDIDATE


@compiled(set())
def left_out(planes: Array, state: Array, above: Array, below: Array, count: Array, complete: Array) -> None:
    """Candidates per column, and the largest and smallest value of every order over the reached nodes left out."""
    orders, n, width = planes.shape
    rest = np.zeros(width, dtype=np.int64)
    chosen = np.zeros(width, dtype=np.int64)
    for u in range(n):
        for b in range(width):
            rest[b] += state[u, b] == 1
            chosen[b] += state[u, b] >= CANDIDATE
    high = np.empty(width)
    low = np.empty(width)
    for i in range(orders):
        high[:] = -np.inf
        low[:] = np.inf
        for u in range(n):
            row, mark = planes[i, u], state[u]
            for b in range(width):  # without branches: a few vector instructions
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


@compiled(set())
def gather(planes: Array, state: Array, count: Array, index: Array, value: Array) -> None:
    """The candidates of every column, column by column, ascending, with their values of all orders."""
    orders, n, _ = planes.shape
    place = np.zeros(len(count), dtype=np.int64)
    for b in range(1, len(count)):
        place[b] = place[b - 1] + count[b - 1]
    for u in range(n):
        for b in range(len(count)):
            if state[u, b] >= CANDIDATE:
                index[place[b]] = u
                for i in range(orders):
                    value[place[b], i] = planes[i, u, b]
                place[b] += 1
