import numpy as np
import pytest

from asgat.geometry.mds import scaled_positions
from asgat.geometry.spaces import euclidean


@pytest.mark.parametrize("landmarks", [12, 4])
def test_points_of_a_plane_are_found_again(landmarks):
    """Up to a motion of the plane, also from the distances to a few of them."""
    points = np.random.default_rng(0).standard_normal((12, 2))
    chosen = np.sort(np.random.default_rng(1).choice(12, landmarks, replace=False))
    found = scaled_positions(euclidean(points[chosen], points), chosen)
    np.testing.assert_allclose(euclidean(found, found), euclidean(points, points), atol=1e-4)


def test_axes_go_by_extent_and_their_largest_entry_is_positive():
    points = np.random.default_rng(2).standard_normal((9, 2)) * [5.0, 0.5]
    for flip in ([1, 1], [-1, 1], [1, -1]):
        found = scaled_positions(euclidean(points * flip, points * flip), np.arange(9))
        assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()
        assert np.ptp(found[:, 0]) > np.ptp(found[:, 1])
        np.testing.assert_allclose(np.abs(found), np.abs(scaled_positions(euclidean(points, points), np.arange(9))))


def test_equal_points_are_set_apart_by_the_seed_alone():
    points = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 1.0]])
    distance = euclidean(points, points)
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
    assert euclidean(found, found).max() == pytest.approx(count - 1, abs=1e-4)
