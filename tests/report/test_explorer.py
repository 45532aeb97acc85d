"""The explorer's numbers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import graphs

from asgat.estimator.trained_run import load_run
from asgat.explain import AttentionRows, explain
from asgat.graph import Graph
from asgat.report import explorer as module
from asgat.report.explorer import (
    FEW,
    LINES,
    MOST,
    NEAR,
    SECOND,
    WIDTH,
    explorer,
    neighbourhood,
    node_features,
    renumber,
    sample_nodes,
    telling_heads,
)


def certain(prediction):
    """Probabilities of 1."""
    return np.eye(prediction.max() + 1)[prediction]


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=200), st.integers(5, 60), st.randoms(use_true_random=False))
def test_a_sample_has_some_of_every_class_and_mistakes(labels, size, random):
    y = np.array(labels)
    wrong = np.array([random.random() < 0.3 for _ in labels])
    nodes = sample_nodes(y, wrong, size + 5)
    assert len(nodes) == len(np.unique(nodes)) == min(len(y), size + 5)
    assert (np.diff(nodes) > 0).all()
    assert set(y[nodes]) == set(y)
    assert wrong[nodes].sum() >= min(wrong.sum(), (size + 5) // 4)
    assert np.array_equal(nodes, sample_nodes(y, wrong, size + 5))


@given(graphs(max_nodes=12), st.integers(0, 11))
def test_a_small_neighbourhood_is_all_within_two_hops(graph, node):
    node %= graph.num_nodes
    distance = dense.hops(graph)[node]
    found = neighbourhood(graph, node, np.array([], dtype=np.int64))
    assert found["near"] == np.flatnonzero(distance == 1).tolist()
    assert found["second"] == np.flatnonzero(distance == 2).tolist()
    inside = np.flatnonzero((distance >= 0) & (distance <= 2))
    edges = {frozenset(edge) for edge in found["edges"]}
    matrix = graph.adjacency.toarray() > 0
    assert edges == {frozenset((u, v)) for u in inside for v in inside if u < v and matrix[u, v]}
    assert found["totals"] == [len(found["near"]), len(found["second"]), len(edges)]


def test_a_large_neighbourhood_is_bounded_and_keeps_attended_nodes():
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 400, (2, 12000))
    hub = np.stack([np.zeros(200, dtype=np.int64), np.arange(1, 201)])
    graph = Graph.from_edges(np.concatenate([ends, hub], axis=1), 400)
    distance = dense.hops(graph)[0]
    wanted = np.concatenate([np.flatnonzero(distance == 1)[-5:], np.flatnonzero(distance == 2)[-5:]])
    found = neighbourhood(graph, 0, wanted)
    assert (len(found["near"]), len(found["second"]), len(found["edges"])) == (NEAR, SECOND, LINES)
    assert found["totals"][0] == (distance == 1).sum()
    assert set(wanted) <= {*found["near"], *found["second"]}
    joined = {end for edge in found["edges"] for end in edge}
    assert {*found["near"], *found["second"]} <= joined  # every node drawn has an edge


def test_renumbering_is_consistent():
    drawn = [{"node": 7, "near": [9], "second": [3], "edges": [[7, 9], [9, 3]], "heads": [[[3, 100, 2, 0, 1]]]}]
    numbers = renumber(drawn)
    assert list(numbers) == [7, 9, 3]
    assert drawn[0] == {"node": 0, "near": [1], "second": [2], "edges": [0, 1, 1, 2], "heads": [[[2, 100, 2, 0, 1]]]}


def test_the_explorer_agrees_with_explain(karate_run):
    prediction = karate_run.logits().argmax(-1).numpy()
    held = explorer(karate_run, certain(prediction), [[False] * 3, [False]])
    assert held["total"] == len(held["picks"]) == 34
    ids = held["nodes"]["id"]
    assert held["nodes"]["class"] == [int(karate_run.y[int(name)]) for name in ids]
    assert held["nodes"]["prediction"] == [int(prediction[int(name)]) for name in ids]
    for node in (0, 33):
        (pick,) = [pick for pick in held["picks"] if ids[pick["node"]] == str(node)]
        rows = explain(karate_run, node)
        for layer, heads in enumerate(pick["heads"]):
            for head, flat in enumerate(heads):
                attended = [(int(ids[flat[i]]), flat[i + 1] / 1e4, flat[i + 2]) for i in range(0, len(flat), WIDTH)]
                same = [row for row in rows if (row["layer"], row["head"]) == (layer + 1, head + 1)]
                assert [(u, hops) for u, _, hops in attended] == [(row["node"], row["hops"]) for row in same]
                assert [w for _, w, _ in attended] == pytest.approx([row["weight"] for row in same], abs=1e-4)


def test_a_large_graph_is_sampled(karate_run, monkeypatch):
    monkeypatch.setattr(module, "BUDGET", 1)
    held = explorer(karate_run, certain(karate_run.y), [[False] * 3, [False]])
    assert len(held["picks"]) == 20
    assert held["total"] == 34


def test_a_model_without_attention_shows_neighbourhoods(gcn):
    from asgat.estimator.trained_run import load_run

    run = load_run(gcn)
    held = explorer(run, certain(run.y))
    assert len(held["picks"]) == 34
    assert all(pick["heads"] == [] and pick["near"] for pick in held["picks"])


def test_the_neighbourhood_in_a_directed_graph_has_edges_with_directions():
    graph = Graph.from_edges([[0, 1, 2, 3, 3, 1], [1, 0, 1, 2, 3, 1]], 5, directed=True)
    found = neighbourhood(graph, 1, np.array([], dtype=np.int64))
    assert (found["near"], found["second"]) == ([0, 2], [3])
    assert sorted(map(tuple, found["edges"])) == [(0, 1), (1, 0), (2, 1), (3, 2)]


def test_the_heads_whose_attention_depends_on_the_classes_are_telling():
    y = np.array([0, 0, 1, 1])
    same, other, anyone = [[1], [0], [3], [2]], [[2], [3], [0], [1]], [[1], [2], [3], [1]]
    index = np.array([anyone, same, other])

    def rows(*weights):
        weight = np.ones(index.shape) * np.array(weights)[:, None, None]
        zero = np.zeros(index.shape, dtype=np.int32)
        return AttentionRows(np.arange(4), index, weight, weight, zero, np.zeros((*index.shape, 4)))

    usual = [[False] * 3]
    assert telling_heads([rows(1.0, 1.0, 0.6)], y, usual) == [[0, 1], [0, 2]]
    assert telling_heads([rows(1.0, 1.0, 0.2)], y, usual) == [[0, 1]]
    assert telling_heads([rows(1.0, 1.0, 0.2)], y, [[False, True, False]])[0] == [0, 2]
    assert telling_heads([rows(0.1, 0.1, 0.1), rows(1.0, 1.0, 1.0)], y, 2 * usual) == [[1, 1], [1, 2]]
    assert telling_heads([rows(1.0, 1.0, 1.0)], y, [[True] * 3]) == telling_heads([], y, []) == []


def test_the_likeliest_classes_of_a_picked_node_come_first(karate_run):
    probability = np.full((34, 2), [0.3, 0.7])
    pick = explorer(karate_run, probability, [[False] * 3, [False]])["picks"][0]
    assert pick["likely"] == [[1, 0.7], [0, 0.3]]
    assert pick["features"] == [["feature 0", "1"]]


def with_features(run, x):
    x = np.asarray(x, dtype=np.float32)
    dataset = replace(run.dataset, x=x)
    return replace(run, dataset=dataset, feature_names=[f"f{i}" for i in range(x.shape[1])])


def test_few_columns_are_all_shown_and_of_many_those_that_stand_out(karate_run):
    few = with_features(karate_run, np.tile([0.0, -2.5], (34, 1)))
    assert node_features(few, np.array([3])) == [[["f0", "0"], ["f1", "-2.5"]]]
    many = with_features(karate_run, np.tile(np.arange(FEW + 1), (34, 1)))
    (found,) = node_features(many, np.array([3]))
    assert found == [[f"f{i}", str(i)] for i in range(FEW, FEW - MOST, -1)]
    sparse = with_features(karate_run, np.eye(34))
    assert node_features(sparse, np.array([5, 6])) == [[["f5", "1"]], [["f6", "1"]]]


def test_names_of_a_users_graph_are_shown(named):
    run = load_run(named)
    assert node_features(run, np.array([5])) == [[["is 5", "1"]]]


def test_a_long_name_is_cut(karate_run):
    run = replace(with_features(karate_run, np.ones((34, 1))), feature_names=["n" * 100])
    assert node_features(run, np.array([0]))[0][0][0] == "n" * 59 + "…"
