import io
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.nn.test_connections import netmf
from tests.strategies import ZOO, generic_graph, graphs, permuted

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.nn import connections
from asgat.nn import deepwalk as embedding
from asgat.nn.deepwalk import Embedding, check_ending, deepwalk, encode


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Matrices this small are faster so."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def truncated(matrix, dimensions):
    """U_d Σ_d Uᵀ_d of the singular value decomposition, all singular values, and whether d cuts between equal ones."""
    u, s, _ = np.linalg.svd(matrix)
    cut = dimensions < len(s) and s[dimensions - 1] - s[dimensions] < 1e-6
    return (u[:, :dimensions] * s[:dimensions]) @ u[:, :dimensions].T, s, cut


@given(graph=graphs(), window=st.integers(1, 6), data=st.data())
def test_the_gram_matrix_is_that_of_the_truncated_svd(graph, window, data):
    dimensions = data.draw(st.integers(1, graph.num_nodes))
    result = deepwalk(graph, dimensions, window)
    matrix = netmf(graph, window, 1)
    gram, singular, cut = truncated(matrix, dimensions)
    np.testing.assert_allclose(result.matrix, matrix, atol=1e-9)
    np.testing.assert_allclose(result.singular_values, singular[:dimensions], atol=1e-9)
    np.testing.assert_allclose(result.vectors.T @ result.vectors, np.diag(singular[:dimensions]), atol=1e-9)
    if not cut:
        np.testing.assert_allclose(result.vectors @ result.vectors.T, gram, atol=1e-9)
    total = (matrix**2).sum()
    kept = (singular[:dimensions] ** 2).sum() / total if total > 1e-20 else 1.0  # below is log 1, rounded
    assert result.energy == pytest.approx(kept, abs=1e-9)
    assert not result.vectors[graph.isolated].any()


def test_on_karate():
    graph = load_dataset("karate").graph
    result = deepwalk(graph)
    assert result.vectors.shape == (34, 16)
    np.testing.assert_allclose(result.matrix, netmf(graph, 10, 1), atol=1e-12)
    np.testing.assert_allclose(result.vectors @ result.vectors.T, truncated(netmf(graph, 10, 1), 16)[0], atol=1e-9)
    assert 0.9 < result.energy < 1.0


@pytest.mark.parametrize("name", [name for name, graph in ZOO.items() if graph.num_nodes])
def test_signs_are_settled_and_results_repeat(name):
    graph = ZOO[name]
    first, second = deepwalk(graph, graph.num_nodes, window=2), deepwalk(graph, graph.num_nodes, window=2, seed=5)
    assert np.array_equal(first.vectors, second.vectors)
    for column in first.vectors.T[first.singular_values > 0]:
        assert column[(np.abs(column) > np.abs(column).max() - 1e-9).argmax()] > 0, "the first of the largest"


def test_nodes_renamed_are_vectors_moved():
    graph, order = generic_graph(0), np.random.default_rng(0).permutation(14)
    one, other = deepwalk(graph, 4), deepwalk(permuted(graph, order), 4)
    np.testing.assert_allclose(other.vectors, one.vectors[order], atol=1e-9)


def test_isolated_nodes_and_dimensions_beyond_the_rank_are_zeros():
    graph = Graph.from_edges([[1], [3]], 5)
    result = deepwalk(graph, 4, window=1)
    assert result.vectors[[0, 2, 4]].tolist() == np.zeros((3, 4)).tolist()
    assert result.singular_values.tolist() == pytest.approx([np.log(2), np.log(2), 0, 0])
    assert result.vectors[:, 2:].tolist() == np.zeros((5, 2)).tolist()
    assert (result.vectors[[1, 3], :2] != 0).all()
    empty = deepwalk(ZOO["no edges"], 2)
    assert not empty.vectors.any()
    assert empty.energy == 1.0


# -- large graphs -------------------------------------------------------------------------------------------


def block_model(nodes=300):
    rng = np.random.default_rng(4)
    ends = rng.integers(0, nodes // 2, (2, 4 * nodes))
    return Graph.from_edges(ends + (nodes // 2) * (rng.random(4 * nodes) < 0.5), nodes + 3)


def test_lanczos_iterations_find_what_the_whole_spectrum_says(monkeypatch):
    graph = block_model()
    whole = deepwalk(graph, 6, window=4)

    def never(*_):
        raise AssertionError("decomposed the whole matrix")

    monkeypatch.setattr(embedding, "_DENSE_NODES", 100)
    monkeypatch.setattr(np.linalg, "eigh", never)
    part, again = deepwalk(graph, 6, window=4, seed=3), deepwalk(graph, 6, window=4, seed=3)
    np.testing.assert_allclose(part.singular_values, whole.singular_values, rtol=1e-10)
    np.testing.assert_allclose(part.vectors, whole.vectors, atol=1e-8)
    assert np.array_equal(part.vectors, again.vectors), "the same seed, the same result"
    assert not part.vectors[-3:].any(), "isolated"


def test_lanczos_iterations_on_a_matrix_of_low_rank(monkeypatch):
    """All pairs of a complete bipartite graph have one of two values: rank 2, however large it is."""
    graph = Graph.from_edges(np.argwhere(np.ones((20, 20))).T + np.array([[0], [20]]), 42)
    monkeypatch.setattr(embedding, "_DENSE_NODES", 10)
    result = deepwalk(graph, 8, window=3)
    gram, singular, _ = truncated(netmf(graph, 3, 1), 8)
    np.testing.assert_allclose(result.singular_values, singular[:8], atol=1e-9)
    np.testing.assert_allclose(result.vectors @ result.vectors.T, gram, atol=1e-9)
    assert (result.singular_values[2:] == 0).all()


def test_all_dimensions_of_a_large_graph(monkeypatch):
    monkeypatch.setattr(embedding, "_DENSE_NODES", 5)
    graph = generic_graph(1)
    result = deepwalk(graph, 14, window=2)
    np.testing.assert_allclose(result.vectors @ result.vectors.T, truncated(result.matrix, 14)[0], atol=1e-9)


def test_more_than_memory_holds_is_refused(monkeypatch):
    monkeypatch.setattr(connections, "available_memory", lambda: 1 << 30)
    with pytest.raises(AsgatError, match=r"more than the 1\.0 GiB that are free"):
        deepwalk(Graph.from_edges([[0], [1]], 100_000), 2)


@pytest.mark.parametrize("dimensions", [0, -1, 7])
def test_dimensions_there_are_none_of(dimensions):
    with pytest.raises(AsgatError, match=f"6 nodes has 1 to 6 dimensions, not {dimensions}"):
        deepwalk(ZOO["path"], dimensions)


# -- files --------------------------------------------------------------------------------------------------

SMALL = deepwalk(generic_graph(0), 3, window=2)


def test_npz_holds_everything(monkeypatch):
    content = encode(SMALL, Path("a.npz"))
    assert content == encode(SMALL, Path("b.npz")), "the same bytes every time"
    read = np.load(io.BytesIO(content))
    assert set(read) == {"embedding", "node", "singular_value", "matrix"}
    assert np.array_equal(read["embedding"], SMALL.vectors)
    assert np.array_equal(read["singular_value"], SMALL.singular_values)
    assert np.array_equal(read["matrix"], SMALL.matrix)
    assert read["node"].tolist() == list(range(14))
    monkeypatch.setattr(embedding, "MATRIX_NODES", 13)
    assert set(np.load(io.BytesIO(encode(SMALL, Path("a.npz"))))) == {"embedding", "node", "singular_value"}


def test_npy_holds_the_vectors():
    assert np.array_equal(np.load(io.BytesIO(encode(SMALL, Path("a.NPY")))), SMALL.vectors)


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t")])
def test_text_holds_a_line_per_node_to_the_last_digit(name, mark):
    heading, *lines = encode(SMALL, Path(name)).decode().splitlines()
    assert heading.split(mark) == ["node", "x0", "x1", "x2"]
    read = np.array([[float(cell) for cell in line.split(mark)] for line in lines])
    assert read[:, 0].tolist() == list(range(14))
    assert np.array_equal(read[:, 1:], SMALL.vectors)


@pytest.mark.parametrize("name", ["a", "a.txt", "npz", ".npz", "a.npz.gz"])
def test_other_endings_are_refused(name):
    with pytest.raises(AsgatError, match=r"ends in \.npz, \.npy, \.csv, \.tsv, not"):
        check_ending(Path(name))
    with pytest.raises(AsgatError, match="ends in"):
        encode(SMALL, Path(name))


def test_energy_of_a_part():
    matrix = np.diag([3.0, 4.0])
    assert Embedding(np.zeros((2, 1)), np.array([4.0]), matrix).energy == pytest.approx(16 / 25)
