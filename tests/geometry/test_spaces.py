import os

import numpy as np
import pytest
from tests.strategies import ZOO

from asgat.config import GeomGCNConfig
from asgat.errors import AsgatError
from asgat.geometry import spaces as module
from asgat.geometry.spaces import SPACES, euclidean, hyperbolic, positions
from asgat.graph import Graph


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


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / name)
    return tmp_path / "asgat" / "positions"


def test_positions_are_cached(cache, monkeypatch):
    positions(ZOO["path"], "isomap")
    assert not cache.exists(), "a small graph is placed again quickly"
    monkeypatch.setattr(module, "CACHED_FROM", 3)
    path, star = ZOO["path"], ZOO["star"]
    first = positions(path, "isomap")
    (file,) = cache.iterdir()
    assert np.array_equal(first, positions(path, "isomap"))
    np.savez(file, position=np.ones((6, 2)))
    assert np.array_equal(positions(path, "isomap"), np.ones((6, 2)))
    assert not np.array_equal(positions(path, "poincare"), np.ones((6, 2)))
    assert positions(star, "isomap").shape == (7, 2)
    assert len(list(cache.iterdir())) == 3


def test_what_positions_do_not_depend_on(cache, monkeypatch):
    monkeypatch.setattr(module, "CACHED_FROM", 3)
    for weight in ([1.0, 1.0], [2.0, 0.5]):
        graph = Graph.from_edges([[0, 1], [1, 2]], 4, weight)
        for same in (graph, graph.with_self_loops("add")):
            positions(same, "isomap")
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    "arrays",
    [{"position": np.ones((5, 2))}, {"position": np.ones((6, 2), dtype=int)}, {"other": np.ones((6, 2))},
     {"position": np.full((6, 2), np.nan)}],
)  # fmt: skip
def test_bad_files_in_the_cache_are_named(cache, monkeypatch, arrays):
    monkeypatch.setattr(module, "CACHED_FROM", 3)
    positions(ZOO["path"], "isomap")
    (file,) = cache.iterdir()
    np.savez(file, **arrays)
    with pytest.raises(AsgatError, match=f"{file} is damaged.*Delete it and run again"):
        positions(ZOO["path"], "isomap")
    file.write_bytes(b"no archive")
    with pytest.raises(AsgatError, match="is damaged"):
        positions(ZOO["path"], "isomap")


def test_a_cache_that_cannot_be_read(cache, monkeypatch):
    monkeypatch.setattr(module, "CACHED_FROM", 3)
    positions(ZOO["path"], "isomap")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(AsgatError, match="cannot be read: Permission denied; check its name and permissions"):
        positions(ZOO["path"], "isomap")


def test_a_cache_that_cannot_be_written_is_not_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CACHED_FROM", 3)
    (tmp_path / "file").touch()
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "file" / name)
    assert positions(ZOO["path"], "isomap").shape == (6, 2)
    assert os.listdir(tmp_path) == ["file"]
