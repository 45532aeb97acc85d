import numpy as np
import pytest
import torch
from tests.nn.baselines.conformance import CLASSES, FEATURES, HIDDEN, BaselineConformance, assert_near, scaled
from tests.strategies import ZOO

from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.baselines import ChebNet
from asgat.nn.baselines.chebnet import chebyshev_sum


def chebyshev(matrix, order):
    """T_order of a symmetric matrix, through its eigenvalues: cos(order · arccos λ)."""
    value, vector = torch.linalg.eigh(matrix)
    return vector @ torch.diag(torch.cos(order * torch.arccos(value.clamp(-1, 1)))) @ vector.t()


class TestChebNet(BaselineConformance):
    pyg_graphs = ("path", "star", "even cycle", "no edges")  # PyG's Laplacian takes self-loops out, ours keeps them

    def make(self, **changes):
        return ChebNet(FEATURES, HIDDEN, CLASSES, **{"order": 3, **changes})

    def dense(self, net, x, adjacency):
        laplacian = torch.eye(len(adjacency), dtype=adjacency.dtype) - scaled(adjacency)
        shifted = 2.0 * laplacian / 2.0 - torch.eye(len(adjacency), dtype=adjacency.dtype)
        for i, layer in enumerate(net.layers):
            terms = [chebyshev(shifted, k) @ x @ lin.weight.t() for k, lin in enumerate(layer.lins)]
            x = sum(terms) + layer.bias
            x = x.relu() if i < len(net.layers) - 1 else x
        return x

    def pyg(self, net, x, edges, weight):
        for layer in net.layers[:-1]:
            x = layer(x, edges, weight, lambda_max=2.0).relu()
        return net.layers[-1](x, edges, weight, lambda_max=2.0)

    @pytest.mark.parametrize(("num_layers", "order"), [(1, 2), (3, 1), (2, 0), (2, 7)])
    def test_any_number_of_layers_and_any_order(self, num_layers, order):
        if order:
            self.check(ZOO["generic"], num_layers=num_layers, order=order)
        net = self.make(num_layers=num_layers, order=order)
        assert [len(layer.lins) for layer in net.layers] == [order + 1] * num_layers


def test_order_0_does_not_look_at_the_graph():
    net, x = ChebNet(FEATURES, HIDDEN, CLASSES, order=0).eval(), torch.randn(6, FEATURES)
    assert torch.equal(net(x, ZOO["path"]), net(x, ZOO["even cycle"]))


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_clenshaw_sums_the_polynomials(count):
    matrix = ZOO["generic"].normalised_adjacency
    terms = tuple(torch.randn(count, 14, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    expected = sum(chebyshev(torch.from_numpy(matrix.toarray()), k) @ term for k, term in enumerate(terms))
    assert isinstance(expected, torch.Tensor)
    assert_near(chebyshev_sum(SparseFeatures.from_dense(matrix, dtype=torch.float64), terms), expected)


def test_the_matrix_is_the_shifted_laplacian():
    for graph in ZOO.values():
        shifted = graph.laplacian.toarray() - np.eye(graph.num_nodes)
        np.testing.assert_allclose(ChebNet.matrix(graph).toarray(), shifted, atol=1e-12)
