"""Structural identity in a plane: nodes are close if their neighbourhoods have the same degrees."""

from typing import Any

import numpy as np

from asgat.errors import AsgatError
from asgat.geometry.isomap import scaled_positions
from asgat.graph.graph import Floats, Graph
from asgat.graph.hops import hop_distances
from asgat.kernels.cpu.jit import compiled

MAX_NODES = 2000
RINGS = 5


def struc2vec(graph: Graph, seed: int = 0) -> Floats:
    """Positions [N, 2] whose distances follow struc2vec's structural distance (Ribeiro et al., KDD 2017).

    The distance f compares two nodes ring by ring, see :func:`structural_distance`. The original draws random walks
    between similar nodes and embeds those; here log(1 + f), so that hubs do not dominate, is laid out by classical
    scaling. Weights and self-loops are ignored. The seed is of the jitter that separates nodes on one point.

    Cost: O(N²) pairs of rings; refused for more than 2,000 nodes.
    """
    if graph.num_nodes > MAX_NODES:
        raise AsgatError(
            f"struc2vec compares all pairs of nodes and is meant for at most {MAX_NODES} of them, but the graph has "
            f"{graph.num_nodes}; set space to isomap or poincare."
        )
    if not graph.num_nodes:
        return np.zeros((0, 2))
    return scaled_positions(np.log1p(structural_distance(graph)), np.arange(graph.num_nodes), seed)


def structural_distance(graph: Graph) -> Floats:
    r"""The structural distance of all pairs of nodes, [N, N].

    Ring k of a node, k = 0 … 4, is the sorted degrees of the nodes at k hops, as pairs of a degree and how often it
    occurs (struc2vec's first optimisation). Two rings are compared by dynamic time warping with costs
    :math:`\bigl(\frac{\max(a, b) + ½}{\min(a, b) + ½} - 1\bigr) \max(n_a, n_b)`; rings that one of the nodes lacks are
    left out, and the distance is the sum over rings.
    """
    plain = graph.with_self_loops("remove")
    count = plain.num_nodes
    degree = np.diff(plain.adjacency.indptr)
    hops = hop_distances(plain, np.arange(count))
    rings = [np.unique(degree[hops[v] == k], return_counts=True) for v in range(count) for k in range(RINGS)]
    bounds = np.cumsum([0, *(len(values) for values, _ in rings)])
    values, repeats = (np.concatenate([ring[i] for ring in rings]).astype(np.float64) for i in (0, 1))
    distance = np.zeros((count, count))
    _compare(values, repeats, bounds, np.empty(np.diff(bounds).max()), distance)
    return distance


@compiled(set())
def _warp(values: Any, repeats: Any, a: int, a_end: int, b: int, b_end: int, row: Any) -> Any:
    """Dynamic time warping of entries a … a_end with b … b_end, neither of them empty."""
    for i in range(a, a_end):
        before = np.inf  # the cell up and to the left
        for j in range(b, b_end):
            high, low = max(values[i], values[j]), min(values[i], values[j])
            cost = ((high + 0.5) / (low + 0.5) - 1) * max(repeats[i], repeats[j])
            best = before
            if i > a:
                best = min(best, row[j - b])
            if j > b:
                best = min(best, row[j - b - 1])
            if i == a and j == b:
                best = 0.0
            before = row[j - b] if i > a else np.inf
            row[j - b] = cost + best
    return row[b_end - b - 1]


@compiled(set())
def _compare(values: Any, repeats: Any, bounds: Any, row: Any, distance: Any) -> None:
    for u in range(len(distance)):
        for v in range(u):
            total = 0.0
            for k in range(RINGS):
                i, j = u * RINGS + k, v * RINGS + k
                if bounds[i] < bounds[i + 1] and bounds[j] < bounds[j + 1]:
                    total += _warp(values, repeats, bounds[i], bounds[i + 1], bounds[j], bounds[j + 1], row)
            distance[u, v] = total
            distance[v, u] = total
