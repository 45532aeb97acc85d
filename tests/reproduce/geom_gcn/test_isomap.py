import numpy as np
import pytest
from scipy.spatial.distance import cdist
from tests.strategies import ZOO

from asgat.graph import Graph
from asgat.graph.hops import hop_distances
from reproduce.geom_gcn.isomap import isomap, scaled_positions


def grid(side):
    """A board of cells, each joined to the next in its row and column."""
    cell = np.arange(side * side).reshape(side, side)
    ends = [(cell[:, :-1], cell[:, 1:]), (cell[:-1], cell[1:])]
    return Graph.from_edges(np.concatenate([np.stack([a.ravel(), b.ravel()]) for a, b in ends], axis=1))


def test_a_path_is_a_line():
    position = isomap(ZOO["path"])
    np.testing.assert_allclose(np.abs(np.diff(position[:, 0])), 1, atol=1e-4)
    np.testing.assert_allclose(position[:, 1], 0, atol=1e-4)


def test_is_the_leading_part_of_the_doubly_centred_distances():
    graph = grid(5)
    squared = np.square(hop_distances(graph, np.arange(25)).astype(float))
    centre = np.eye(25) - 1 / 25
    value, vector = np.linalg.eigh(-0.5 * centre @ squared @ centre)
    position = isomap(graph)
    np.testing.assert_allclose(position @ position.T, (vector[:, -2:] * value[-2:]) @ vector[:, -2:].T, atol=1e-3)


def test_landmarks_give_nearly_the_same_picture(monkeypatch):
    graph = grid(12)
    whole = isomap(graph)
    monkeypatch.setattr("reproduce.geom_gcn.isomap._ENTRIES", 144 * 60)
    part = isomap(graph)
    assert not np.allclose(part, whole)
    assert np.corrcoef(cdist(whole, whole).ravel(), cdist(part, part).ravel())[0, 1] > 0.98
    assert np.array_equal(part, isomap(graph))
    assert not np.array_equal(part, isomap(graph, seed=1))


def test_components_stand_apart():
    graph = Graph.from_edges([[0, 1, 3, 4], [1, 2, 4, 5]])
    distance = cdist(isomap(graph), isomap(graph))
    assert distance[:3, 3:].min() > 1.5  # nobody's neighbour


@pytest.mark.parametrize("name", ZOO)
def test_any_graph_has_a_picture(name):
    position = isomap(ZOO[name])
    assert position.shape == (ZOO[name].num_nodes, 2)
    assert np.isfinite(position).all()


@pytest.mark.parametrize("landmarks", [12, 4])
def test_points_of_a_plane_are_found_again(landmarks):
    """Up to a motion of the plane, also from the distances to a few of them."""
    points = np.random.default_rng(0).standard_normal((12, 2))
    chosen = np.sort(np.random.default_rng(1).choice(12, landmarks, replace=False))
    found = scaled_positions(cdist(points[chosen], points), chosen)
    np.testing.assert_allclose(cdist(found, found), cdist(points, points), atol=1e-4)


def test_axes_go_by_extent_and_their_largest_entry_is_positive():
    points = np.random.default_rng(2).standard_normal((9, 2)) * [5.0, 0.5]
    for flip in ([1, 1], [-1, 1], [1, -1]):
        found = scaled_positions(cdist(points * flip, points * flip), np.arange(9))
        assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()
        assert np.ptp(found[:, 0]) > np.ptp(found[:, 1])
        np.testing.assert_allclose(np.abs(found), np.abs(scaled_positions(cdist(points, points), np.arange(9))))


def test_equal_points_are_set_apart_by_the_seed_alone():
    points = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 1.0]])
    distance = cdist(points, points)
    first, again, other = (scaled_positions(distance, np.arange(3), seed) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert np.abs(first[0] - first[1]).min() > 0
    assert np.abs(first[0] - first[1]).max() < 1e-4
    assert (first[0] > first[1]).tolist() != (other[0] > other[1]).tolist()


@pytest.mark.parametrize("count", [1, 2])
def test_few_points(count):
    found = scaled_positions(1.0 - np.eye(count), np.arange(count))
    assert found.shape == (count, 2)
    assert np.isfinite(found).all()
    assert cdist(found, found).max() == pytest.approx(count - 1, abs=1e-4)
