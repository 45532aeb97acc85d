import numpy as np
from hypothesis import given
from tests.strategies import ZOO, directed_graphs, graphs

from asgat.graph.hops import hop_distances


def walked(graph, source):
    """Distances by growing the set of nodes reached."""
    distance, edge = {source: 0}, set(zip(*graph.edge_index().tolist(), strict=True))
    for hop in range(1, graph.num_nodes + 1):
        for v in [v for v, at in distance.items() if at == hop - 1]:
            for u in range(graph.num_nodes):
                if (v, u) in edge:
                    distance.setdefault(u, hop)
    return [distance.get(u, -1) for u in range(graph.num_nodes)]


@given(graphs())
def test_is_the_number_of_hops(graph):
    distance = hop_distances(graph, np.arange(graph.num_nodes))
    assert distance.tolist() == [walked(graph, v) for v in range(graph.num_nodes)]


def test_sources_may_be_any():
    assert hop_distances(ZOO["path"], np.array([5, 2])).tolist() == [[5, 4, 3, 2, 1, 0], [2, 1, 0, 1, 2, 3]]
    assert hop_distances(ZOO["path"], np.empty(0, dtype=np.int64)).shape == (0, 6)


@given(directed_graphs())
def test_directions_are_ignored(graph):
    nodes = np.arange(graph.num_nodes)
    assert np.array_equal(hop_distances(graph, nodes), hop_distances(graph.undirected, nodes))
