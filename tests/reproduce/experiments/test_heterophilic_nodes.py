import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import graphs

from asgat.graph import Graph
from asgat.graph.homophily import node_homophily
from reproduce.experiments.heterophilic_nodes import VOTE, bins, majority_vote


def test_bins_include_their_upper_end():
    beta = np.array([0.0, 0.1, 1 / 9, 0.2, 3 / 10, 0.1 + 0.2, 0.31, 0.4, 0.5, 0.51, 1.0])
    assert bins(beta).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 5]


def test_the_vote_of_a_star():
    star = Graph.from_edges([[0, 0, 0, 0], [1, 2, 3, 0]], 5)  # with a self-loop, which does not vote
    assert majority_vote(star, np.array([1, 1, 1, 0, 0]), 2).tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]
    # One neighbour of each class: a tie between three, of which one is right; and an unlabelled hub.
    assert majority_vote(star, np.array([2, 0, 1, 2, 0]), 3)[0] == pytest.approx(1 / 3)
    assert majority_vote(star, np.array([-1, 0, 1, 2, 0]), 3).tolist() == [0.0] * 5


@given(graphs(), st.integers(0, 2**31))
def test_the_vote_agrees_with_counting(graph, seed):
    y = np.random.default_rng(seed).integers(-1, 3, graph.num_nodes)
    vote = majority_vote(graph, y, 3)
    for v in range(graph.num_nodes):
        near = [u for u in np.flatnonzero(graph.adjacency[[v]].toarray()[0]) if u != v and y[u] >= 0]
        counts = [sum(y[u] == c for u in near) for c in range(3)]
        winners = [c for c in range(3) if near and counts[c] == max(counts)]
        assert vote[v] == pytest.approx(1 / len(winners) if y[v] in winners else 0.0)
    sure = node_homophily(graph, y) > 0.5
    assert (vote[sure & (y >= 0)] == 1.0).all()


def test_accuracies_are_those_of_the_predictions(run_quick, study):
    result, text, files = run_quick("heterophilic-nodes")
    assert [row["model"] for row in result["rows"]] == [VOTE, "asgat-cheb", "gcn"]
    trained = study.train("karate", "gcn", 0)
    data = trained.dataset
    place = bins(node_homophily(data.graph, data.y))
    row = result["rows"][2]
    for run in trained.runs:
        for i in range(5):
            nodes = [v for v in trained.split(run).test if place[v] == i]
            expected = np.mean(trained.predictions(run)[nodes] == data.y[nodes]) if nodes else None
            assert row["per_run"][run][i] == (pytest.approx(expected) if nodes else None)
    assert row["test_nodes"] == [np.mean([(place[s.test] == i).sum() for s in data.splits]) for i in range(5)]
    assert "≤ 0.5" in text
    assert [file.name for file in files] == ["heterophilic-nodes.json", "heterophilic-nodes.png"]
