import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import directed_graphs, graphs

from asgat.graph import Graph
from asgat.graph.homophily import adjusted_homophily, beta, edge_homophily, node_homophily

MEASURES = [beta, edge_homophily, adjusted_homophily]


@st.composite
def labelled_graphs(draw):
    graph = draw(graphs())
    labels = st.lists(st.integers(-1, 3), min_size=graph.num_nodes, max_size=graph.num_nodes)
    return graph, np.array(draw(labels), dtype=np.int64)


def neighbours(graph, y, v):
    """Labelled neighbours other than v itself; none for an unlabelled node."""
    dense = graph.adjacency.toarray()
    return [u for u in range(graph.num_nodes) if u != v and dense[v, u] > 0 and y[u] >= 0 and y[v] >= 0]


def node_by_hand(graph, y):
    out = []
    for v in range(graph.num_nodes):
        near = neighbours(graph, y, v)
        out.append(sum(y[u] == y[v] for u in near) / len(near) if near else 0.0)
    return out


def near(actual, expected):
    return (math.isnan(actual) and math.isnan(expected)) or actual == pytest.approx(expected, abs=1e-12)


@given(labelled_graphs())
def test_node_homophily_and_beta(case):
    graph, y = case
    expected = node_by_hand(graph, y)
    np.testing.assert_allclose(node_homophily(graph, y), expected, atol=1e-12)
    labelled = [b for b, label in zip(expected, y, strict=True) if label >= 0]
    assert near(beta(graph, y), sum(labelled) / len(labelled) if labelled else math.nan)


@given(labelled_graphs())
def test_edge_and_adjusted_homophily(case):
    graph, y = case
    edges = [(u, v) for v in range(graph.num_nodes) for u in neighbours(graph, y, v) if u < v]
    if not edges:
        assert math.isnan(edge_homophily(graph, y))
        assert math.isnan(adjusted_homophily(graph, y))
        return
    share = sum(y[u] == y[v] for u, v in edges) / len(edges)
    assert near(edge_homophily(graph, y), share)
    ends = [y[node] for edge in edges for node in edge]
    chance = sum((ends.count(c) / len(ends)) ** 2 for c in set(ends))
    assert near(adjusted_homophily(graph, y), (share - chance) / (1 - chance) if len(set(ends)) > 1 else math.nan)


@given(labelled_graphs())
def test_weights_and_self_loops_do_not_matter(case):
    graph, y = case
    plain = Graph.from_edges(graph.edge_index(), graph.num_nodes)
    for measure in MEASURES:
        for other in (plain, graph.with_self_loops("add"), graph.with_self_loops("remove")):
            assert near(measure(other, y), measure(graph, y))


@given(labelled_graphs(), st.permutations(range(4)))
def test_names_of_classes_do_not_matter(case, names):
    graph, y = case
    renamed = np.where(y >= 0, np.array(names)[y], -1)
    for measure in MEASURES:
        assert near(measure(graph, renamed), measure(graph, y))


def test_extremes():
    cycle = Graph.from_edges([[0, 1, 2, 3], [1, 2, 3, 0]], 5)
    assert beta(cycle, np.array([0, 0, 0, 0, 0])) == pytest.approx(0.8), "the isolated node counts as 0"
    assert (
        edge_homophily(cycle, np.array([0, 1, 0, 1, 0])),
        adjusted_homophily(cycle, np.array([0, 1, 0, 1, 0])),
    ) == (0, -1)
    pairs = Graph.from_edges([[0, 2], [1, 3]])
    assert adjusted_homophily(pairs, np.array([0, 0, 1, 1])) == 1.0


def test_labels_independent_of_edges_give_adjusted_homophily_near_zero():
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(0, 3000, (2, 30_000)), 3000)
    y = rng.choice(3, 3000, p=[0.7, 0.2, 0.1])
    assert abs(adjusted_homophily(graph, y)) < 0.02
    assert edge_homophily(graph, y) > 0.5


@given(directed_graphs(), st.data())
def test_every_directed_edge_counts_at_both_of_its_ends(graph, data):
    labels = st.lists(st.integers(-1, 3), min_size=graph.num_nodes, max_size=graph.num_nodes)
    y = np.array(data.draw(labels), dtype=np.int64)
    edges = [(u, v) for u, v in graph.edge_index().T.tolist() if u != v and y[u] >= 0 and y[v] >= 0]
    for v in range(graph.num_nodes):
        others = [b if a == v else a for a, b in edges if v in (a, b)]
        expected = sum(y[u] == y[v] for u in others) / len(others) if others else 0.0
        assert node_homophily(graph, y)[v] == pytest.approx(expected)
    assert near(edge_homophily(graph, y), sum(y[u] == y[v] for u, v in edges) / len(edges) if edges else math.nan)


@given(labelled_graphs())
def test_a_graph_with_every_edge_both_ways_has_the_same_values_directed(case):
    graph, y = case
    for measure in MEASURES:
        assert near(measure(Graph(graph.adjacency, directed=True), y), measure(graph, y))
