import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import ZOO, graphs

from asgat.errors import AsgatError
from reproduce.geom_gcn.relations import Relations, closest_pairs, direction, latent_relations


def points(count, seed=0):
    """In the unit disc, some of them on one spot."""
    position = np.random.default_rng(seed).uniform(-0.6, 0.6, (count, 2))
    position[count // 2 :] = position[: count - count // 2]
    return position


@given(count=st.integers(0, 12), pairs=st.integers(0, 80), block=st.sampled_from([1, 30, 2**22]))
def test_closest_pairs_are_the_first_of_all_pairs_in_order(count, pairs, block):
    position = points(count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reproduce.geom_gcn.relations._BLOCK", block)
        distance = np.hypot(*(position[:, None] - position).transpose(2, 0, 1))
        order = sorted((distance[i, j], i, j) for i in range(count) for j in range(i + 1, count))
        expected = [(i, j) for _, i, j in order[:pairs]]
        assert list(zip(*closest_pairs(position, pairs).tolist(), strict=True)) == expected


def test_directions():
    centre = np.zeros((5, 2))
    around = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    assert direction(centre, around).tolist() == [0, 1, 2, 3, 3]


@given(graphs())
def test_relations_of_a_graph(graph):
    position = points(graph.num_nodes)
    relations = latent_relations(graph, position)
    edges = {(v, u) for v, u in zip(*graph.edge_index().tolist(), strict=True) if v != u}
    near = closest_pairs(position, len(edges) // 2).T.tolist()
    latent = {pair for i, j in near for pair in ((i, j), (j, i))}
    found = list(zip(relations.node.tolist(), relations.neighbour.tolist(), relations.kind.tolist(), strict=True))
    assert {(v, u) for v, u, kind in found if kind < 4} == edges
    assert {(v, u) for v, u, kind in found if kind >= 4} == latent
    assert len(found) == len(edges) + len(latent)
    for v, u, kind in found:
        assert kind % 4 == 2 * (position[v, 0] <= position[u, 0]) + (position[v, 1] <= position[u, 1])


def test_nodes_have_as_many_latent_neighbours_as_neighbours_on_average():
    graph = ZOO["generic too"]
    relations = latent_relations(graph, points(20))
    assert (relations.kind < 4).sum() == (relations.kind >= 4).sum() > 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"node": [3]}, "name node 3, but it must be from 0 to 2"),
        ({"neighbour": [-1]}, "name neighbour -1, but it must be from 0 to 2"),
        ({"kind": [8]}, "name kind 8, but it must be from 0 to 7"),
    ],
)
def test_what_cannot_be(changes, sentence):
    values = {"node": [0], "neighbour": [1], "kind": [2], **changes}
    with pytest.raises(AsgatError, match=sentence):
        Relations(3, **{key: np.array(value) for key, value in values.items()})
