"""Figures of a graph, counted by hand, and the advice they lead to."""

import json

import numpy as np
import pytest

from asgat.data import contextual_sbm, load_dataset
from asgat.errors import AsgatError
from asgat.estimator.encoded_graph import encode_user_graph
from asgat.estimator.health import Health, advise, examine
from asgat.graph import Graph
from asgat.graph.homophily import beta
from asgat.tabular.column import Column
from asgat.tabular.conversions import as_user_graph
from asgat.tabular.user_graph import UserGraph

# 0-1-2 in a row, 1-0 again, 3 by itself but for a loop, 4 alone, 5-6 with weight zero.
EDGES = np.array([[0, 1, 1, 3, 5], [1, 2, 0, 3, 6]])


@pytest.fixture(scope="module")
def health():
    label = Column.of_texts("kind", ["a", "a", "b", "a", "b", "", "b"])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    own = UserGraph([f"n{i}" for i in range(7)], EDGES, [], weight, label)
    encoded = encode_user_graph(own)
    return examine(own, encoded.dataset, encoded.encoding.class_names, encoded.notes)


def test_counts(health):
    assert (health.nodes, health.edges, health.given_edges) == (7, 3, 5)
    assert (health.duplicates, health.self_loops, health.zero_weights) == (1, 1, 1)
    assert (health.components, health.largest_component, health.isolated) == (5, 3, 3)
    assert health.mean_degree == pytest.approx(4 / 7)
    assert health.classes == {"a": 3, "b": 3}
    assert health.unlabelled == 1
    assert sum(health.parts.values()) == 6


def test_homophily(health):
    assert health.judged == 3
    assert health.beta == pytest.approx((1 + 0.5 + 0) / 6)
    assert health.beta_histogram == [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]
    assert health.edge_homophily == pytest.approx(0.5)


def test_what_was_changed_is_said(health):
    changes = " ".join(health.changes)
    for words in ("1 row of the edges repeat", "1 edge of weight 0", "1 self-loop: kept", "3 nodes without an edge"):
        assert words in changes


def test_it_goes_through_json(health):
    assert Health.from_dict(json.loads(json.dumps(health.to_dict()))) == health
    with pytest.raises(AsgatError, match="fit again"):
        Health.from_dict({"advice": []})


def test_beta_is_that_of_the_package():
    dataset = load_dataset("karate")
    found = examine(as_user_graph(dataset.graph), dataset, ["0", "1"], [])
    assert found.beta == pytest.approx(beta(dataset.graph, dataset.y))
    assert sum(found.beta_histogram) == found.judged == 34


def settings(dataset, share, degree, largest):
    return {advice.setting: advice.value for advice in advise(dataset, share, degree, largest)}


def test_advice_follows_the_figures():
    club, blocks = load_dataset("karate"), contextual_sbm()
    assert settings(club, 0.9, 4.6, 34) == {"k": 12, "order": 10, "form": "dense"}
    assert settings(blocks, 0.2, 3.0, 760) == {"k": 9, "order": 12, "form": "exact table"}
    assert settings(blocks, 0.2, 30.0, 760)["k"] == 6
    assert settings(blocks, None, 3.0, 760)["k"] == 9
    assert settings(blocks, 0.9, 3.0, 4)["k"] == 3
    assert settings(blocks, 0.9, 3.0, 1)["k"] == 1


def test_advice_can_be_followed():
    from asgat.nn.registry import make_config

    for share in (0.1, 0.9, None):
        advised = settings(load_dataset("karate"), share, 3.0, 34)
        make_config("asgat-plus", k=advised["k"], order=advised["order"])


def test_a_graph_without_edges():
    own = UserGraph(["a", "b", "c", "d"], np.zeros((2, 0), dtype=np.int64), [], None, Column.of_texts("k", [*"xxyy"]))
    encoded = encode_user_graph(own)
    found = examine(own, encoded.dataset, ["x", "y"], [])
    assert (found.edges, found.isolated, found.judged, found.beta) == (0, 4, 0, 0.0)
    assert np.isnan(found.edge_homophily)
    assert own.graph.num_entries == Graph.from_edges([[], []], 4).num_entries


def examined(edges, directed=False, reciprocal=None):
    n = int(edges.max()) + 1
    label = Column.of_texts("kind", [str(i % 2) for i in range(n)])
    own = UserGraph([str(i) for i in range(n)], edges, [], None, label, directed=directed, reciprocal=reciprocal)
    encoded = encode_user_graph(own)
    return examine(own, encoded.dataset, encoded.encoding.class_names, encoded.notes)


def test_counts_of_a_directed_graph():
    # 0 to 1 twice and back, 1 to 2, 3 to 2, a loop at 4
    health = examined(np.array([[0, 0, 1, 1, 3, 4], [1, 1, 0, 2, 2, 4]]), directed=True)
    assert health.directed
    assert (health.nodes, health.edges, health.given_edges) == (5, 5, 6)
    assert (health.duplicates, health.self_loops, health.isolated) == (1, 1, 0)
    assert (health.components, health.largest_component) == (2, 4)
    assert health.mean_degree == pytest.approx(4 / 5)
    assert health.judged == 4, "2 has edges, though none that begin there"
    assert "1 row of the edges repeat another: merged." in health.changes
    assert Health.from_dict(json.loads(json.dumps(health.to_dict()))) == health


@pytest.mark.parametrize(
    ("reciprocal", "words"),
    [(0.03, "Only 3 % of the edges also run"), (0.0, "None of the edges also run"), (0.2, None), (None, None)],
)
def test_edges_that_seem_to_have_a_direction_are_pointed_out(reciprocal, words):
    line = np.stack([np.arange(20), np.arange(1, 21)])
    advice = [change for change in examined(line, reciprocal=reciprocal).changes if "--directed" in change]
    assert [change.startswith(words) for change in advice] == [True] * (words is not None)
    assert not any("--directed" in change for change in examined(line, True, reciprocal).changes)


def test_figures_of_earlier_versions_say_nothing_of_directions(health):
    values = {key: value for key, value in health.to_dict().items() if key not in ("directed", "reciprocal")}
    assert Health.from_dict(values).directed is False
