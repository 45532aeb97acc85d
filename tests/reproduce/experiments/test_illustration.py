import dataclasses

import numpy as np
import pytest

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.graph import Graph
from reproduce.experiments.illustration import by_hop, central_node, layout

PATH = Graph.from_edges([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]], 7)  # and an isolated node


def test_attention_by_hop():
    index = np.array([[v, min(v + 1, 5), 0] for v in range(7)])
    weight = np.tile([0.5, 0.25, 0.25], (7, 1))
    shares = np.zeros(5)
    place = np.abs(np.subtract.outer(np.arange(7), np.arange(7)))
    place[6, :6] = place[:6, 6] = 4
    for v in range(7):
        for u, a in zip(index[v], weight[v], strict=True):
            shares[min(place[v, u], 4)] += a / 7
    assert by_hop(PATH, index, weight) == pytest.approx(shares.tolist())
    assert sum(by_hop(PATH, index, weight)) == pytest.approx(1.0)


def test_rings_are_hops_and_nodes_do_not_overlap():
    hop = [0, 1, 1, 2, 2, 2, 3]
    place = layout(hop, [[0, 1], [0, 2], [1, 3], [2, 4], [2, 5], [3, 6], [4, 5]])
    assert np.linalg.norm(place, axis=1) == pytest.approx(hop)
    apart = np.linalg.norm(place[:, None] - place[None], axis=-1) + np.eye(len(hop))
    assert apart.min() > 0.5


def test_the_central_node_depends_only_on_the_graph():
    karate = load_dataset("karate")
    centre = central_node(karate)
    assert 0 <= centre < 34
    shuffled = dataclasses.replace(karate, y=1 - karate.y)
    assert central_node(shuffled) == centre
    with pytest.raises(AsgatError, match="no node with three nodes"):
        central_node(dataclasses.replace(karate, graph=Graph.from_edges([[0], [1]], 34)))


def test_illustration(run_quick):
    result, text, files = run_quick("illustration")
    low, high = result["rows"]
    assert low["slope"] == min(result["slopes"])
    assert high["slope"] == max(result["slopes"])
    for row in (low, high):
        assert sum(row["attention"]) + row["outside"] == pytest.approx(1.0)
        assert sum(row["by_hop"]) == pytest.approx(1.0, abs=1e-5)
        assert sum(a > 0 for a in row["attention"]) <= result["k"]
    assert result["nodes"][result["hop"].index(0)] == result["centre"]
    assert all(abs(result["hop"][u] - result["hop"][v]) <= 1 for u, v in result["edges"])
    assert "low-pass" in text
    assert [file.name for file in files] == ["illustration.json", "illustration.png"]


def test_rounding_makes_no_share_negative(run_quick):
    result, _, _ = run_quick("illustration")
    assert all(row["outside"] >= 0 for row in result["rows"])
