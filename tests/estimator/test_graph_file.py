"""The graph file of a run directory: what goes in comes out."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.data.dataset import Dataset, Split
from asgat.errors import AsgatError
from asgat.estimator import graph_file
from asgat.estimator.graph_file import decode_graph, encode_graph
from asgat.graph import Graph


def dataset(num_nodes, edges, weight, directed=False):
    rng = np.random.default_rng(num_nodes)
    y = rng.integers(-1, 3, size=num_nodes)
    y[0] = 2
    labelled = np.flatnonzero(y >= 0)
    split = Split(labelled[:1], labelled[1:2], labelled[2:])
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = Graph.from_edges(ends, num_nodes, weight, directed=directed)
    return Dataset("own", graph, rng.standard_normal((num_nodes, 2)).astype(np.float32), y, (split,), 3)


@given(st.data())
def test_a_round_trip_loses_nothing(tmp_path_factory, data):
    num_nodes = data.draw(st.integers(1, 12))
    node = st.integers(0, num_nodes - 1)
    edges = data.draw(st.lists(st.tuples(node, node), max_size=20))
    weight = data.draw(st.lists(st.floats(0.1, 9.0), min_size=len(edges), max_size=len(edges)))
    ids = data.draw(st.lists(st.text(max_size=5), min_size=num_nodes, max_size=num_nodes))
    before = dataset(num_nodes, edges, weight, data.draw(st.booleans()))
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    path.write_bytes(encode_graph(before, ids))
    after, after_ids = decode_graph(path, "own")
    assert after_ids == ids
    assert (after.graph.adjacency != before.graph.adjacency).nnz == 0
    assert after.graph.directed == before.graph.directed
    assert np.array_equal(after.x, before.x)
    assert np.array_equal(after.y, before.y)
    for part, nodes in before.splits[0].parts().items():
        assert np.array_equal(after.splits[0].parts()[part], nodes)


def test_numpy_alone_can_read_it(tmp_path):
    before = dataset(4, [(0, 1), (1, 0), (2, 2)], None)
    held = np.load(io.BytesIO(encode_graph(before, ["a", "bc", "", "ü"])), allow_pickle=False)
    assert held["edges"].tolist() == [[0, 2], [1, 2]]
    assert held["ids"].tobytes().decode() == "abcü"
    assert "directed" not in held, "as in files of earlier versions, which are read as undirected"
    assert held["id_ends"].tolist() == [1, 3, 3, 5]


@pytest.mark.parametrize("content", [b"no archive", b"PK\3\4 broken"])
def test_a_damaged_file_is_told(tmp_path, content):
    (tmp_path / "graph.npz").write_bytes(content)
    with pytest.raises(AsgatError, match=r"graph\.npz cannot be used"):
        decode_graph(tmp_path / "graph.npz", "own")


def test_a_small_archive_of_many_nodes_is_refused_where_they_do_not_fit(tmp_path, free_memory, monkeypatch):
    num_nodes = 3000
    before = Dataset(
        "own", Graph.from_edges([[0], [1]], num_nodes), np.zeros((num_nodes, 9), np.float32), np.arange(num_nodes) % 2,
        (Split(*np.arange(3)[:, None]),), 2,
    )  # fmt: skip
    packed = encode_graph(before, ["a"] * num_nodes)
    monkeypatch.setattr(graph_file, "PACKED_MOST", 2**17)
    whole = encode_graph(before, ["a"] * num_nodes)
    assert len(packed) < 2**14 < len(whole)
    for content in (packed, whole):
        (tmp_path / "graph.npz").write_bytes(content)
        free_memory(2**30)
        assert decode_graph(tmp_path / "graph.npz", "own")[0].num_nodes == num_nodes
        free_memory(num_nodes * 128 - 1)
        with pytest.raises(AsgatError, match=r"graph\.npz needs .* MiB are free"):
            decode_graph(tmp_path / "graph.npz", "own")


def test_ids_must_match_the_nodes(tmp_path):
    (tmp_path / "graph.npz").write_bytes(encode_graph(dataset(4, [(0, 1)], None), ["a"]))
    with pytest.raises(AsgatError, match="1 ids for 4 nodes"):
        decode_graph(tmp_path / "graph.npz", "own")
