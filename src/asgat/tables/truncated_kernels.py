"""Compiled loops of the truncated builder: rows of Chebyshev polynomials on small neighbourhoods.

Importing this module imports numba, so the builder does it at its first call.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.kernels.cpu.jit import compiled

Array = npt.NDArray[Any]
Arrays = tuple[Array, ...]


@compiled(set())
def neighbourhoods(
    record: Array, indices: Array, data: Array, rows: Array, keep: int, fanout: int, count: Array, complete: Array,
    index: Array, value: Array,
) -> None:  # fmt: skip
    """Fill count, complete, index [rows, candidates] and value [rows, candidates, R + 1], row by row."""
    candidates, orders = value.shape[1], value.shape[2]
    slots = 4
    while slots < 4 * keep:
        slots *= 2
    table = np.full(slots, -1, dtype=np.int32)  # hash table with open addressing; a used slot holds a local number
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


@compiled(set())
def _slot(table: Array, node: Array, w: Any) -> Any:
    """Where node w is in the hash table, or the free slot where it belongs."""
    mask = np.uint64(len(table) - 1)
    h = (np.uint64(w) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & mask
    while table[h] >= 0 and node[table[h]] != w:
        h = (h + np.uint64(1)) & mask
    return h


@compiled(set())
def _collect(
    v: int, graph: Arrays, fanout: int, hops: int, table: Array, slot: Array, node: Array, mass: Array
) -> tuple[int, int, int, bool]:
    """The neighbourhood of v, hop by hop; within a hop nodes with the largest mass of walks from v come first.

    Returns its size, v's neighbours in it (numbers 1, 2, …), how many nodes are fewer than R hops away, and whether
    there were more nodes than room.
    """
    record, indices, data = graph
    node[0], mass[0] = v, 1.0
    slot[0] = _slot(table, node, v)
    table[slot[0]] = 0
    n, start, stop, neighbours = 1, 0, 1, 0
    for hop in range(hops):
        for offset in np.argsort(-mass[start:stop], kind="mergesort"):  # stable: the same on every machine
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


@compiled(set())
def _connect(
    n: int, inner: int, graph: Arrays, fanout: int, table: Array, node: Array, edges: Arrays, behind: Array,
    spare: Arrays,
) -> bool:  # fmt: skip
    """The edges inside the neighbourhood, each once, and per node its diagonal entry and the chain behind it.

    Edges ``first[a]`` to ``first[a + 1] - 1`` belong to node a. Returns whether a walk of R steps can leave.
    """
    record, indices, data = graph
    first, end, weight = edges
    start, degree, missing, near = spare
    # Distant memory is read in loops that do little else, so that many reads run at once.
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
            else:  # v's row is read in full; over all v that reads every entry once
                w = np.int64(indices[e])
            b = np.int64(table[_slot(table, node, w)])
            if b <= 0 or b == a:  # outside, or v, which has this edge already
                continue
            if degree[b] <= fanout:  # b's row is read in full and has this edge, too
                if b < a or (degree[a] > fanout and a > 0):
                    continue
            elif degree[a] > fanout and b < a:
                last = start[b] + fanout - 1
                size, least = abs(data[e]), abs(data[last])
                if size > least or (size == least and s <= indices[last]):
                    continue  # it is among the entries read of b's row
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
        if missing[a] == 0 or total <= 0.0:  # an empty sum, up to rounding
            behind[1:, a] = 0.0
            continue
        behind[1, a] = np.sqrt(total)
        behind[2, a] /= total
        behind[3, a] = np.sqrt(max(behind[3, a] / total, 0.0))
    return cut


@compiled(set())
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
                b = np.uint64(end[e])  # unsigned: no test for a negative index
                total += weight[e] * now[b]
                new[b] += weight[e] * here
            new[a] = total
        for a in range(n):
            new[a] = double * new[a] - subtract * old[a]
            x = double * (link[a] * now[a] + middle[a] * near[a] + onward[a] * far[a]) - subtract * near_old[a]
            y = double * (onward[a] * near[a] + middle[a] * far[a]) - subtract * far_old[a]
            near_old[a], near[a] = near[a], x
            far_old[a], far[a] = far[a], y


@compiled(set())
def _choose(n: int, neighbours: int, node: Array, mass: Array, term: Array, best: Array, key: Array) -> tuple[int, int]:
    """Puts candidates into ``key``, ascending, as global · len(node) + local number; counts chosen and reached."""
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
        least = np.partition(best[:n], n - candidates)[n - candidates]
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
