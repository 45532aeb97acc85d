from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from tests.graph.test_hops import walked
from tests.strategies import ZOO, graphs

from asgat.errors import AsgatError
from asgat.geometry.spaces import euclidean
from asgat.geometry.struc2vec import RINGS, struc2vec, structural_distance
from asgat.graph import Graph


def warped(a, b):
    """Dynamic time warping by its recursion; entries are degrees and how often they occur."""

    def cost(x, y):
        return ((max(x[0], y[0]) + 0.5) / (min(x[0], y[0]) + 0.5) - 1) * max(x[1], y[1])

    @cache
    def until(i, j):
        if i < 0 or j < 0:
            return 0.0 if i == j == -1 else np.inf
        return cost(a[i], b[j]) + min(until(i - 1, j), until(i, j - 1), until(i - 1, j - 1))

    return until(len(a) - 1, len(b) - 1)


def rings_of(graph):
    """Per node and ring, the degrees at that distance with their numbers, ascending."""
    degree = [len(set(graph.adjacency[[v]].indices.tolist()) - {v}) for v in range(graph.num_nodes)]
    rings = []
    for v in range(graph.num_nodes):
        distance = walked(graph, v)
        at = [[degree[u] for u, hop in enumerate(distance) if hop == k] for k in range(RINGS)]
        rings.append([tuple((d, ring.count(d)) for d in sorted(set(ring))) for ring in at])
    return rings


@given(graphs(max_nodes=8))
@settings(max_examples=25)
def test_is_the_sum_over_rings(graph):
    rings = rings_of(graph)
    expected = [[sum(warped(a, b) for a, b in zip(x, y, strict=True) if a and b) for y in rings] for x in rings]
    np.testing.assert_allclose(structural_distance(graph), expected, atol=1e-9)


def test_nodes_of_the_same_shape_stand_together_however_far_they_are():
    """Two stars joined by a long path: the centres, and the leaves, are alike."""
    ends = [(0, i) for i in range(1, 5)] + [(5, i) for i in range(6, 10)]
    ends += [(0, 10), (10, 11), (11, 12), (12, 13), (13, 5)]
    position = struc2vec(Graph.from_edges(np.array(ends).T))
    distance = euclidean(position, position)
    assert distance[0, 5] < 1e-3
    assert distance[1, 6] < 1e-3
    assert distance[0, 1] > 0.1


@pytest.mark.parametrize("name", ZOO)
def test_any_small_graph_has_a_picture(name):
    position = struc2vec(ZOO[name])
    assert position.shape == (ZOO[name].num_nodes, 2)
    assert np.isfinite(position).all()
    assert np.array_equal(position, struc2vec(ZOO[name]))


def test_large_graphs_are_refused():
    with pytest.raises(AsgatError, match="at most 2000 of them, but the graph has 2001; set space to isomap"):
        struc2vec(Graph.from_edges([[0], [1]], 2001))
