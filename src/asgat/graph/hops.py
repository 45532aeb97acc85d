"""Hop distances between nodes."""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from asgat.graph.graph import Graph, Ints
from asgat.kernels.cpu.jit import compiled


def hop_distances(graph: Graph, sources: Ints) -> npt.NDArray[np.int32]:
    """Edges on the shortest path from each source to each node, [sources, N]; -1 where there is none.

    Weights and directions are ignored. Cost: O(N + E) per source, sources in parallel.
    """
    distance = np.full((len(sources), graph.num_nodes), -1, dtype=np.int32)
    rows = graph.undirected.adjacency
    _breadth_first(rows.indptr, rows.indices, sources, distance)
    return distance


@compiled(set(), parallel=True)
def _breadth_first(indptr: Any, indices: Any, sources: Any, distance: Any) -> None:
    for i in numba.prange(len(sources)):
        queue = np.empty(distance.shape[1], np.int32)
        queue[0] = sources[i]
        distance[i, sources[i]] = 0
        first, last = 0, 1
        while first < last:
            v = queue[first]
            first += 1
            for e in range(indptr[v], indptr[v + 1]):
                u = indices[e]
                if distance[i, u] < 0:
                    distance[i, u] = distance[i, v] + 1
                    queue[last] = u
                    last += 1
