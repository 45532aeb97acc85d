import numpy as np

from asgat.graph import Graph
from asgat.graph import graph_digest as module
from asgat.graph.graph_digest import graph_digest

EDGES = np.array([[0, 1, 2], [1, 2, 3]])


def test_it_is_that_of_the_content():
    first, second = Graph.from_edges(EDGES, 4), Graph.from_edges(EDGES[::-1], 4)
    assert first.digest == second.digest
    assert len(first.digest) == 64


def test_every_part_of_the_graph_changes_it():
    weights = np.array([1.0, 2.0, 1.0])
    graphs = [
        Graph.from_edges(EDGES, 4),
        Graph.from_edges(EDGES, 5),
        Graph.from_edges(EDGES[:, :2], 4),
        Graph.from_edges(EDGES, 4, weights),
    ]
    assert len({graph.digest for graph in graphs}) == 4


def test_weights_of_one_are_no_weights_and_integers_have_any_width():
    graph = Graph.from_edges(EDGES, 4).adjacency
    assert graph_digest(graph.indptr.astype(np.int64), graph.indices.astype(np.int64)) == graph_digest(
        graph.indptr.astype(np.int32), graph.indices.astype(np.int32), graph.data
    )


def test_it_does_not_depend_on_how_much_is_read_at_once(monkeypatch):
    graph = Graph.from_edges(EDGES, 4, np.array([1.0, 1.0, 3.0]))
    whole = graph.digest
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    assert graph_digest(graph.adjacency.indptr, graph.adjacency.indices, graph.adjacency.data) == whole
