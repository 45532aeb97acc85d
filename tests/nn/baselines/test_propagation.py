import numpy as np
import pytest
import torch
from hypothesis import given
from tests.strategies import ZOO, graphs

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.baselines.propagation import adjacency, mean, propagation, renormalised, symmetric


def with_loops(matrix):
    return matrix + np.diag(np.diag(matrix) == 0)


def by_roots(matrix):
    degree = matrix.sum(axis=1)
    root = np.sqrt(np.where(degree > 0, degree, 1.0))
    return matrix / np.outer(root, root)


def by_rows(matrix):
    degree = matrix.sum(axis=1, keepdims=True)
    return matrix / np.where(degree > 0, degree, 1.0)


MATRICES = {
    adjacency: lambda a: a,
    symmetric: by_roots,
    renormalised: lambda a: by_roots(with_loops(a)),
    mean: by_rows,
}


@pytest.mark.parametrize("matrix", list(MATRICES), ids=lambda matrix: matrix.__name__)
@given(graph=graphs())
def test_the_matrices(matrix, graph):
    expected = MATRICES[matrix](graph.adjacency.toarray())
    np.testing.assert_allclose(matrix(graph).toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_matrix_takes_the_type_of_the_features(dtype):
    graph, x = ZOO["generic"], torch.zeros(14, 2, dtype=dtype)
    made = propagation(x, graph, None, symmetric)
    assert (made.dtype, made.device) == (dtype, x.device)
    torch.testing.assert_close(made.to_dense(), torch.tensor(graph.normalised_adjacency.toarray(), dtype=dtype))
    assert propagation(SparseFeatures.from_dense(x, dtype=dtype), graph, None, symmetric).dtype == dtype


def test_a_matrix_made_beforehand_is_taken_as_it_is():
    made = SparseFeatures.from_dense(np.eye(3))
    assert propagation(torch.zeros(3, 1), made, None, symmetric) is made
    with pytest.raises(AsgatError, match="x has 2 rows, but the graph has 3 nodes"):
        propagation(torch.zeros(2, 1), made, None, symmetric)


def test_edges_and_their_weights_are_read_as_a_graph():
    ends, weight = [[0, 1], [1, 2]], torch.tensor([2.0, 0.5])
    graph = Graph.from_edges(ends, 4, weight)
    made = propagation(torch.zeros(4, 1), torch.tensor(ends), weight, adjacency)
    np.testing.assert_allclose(made.to_dense().numpy(), graph.adjacency.toarray())
