import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import directed_graphs, graphs

from asgat.disk import ordering
from asgat.disk.ordering import ORDERS, locality_order
from asgat.errors import AsgatError
from asgat.graph import Graph


@given(graphs(), st.sampled_from(["none", "rcm"]))
def test_an_order_names_every_node_once(graph, order):
    found = locality_order(graph.adjacency.indptr, graph.adjacency.indices, order)
    assert sorted(found) == list(range(graph.num_nodes))


def bandwidth(graph, order):
    place = np.argsort(order)
    row, col = graph.edge_index()
    return int(np.abs(place[row] - place[col]).max())


@pytest.mark.parametrize("order", ["rcm", "metis"])
def test_a_shuffled_line_is_found_again(order):
    """Blocks of a shuffled line have edges everywhere; in order they have one to the next block."""
    if order == "metis" and importlib.util.find_spec("pymetis") is None:
        pytest.skip("pymetis is not installed")
    shuffled = np.random.default_rng(0).permutation(200)
    graph = Graph.from_edges(np.stack([shuffled[:-1], shuffled[1:]]))
    found = locality_order(graph.adjacency.indptr, graph.adjacency.indices, order, parts=4)
    cut = np.diff((np.argsort(found)[graph.edge_index()] // 50), axis=0)
    assert np.count_nonzero(cut) <= 2 * 6
    assert np.count_nonzero(np.diff(graph.edge_index() // 50, axis=0)) > 100
    if order == "rcm":
        assert bandwidth(graph, found) == 1


@given(directed_graphs(), st.sampled_from(["none", "rcm"]))
def test_directions_do_not_matter(graph, order):
    found = locality_order(graph.adjacency.indptr, graph.adjacency.indices, order, directed=True)
    without = graph.undirected.adjacency
    assert found.tolist() == locality_order(without.indptr, without.indices, order).tolist()


def test_unknown_orders_and_a_missing_metis_are_named(monkeypatch):
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32)
    with pytest.raises(AsgatError, match=f"one of {', '.join(ORDERS)}"):
        locality_order(indptr, indices, "best")  # type: ignore[arg-type]

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(ordering, "import_module", missing)
    with pytest.raises(AsgatError, match=r"asgat\[metis\]"):
        locality_order(indptr, indices, "metis")
