from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import edge_lists

from asgat.errors import AsgatError
from asgat.tabular.column import Column
from asgat.tabular.user_graph import FEWEST, UserGraph, reciprocal_share


def test_nodes_can_be_selected_like_rows_of_an_array():
    columns = [Column.of_array(name, np.arange(4.0)) for name in ("x0", "x1")]
    graph = UserGraph(["a", "b", "c", "d"], np.array([[0, 1, 2], [1, 2, 0]]), columns)
    part = graph[np.array([3, 1])]
    assert part.shape == (2,)
    assert len(part) == 2
    assert part.nodes.tolist() == [3, 1]
    assert part[1:].nodes.tolist() == [1]
    assert graph[np.array([True, False, False, True])].nodes.tolist() == [0, 3]
    assert graph[np.array([2]), ...].nodes.tolist() == [2]
    assert part.graph is graph.graph
    assert len(part.select(None)) == 4
    assert repr(part) == "UserGraph('graph', nodes=4, edges=3, features=2, chosen=2)"


def test_nodes_in_another_order():
    label, split = Column.of_texts("kind", ["p", "", "q"]), Column.of_texts("part", ["train", "val", "test"])
    weight = np.array([1.0, 2.0])
    features = [Column.of_array("x0", np.arange(3.0))]
    graph = UserGraph(
        list("abc"),
        np.array([[0, 1], [1, 2]]),
        features,
        weight,
        label,
        [split],
        chosen=np.array([2, 0]),
        directed=True,
    )
    moved = graph.reordered(np.array([2, 0, 1]))
    assert moved.ids == ["c", "a", "b"]
    assert [moved.ids[node] for node in moved.nodes] == ["c", "a"]
    assert moved.graph.adjacency.toarray().tolist() == [[0, 0, 0], [0, 0, 1], [2, 0, 0]]
    assert moved.features[0].texts() == ["2", "0", "1"]
    assert moved.label is not None
    assert (moved.label.texts(), moved.splits[0].texts()) == (["q", "p", ""], ["test", "train", "val"])
    assert graph.reordered(np.arange(3)) is graph


def test_a_column_becomes_the_label():
    columns = [Column.of_texts("kind", ["a", "b"]), Column.of_texts("f", ["1", "2"])]
    graph = UserGraph(["a", "b"], np.array([[0], [1]]), columns)
    labelled = graph.with_label("kind")
    assert labelled.label is columns[0]
    assert labelled.features == columns[1:]
    assert labelled.with_label("kind") is labelled
    assert graph.with_label("none").label is None
    assert graph.with_splits([columns[0]]).splits == [columns[0]]


def test_labels_of_selected_nodes():
    label = Column.of_texts("kind", ["a", "", "b", "a"])
    graph = UserGraph(list("wxyz"), np.array([[0], [1]]), [], label=label)
    assert graph.labelled.nodes.tolist() == [0, 2, 3]
    assert graph[1:].labelled.y.tolist() == ["b", "a"]
    numbers = replace(graph, label=Column.of_array("kind", np.array([3, 1, 1, 3])))
    assert numbers.y.dtype == np.int64
    assert numbers[[3, 1]].y.tolist() == [3, 1]
    with pytest.raises(AsgatError, match=r"1 of the 4 selected nodes have no label; graph\.labelled selects"):
        _ = graph.y
    with pytest.raises(AsgatError, match="The graph has no labels"):
        _ = replace(graph, label=None).labelled


@given(edge_lists(max_nodes=12), st.booleans())
def test_it_is_the_share_of_distinct_edges_between_different_nodes(edges, listed_once):
    pairs = {(u, v) for u, v in edges.ends.T.tolist() if u != v}
    share = reciprocal_share(edges.ends, edges.num_nodes, listed_once)
    if len(pairs) < FEWEST or (listed_once and all(u < v for u, v in pairs)):
        assert share is None
    else:
        assert share == pytest.approx(sum((v, u) in pairs for u, v in pairs) / len(pairs))


def test_a_list_with_the_lower_node_first_may_be_one_of_undirected_edges():
    line = np.stack([np.arange(20), np.arange(1, 21)])
    assert reciprocal_share(line, 21, listed_once=True) is None
    assert reciprocal_share(line[::-1], 21, listed_once=True) == 0.0
    assert reciprocal_share(line, 21) == 0.0
