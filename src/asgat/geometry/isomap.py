"""Isomap on a graph: hop distances laid out in a plane."""

import numpy as np
import numpy.typing as npt

from asgat.geometry.mds import scaled_positions
from asgat.graph import Graph
from asgat.graph.hops import hop_distances

_ENTRIES = 2**23  # distances held at a time


def isomap(graph: Graph, seed: int = 0) -> npt.NDArray[np.float64]:
    """Positions [N, 2] whose distances follow the number of hops (Tenenbaum et al., Science 2000).

    Weights are ignored. The distance between components is one hop more than the largest within any. Graphs over about
    2,900 nodes are laid out by landmarks, as many as fit into 64 MiB of distances and at least sixteen. The seed is of
    the landmarks, and of the jitter that separates nodes on one point.
    """
    count = graph.num_nodes
    if not count:
        return np.zeros((0, 2))
    landmarks = np.arange(count)
    if count * count > _ENTRIES:
        number = min(count, max(16, _ENTRIES // count))
        landmarks = np.sort(np.random.default_rng(seed).choice(count, number, replace=False))
    distance = hop_distances(graph, landmarks).astype(np.float64)
    distance[distance < 0] = distance.max() + 1
    return scaled_positions(distance, landmarks, seed)
