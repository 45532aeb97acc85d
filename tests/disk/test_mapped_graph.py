import numpy as np
import pytest

from asgat.disk.converter import write_graph
from asgat.disk.mapped_graph import MappedGraph
from asgat.graph import Graph

ENDS = np.array([[0, 1, 2, 3, 3], [1, 2, 3, 4, 3]])


@pytest.fixture(params=[None, np.array([1.0, 2.0, 0.5, 1.0, 3.0])])
def pair(request, tmp_path):
    """A graph on disk and the same in memory."""
    labels = np.array([0, 1, 0, 1, -1])
    parts = np.array([1, 1, 2, 3, 0])
    stored = write_graph(tmp_path / "g", [(*ENDS, request.param)], np.eye(5), labels, parts, order="none")
    return stored.to_dataset().graph, Graph.from_edges(ENDS, 5, request.param)


def test_it_is_the_graph_in_memory(pair):
    mapped, plain = pair
    assert isinstance(mapped, MappedGraph)
    assert (mapped.num_nodes, mapped.num_entries, mapped.directed) == (5, plain.num_entries, False)
    assert np.array_equal(mapped.adjacency.toarray(), plain.adjacency.toarray())
    assert np.allclose(mapped.laplacian.toarray(), plain.laplacian.toarray(), atol=1e-15)
    assert mapped.digest == plain.digest
    assert np.array_equal(mapped.with_self_loops("remove").adjacency.diagonal(), np.zeros(5))


def test_its_matrix_is_that_of_the_folder(pair):
    mapped, plain = pair
    assert mapped.shifted.records is not None
    dense = np.zeros((5, 5))
    dense[np.repeat(np.arange(5), np.diff(mapped.shifted.indptr)), mapped.shifted.indices] = mapped.shifted.data
    assert np.allclose(dense, plain.shifted.toarray(), atol=1e-15)


def test_it_knows_where_it_is(pair, tmp_path):
    mapped, plain = pair
    assert (mapped.folder, plain.folder) == (tmp_path / "g", None)


def test_nothing_is_read_before_it_is_used(pair):
    mapped, _ = pair
    assert mapped.num_nodes == 5
    assert not {"adjacency", "shifted", "digest"} & set(vars(mapped))
