import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import ZOO, graphs

from asgat.errors import AsgatError
from asgat.geometry.relations import Relations, closest_pairs, direction, find_relations, latent_relations
from asgat.geometry.spaces import SPACES, euclidean, hyperbolic
from asgat.graph import Graph


def points(count, seed=0):
    """In the unit disc, some of them on one spot."""
    position = np.random.default_rng(seed).uniform(-0.6, 0.6, (count, 2))
    position[count // 2 :] = position[: count - count // 2]
    return position


@given(count=st.integers(0, 12), pairs=st.integers(0, 80), block=st.sampled_from([1, 30, 2**22]))
def test_closest_pairs_are_the_first_of_all_pairs_in_order(count, pairs, block):
    position = points(count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asgat.geometry.relations._BLOCK", block)
        for distance in (euclidean, hyperbolic):
            all_of_them = distance(position, position)
            order = sorted((all_of_them[i, j], i, j) for i in range(count) for j in range(i + 1, count))
            expected = [(i, j) for _, i, j in order[:pairs]]
            assert list(zip(*closest_pairs(position, pairs, distance).tolist(), strict=True)) == expected


def test_directions():
    centre = np.zeros((5, 2))
    around = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    assert direction(centre, around).tolist() == [0, 1, 2, 3, 3]


@given(graphs())
def test_relations_of_a_graph(graph):
    position = points(graph.num_nodes)
    relations = latent_relations(graph, position, euclidean)
    edges = {(v, u) for v, u in zip(*graph.edge_index().tolist(), strict=True) if v != u}
    near = closest_pairs(position, len(edges) // 2, euclidean).T.tolist()
    latent = {pair for i, j in near for pair in ((i, j), (j, i))}
    found = list(zip(relations.node.tolist(), relations.neighbour.tolist(), relations.kind.tolist(), strict=True))
    assert {(v, u) for v, u, kind in found if kind < 4} == edges
    assert {(v, u) for v, u, kind in found if kind >= 4} == latent
    assert len(found) == len(edges) + len(latent)
    for v, u, kind in found:
        assert kind % 4 == 2 * (position[v, 0] <= position[u, 0]) + (position[v, 1] <= position[u, 1])


def test_nodes_have_as_many_latent_neighbours_as_neighbours_on_average():
    graph = ZOO["generic too"]
    relations = latent_relations(graph, points(20), euclidean)
    assert (relations.kind < 4).sum() == (relations.kind >= 4).sum() > 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"node": [3]}, "name node 3, but it must be from 0 to 2"),
        ({"neighbour": [-1]}, "name neighbour -1, but it must be from 0 to 2"),
        ({"kind": [8]}, "name kind 8, but it must be from 0 to 7"),
        ({"kind": [1, 2]}, "one node, one neighbour and one kind"),
    ],
)
def test_what_cannot_be(changes, sentence):
    values = {"node": [0], "neighbour": [1], "kind": [2], **changes}
    with pytest.raises(AsgatError, match=sentence):
        Relations(3, **{key: np.array(value) for key, value in values.items()})


def listed(relations):
    return list(zip(relations.node.tolist(), relations.neighbour.tolist(), relations.kind.tolist(), strict=True))


@pytest.mark.parametrize("space", SPACES)
def test_relations_are_computed_where_none_are_published(space):
    graph = ZOO["generic"]
    expected = latent_relations(graph, SPACES[space].place(graph), SPACES[space].distance)
    assert listed(find_relations(graph, space)) == listed(expected)


def test_published_relations_are_used():
    graph = Graph.from_edges([[0, 1], [1, 1]], 3)
    published = Relations(3, np.array([1, 0, 2]), np.array([0, 1, 0]), np.array([2, 1, 5]))
    assert find_relations(graph, "isomap", {"isomap": published}.__getitem__) is published


def test_relations_of_another_graph_are_refused():
    empty = np.empty(0, dtype=np.int64)
    for other in (Relations(6, empty, empty, empty), Relations(7, empty, empty, empty)):
        with pytest.raises(AsgatError, match="published relations in poincare are those of another graph"):
            find_relations(ZOO["path"], "poincare", {"poincare": other}.__getitem__)
