from typing import Any

import numpy as np
import pytest
import torch
from tests.strategies import ZOO

from asgat.nn.baselines import GCN


def propagation(graph):
    """D̃^(-1/2) Ã D̃^(-1/2) with a self-loop of weight 1 where a node has none."""
    adjacency = graph.adjacency.toarray()
    adjacency[np.diag_indices_from(adjacency)] = np.where(np.diag(adjacency) > 0, np.diag(adjacency), 1.0)
    degree = adjacency.sum(axis=1)
    return adjacency / np.sqrt(np.outer(degree, degree))


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("name", ["generic", "star", "no edges", "loops only", "bipartite"])
def test_is_the_dense_formula(name, num_layers):
    graph = ZOO[name]
    torch.manual_seed(0)
    net: Any = GCN(4, 6, 3, num_layers).double().eval()
    assert len(net.layers) == num_layers
    x = np.random.default_rng(0).standard_normal((graph.num_nodes, 4))
    value = x
    for i, layer in enumerate(net.layers):
        torch.nn.init.normal_(layer.bias)
        value = propagation(graph) @ value @ layer.lin.weight.detach().numpy().T + layer.bias.detach().numpy()
        value = np.maximum(value, 0) if i < num_layers - 1 else value
    edges, weight = torch.from_numpy(graph.edge_index()), torch.from_numpy(graph.adjacency.tocoo().data)
    actual = net(torch.from_numpy(x), edges, weight)
    np.testing.assert_allclose(actual.detach().numpy(), value, atol=1e-10)


def test_dropout_acts_in_training_alone():
    graph = ZOO["path"]
    net, x, edges = GCN(4, 6, 3, dropout=0.5), torch.randn(6, 4), torch.from_numpy(graph.edge_index())
    assert not torch.equal(net(x, edges), net(x, edges))
    assert torch.equal(net.eval()(x, edges), net(x, edges))


def test_reset_parameters():
    net: Any = GCN(4, 6, 3)
    before = [layer.lin.weight.clone() for layer in net.layers]
    net.reset_parameters()
    assert all(not torch.equal(layer.lin.weight, b) for layer, b in zip(net.layers, before, strict=True))
