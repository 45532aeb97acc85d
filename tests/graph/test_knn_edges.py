import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import ZOO, directed_graphs
from tests.training.tiny import tiny_dataset

from asgat.errors import AsgatError
from asgat.estimator.classifier import ASGATClassifier
from asgat.graph import Graph
from asgat.graph import knn_edges as similar
from asgat.graph.knn_edges import add_knn_edges
from asgat.nn.registry import make_config
from asgat.tuning.evaluation import Evaluation


def cosines(x):
    """Cosines between rows whose columns are weighted by ln((1 + n) / (1 + rows that have it)) + 1, pair by pair."""
    n = len(x)
    weighted = x * [math.log((1 + n) / (1 + np.count_nonzero(column))) + 1 for column in x.T]
    table = np.full((n, n), -np.inf)
    for u in range(n):
        for v in range(n):
            lengths = np.linalg.norm(weighted[u]) * np.linalg.norm(weighted[v])
            if u != v:
                table[u, v] = weighted[u] @ weighted[v] / lengths if lengths else 0.0
    return table


@st.composite
def features(draw, n):
    """Words, counts and measurements, rows without any among them."""
    width = draw(st.integers(1, 5))
    value = draw(st.sampled_from([st.integers(0, 1), st.integers(-2, 3), st.floats(-2, 2, width=16)]))
    rows = draw(st.lists(st.lists(value, min_size=width, max_size=width), min_size=n, max_size=n))
    return np.array(rows, dtype=np.float32)


@given(st.sampled_from(sorted(ZOO)), st.data())
def test_every_node_is_joined_to_those_most_like_it_and_to_no_others(name, data):
    graph, number, weight = ZOO[name], data.draw(st.integers(1, 4)), data.draw(st.sampled_from([0.1, 0.5, 2.0]))
    n = graph.num_nodes
    x = data.draw(features(n))
    before, after = graph.adjacency.toarray(), add_knn_edges(graph, x, number, weight).adjacency.toarray()
    np.testing.assert_array_equal(after, after.T)
    between = before[(before > 0) & ~np.eye(n, dtype=bool)]
    usual = between.mean() if len(between) else 1.0
    table = cosines(x.astype(np.float64))
    ranked = -np.sort(-table, axis=1)
    least = np.array([max(ranked[v, min(number, n - 1) - 1], 0.0) if n > 1 else 0.0 for v in range(n)])
    new = after != before
    np.testing.assert_allclose(after[new], weight * usual, rtol=1e-12)
    assert np.all(after >= before)
    for u, v in np.argwhere(new):
        assert table[u, v] > 0, "nodes that share nothing are not joined"
        assert table[u, v] >= min(least[u], least[v]) - 1e-6, "one of the two chose the other"
    linked = (after >= weight * usual * (1 - 1e-12)) & ~np.eye(n, dtype=bool)
    for v in range(n):
        wanted = min(number, np.count_nonzero(table[v] > 1e-6))
        assert np.count_nonzero(linked[v] & (table[v] >= least[v] - 1e-6)) >= wanted
        sure = table[v] > np.maximum(least[v] + 1e-6, 1e-6)
        assert np.all(linked[v][sure]), "every node above the last selected one is selected"


@pytest.mark.parametrize("x", [np.zeros((3, 2), "f"), np.zeros((3, 0), "f"), np.eye(3, dtype="f")])
def test_features_that_say_nothing_join_nothing(x):
    graph = Graph.from_edges([[0], [1]], 3)
    assert abs(add_knn_edges(graph, x, 2, 1.0).adjacency - graph.adjacency).max() == 0


def test_one_node_has_nobody_to_be_joined_to():
    assert add_knn_edges(Graph.from_edges(np.zeros((2, 0)), 1), np.ones((1, 2), "f"), 3, 1.0).num_entries == 0


def test_more_nodes_than_can_be_compared_are_refused(monkeypatch):
    monkeypatch.setattr(similar, "MOST_NODES", 2)
    with pytest.raises(AsgatError, match="refused above 2 of them, and this graph has 3; a model with similar=0"):
        add_knn_edges(Graph.from_edges([[0], [1]], 3), np.ones((3, 2), "f"), 1, 1.0)


def test_a_search_does_not_mistake_one_graph_for_another():
    evaluation = Evaluation(tiny_dataset(), "asgat-plus", [0], 0)
    configs = [make_config("asgat-plus", adjacency=True, similar=number) for number in (0, 2)]
    configs.append(configs[1].replace(similar_weight=0.9))
    dense = [evaluation.inputs(config)[0].to_dense() for config in configs]
    assert not torch.equal(dense[0], dense[1])
    assert not torch.equal(dense[1], dense[2])
    assert len({id(evaluation.inputs(config)[1]) for config in configs}) == 3


def test_a_node_of_another_graph_attends_to_those_like_it_without_a_link():
    data = tiny_dataset()
    settings = {"similar": 2, "hidden": 4, "heads": 2, "k": 3, "order": 4}
    model = ASGATClassifier(epochs=5, settings=settings).fit(data.graph, data.y, x=data.x)
    alone = Graph.from_edges(np.zeros((2, 0)), data.num_nodes)
    one = model.predict_proba(alone, data.x)
    others = data.x.copy()
    others[1:] *= -1
    assert np.abs(model.predict_proba(alone, others)[0] - one[0]).max() > 1e-3
    plain = ASGATClassifier(epochs=5, settings={**settings, "similar": 0}).fit(data.graph, data.y, x=data.x)
    np.testing.assert_allclose(plain.predict_proba(alone, others)[0], plain.predict_proba(alone, data.x)[0], atol=1e-6)


def test_where_all_are_alike_nobody_is_chosen_by_all():
    kinds = np.eye(5, dtype=np.float32)[np.arange(100) % 5]
    joined = add_knn_edges(Graph.from_edges(np.zeros((2, 0)), 100), kinds, 3, 1.0)
    assert set(np.diff(joined.adjacency.indptr)) == {6}, "the next three of the kind, and the three before"
    assert np.all(np.diff(joined.edge_index() % 5, axis=0) == 0)


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_blocks_and_dense_products_change_nothing(monkeypatch, share):
    rng = np.random.default_rng(3)
    x = (rng.random((40, 30)) * (rng.random((40, 30)) < share)).astype(np.float32)
    graph = Graph.from_edges([[0], [1]], 40)
    whole = add_knn_edges(graph, x, 3, 1.0).adjacency.toarray()
    for name, value in (("BLOCK", 1), ("BLOCK", 90), ("DENSE", 0.0), ("DENSE", 2.0)):
        monkeypatch.setattr(similar, name, value)
        np.testing.assert_array_equal(add_knn_edges(graph, x, 3, 1.0).adjacency.toarray(), whole)


def test_new_links_are_measured_by_those_between_different_nodes():
    graph = Graph.from_edges([[0, 1, 2], [1, 2, 2]], 4, [1e308, 1.5e308, 1e-3])
    joined = add_knn_edges(graph, np.array([[1, 0], [0, 1], [0, 1], [1, 0]], "f"), 1, 0.5).adjacency.toarray()
    assert joined[0, 3] == pytest.approx(0.625e308)
    assert joined[1, 2] == 1.5e308


def test_advice_that_knows_nothing_of_the_new_links_is_not_taken():
    data = tiny_dataset()
    graph = Graph.from_edges([[0], [1]], data.num_nodes)
    k = [
        ASGATClassifier(epochs=1, settings={"similar": number}).fit(graph, data.y, x=data.x).config_.to_dict()["k"]
        for number in (0, 2)
    ]
    assert k == [1, 10]
    whole = ASGATClassifier(epochs=1, settings={"similar": 2}).fit(data.graph, data.y, x=data.x)
    assert whole.config_.to_dict()["k"] == whole.health_.advice[0].value, "other advice is"


@given(st.data())
def test_edges_keep_their_direction_and_new_ones_run_both_ways(data):
    graph = data.draw(directed_graphs())
    x = data.draw(features(graph.num_nodes))
    joined = add_knn_edges(graph, x, 2, 0.5)
    assert joined.directed
    before, after = graph.adjacency.toarray(), joined.adjacency.toarray()
    empty = Graph.from_edges(np.zeros((2, 0)), graph.num_nodes)
    between = before[(before > 0) & ~np.eye(len(before), dtype=bool)]
    new = 0.5 * (between.mean() if len(between) else 1.0) * (add_knn_edges(empty, x, 2, 1.0).adjacency.toarray() > 0)
    np.testing.assert_allclose(after, np.maximum(before, new), rtol=1e-12)
