"""Isomap on a graph, hop distances laid out in a plane, and the classical scaling that lays out any distances."""

import numpy as np
import scipy.linalg

from asgat.graph.graph import Floats, Graph, Ints
from asgat.graph.hops import hop_distances

_ENTRIES = 2**23  # distances held at a time
_JITTER = 1e-6  # of the extent


def isomap(graph: Graph, seed: int = 0) -> Floats:
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


def scaled_positions(distance: Floats, landmarks: Ints, seed: int = 0) -> Floats:
    r"""Positions [N, 2] from the distances [L, N] of all points to some of them, the landmarks.

    Landmarks are placed by the two leading eigenvectors :math:`v_i` of
    :math:`B = -\frac12 J \Delta J`, :math:`\Delta` their squared distances and J the centring matrix; any point with
    squared distances :math:`\delta` at :math:`-\frac{1}{2 \sqrt{λ_i}} v_i^\top (\delta - \bar\Delta)` (de Silva and
    Tenenbaum, 2004). With all points as landmarks this is classical scaling. Axes have the sign that makes their
    largest entry positive. Points with the same distances, such as all leaves of a hub, would coincide up to rounding;
    a jitter of a millionth of the extent, drawn from ``seed``, separates them.

    Cost: O(L³ + L · N) time, O(L · N) memory.
    """
    squared = np.square(distance)
    among = squared[:, landmarks]
    mean = among.mean(axis=1, keepdims=True)
    centred = -0.5 * (among - mean - mean.T + mean.mean())
    count = len(landmarks)
    value, vector = scipy.linalg.eigh(centred, subset_by_index=[max(0, count - 2), count - 1])
    position = np.zeros((distance.shape[1], 2))
    for axis, i in enumerate(reversed(range(len(value)))):
        if value[i] > 1e-9 * max(1.0, value[-1]):
            position[:, axis] = -0.5 / np.sqrt(value[i]) * (vector[:, i] @ (squared - mean))
    largest = position[np.abs(position).argmax(axis=0), [0, 1]]
    position *= np.where(largest < 0, -1.0, 1.0)
    extent = np.abs(position).max() or 1.0
    return np.asarray(position + _JITTER * extent * np.random.default_rng(seed).standard_normal(position.shape))
