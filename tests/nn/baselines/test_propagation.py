from operator import attrgetter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from tests.strategies import ZOO, graphs
from torch import nn

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.baselines.propagation import LayerStack, propagation, renormalised

SYMMETRIC = attrgetter("normalised_adjacency")


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
    attrgetter("adjacency"): lambda a: a,
    SYMMETRIC: by_roots,
    renormalised: lambda a: by_roots(with_loops(a)),
    attrgetter("mean_adjacency"): by_rows,
}


@pytest.mark.parametrize("matrix", list(MATRICES), ids=["adjacency", "symmetric", "renormalised", "mean"])
@given(graph=graphs())
def test_the_matrices(matrix, graph):
    expected = MATRICES[matrix](graph.adjacency.toarray())
    np.testing.assert_allclose(matrix(graph).toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_matrix_takes_the_type_of_the_features(dtype):
    graph, x = ZOO["generic"], torch.zeros(14, 2, dtype=dtype)
    made = propagation(x, graph, None, SYMMETRIC)
    assert (made.dtype, made.device) == (dtype, x.device)
    torch.testing.assert_close(made.to_dense(), torch.tensor(graph.normalised_adjacency.toarray(), dtype=dtype))
    assert propagation(SparseFeatures.from_dense(x, dtype=dtype), graph, None, SYMMETRIC).dtype == dtype


def test_a_matrix_made_beforehand_is_taken_as_it_is():
    made = SparseFeatures.from_dense(np.eye(3))
    assert propagation(torch.zeros(3, 1), made, None, SYMMETRIC) is made
    with pytest.raises(AsgatError, match="x has 2 rows, but the graph has 3 nodes"):
        propagation(torch.zeros(2, 1), made, None, SYMMETRIC)


def test_edges_and_their_weights_are_read_as_a_graph():
    ends, weight = [[0, 1], [1, 2]], torch.tensor([2.0, 0.5])
    graph = Graph.from_edges(ends, 4, weight)
    made = propagation(torch.zeros(4, 1), torch.tensor(ends), weight, attrgetter("adjacency"))
    np.testing.assert_allclose(made.to_dense().numpy(), graph.adjacency.toarray())


@pytest.mark.parametrize(("num_layers", "sizes"), [(1, [(2, 4)]), (3, [(2, 3), (3, 3), (3, 4)])])
def test_sizes_of_layers(num_layers, sizes):
    net: Any = Summing(2, 3, 4, num_layers, bias=False)
    assert [(layer.in_features, layer.out_features) for layer in net.layers] == sizes
    assert all(layer.bias is None for layer in net.layers), "settings reach every layer"


class Summing(LayerStack):
    matrix = attrgetter("adjacency")
    make_layer = nn.Linear

    def apply_layer(self, layer, x, step):
        return step.matmul(layer(x))


def test_the_activation_is_between_layers_and_the_graph_reaches_all_of_them():
    torch.manual_seed(0)
    net = Summing(2, 3, 4)
    graph, x = Graph.from_edges([[0, 1], [1, 2]], 3, [1.0, 2.0]), torch.randn(3, 2)
    dense = torch.from_numpy(graph.adjacency.toarray()).float()
    expected = dense @ net.layers[1](torch.relu(dense @ net.layers[0](x)))
    torch.testing.assert_close(net(x, graph), expected)


def test_every_layer_is_reset():
    net: Any = Summing(2, 3, 4)
    before = [layer.weight.clone() for layer in net.layers]
    net.reset_parameters()
    assert all(not torch.equal(layer.weight, old) for layer, old in zip(net.layers, before, strict=True))
