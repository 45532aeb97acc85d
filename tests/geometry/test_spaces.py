import numpy as np
import pytest

from asgat.config import GeomGCNConfig
from asgat.geometry.spaces import SPACES, euclidean, hyperbolic


def test_distances_are_those_of_the_formulas():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-0.6, 0.6, (3, 2)), rng.uniform(-0.6, 0.6, (4, 2))
    for i in range(3):
        for j in range(4):
            gap = np.linalg.norm(a[i] - b[j])
            assert euclidean(a, b)[i, j] == pytest.approx(gap)
            inside = (1 - a[i] @ a[i]) * (1 - b[j] @ b[j])
            assert hyperbolic(a, b)[i, j] == pytest.approx(np.arccosh(1 + 2 * gap**2 / inside))


def test_a_point_is_at_no_distance_from_itself():
    a = np.array([[0.3, 0.9], [0.0, 0.0]])
    assert np.diag(euclidean(a, a)).tolist() == np.diag(hyperbolic(a, a)).tolist() == [0.0, 0.0]


def test_every_space_can_be_set():
    assert {GeomGCNConfig(space=name).space for name in SPACES} == {"isomap", "poincare", "struc2vec"}  # type: ignore[arg-type]
