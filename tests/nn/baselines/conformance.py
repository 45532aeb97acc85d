"""What every baseline that propagates along edges must pass, held against dense mathematics, values and gradients.

A new baseline's test file has one subclass that supplies three functions:

    class TestMyModel(BaselineConformance):
        def make(self, **changes): return MyModel(FEATURES, HIDDEN, CLASSES, **changes)
        def dense(self, net, x, adjacency): return logits, by dense products with the adjacency matrix
        def pyg(self, net, x, edges, weight): return logits, by PyG's own layers with the same weights
"""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import ZOO, generic_graph, graphs, permuted
from torch import Tensor

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures

FEATURES, HIDDEN, CLASSES = 5, 4, 3
TOLERANCE = 1e-9
some_graphs = pytest.mark.parametrize("name", [name for name in ZOO if name != "no nodes"])


def looped(adjacency: Tensor) -> Tensor:
    """The adjacency matrix with a self-loop of weight 1 where a node has none."""
    return adjacency + torch.diag((adjacency.diagonal() == 0).to(adjacency.dtype))


def scaled(adjacency: Tensor) -> Tensor:
    """D^(-1/2) A D^(-1/2), entry by entry; nothing for nodes without edges."""
    degree = adjacency.sum(dim=1)
    root = torch.where(degree > 0, degree, torch.ones_like(degree)).sqrt()
    return adjacency / root[:, None] / root[None, :]


def features(graph: Graph, seed: int = 0) -> Tensor:
    """A third of the entries are zero, so that sparse features have something to leave out."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((graph.num_nodes, FEATURES)) * (rng.random((graph.num_nodes, FEATURES)) < 0.67)
    return torch.from_numpy(x)


def edges_of(graph: Graph) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(graph.edge_index()), torch.from_numpy(graph.adjacency.tocoo().data)


def assert_near(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=TOLERANCE, atol=TOLERANCE)


class BaselineConformance:
    weights_matter = True  # whether the weights of edges do
    pyg_graphs: tuple[str, ...] = (
        "generic",
        "generic too",
        "star",
        "even cycle",
        "no edges",
    )  # those PyG reads as we do

    def make(self, **changes: Any) -> Any:
        raise NotImplementedError

    def dense(self, net: Any, x: Tensor, adjacency: Tensor) -> Tensor:
        raise NotImplementedError

    def pyg(self, net: Any, x: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
        raise NotImplementedError

    def net_for(self, graph: Graph, **changes: Any) -> Any:
        """A model in double precision whose every parameter is generic, biases too."""
        torch.manual_seed(1)
        net = self.make(**changes).double().eval()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        return net

    def check(self, graph: Graph, **changes: Any) -> None:
        net, x = self.net_for(graph, **changes), features(graph)
        actual = net(x, *edges_of(graph))
        expected = self.dense(net, x, torch.from_numpy(graph.adjacency.toarray()))
        assert actual.shape == (graph.num_nodes, CLASSES)
        assert_near(actual, expected)
        cotangent = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        ours, theirs = (dense.gradients(value, net, cotangent) for value in (actual, expected))
        for name, gradient in theirs.items():
            assert_near(ours[name], gradient)

    # -- values and gradients ------------------------------------------------------------------------------

    @some_graphs
    def test_is_the_dense_formula(self, name):
        self.check(ZOO[name])

    @given(graph=graphs())
    def test_is_the_dense_formula_on_any_graph(self, graph):
        self.check(graph)

    def test_is_pyg_s(self):
        for name in self.pyg_graphs:
            graph = ZOO[name]
            net, x = self.net_for(graph), features(graph)
            edges, weight = edges_of(graph)
            expected = self.pyg(net, x, edges, weight)
            assert_near(net(x, edges, weight), expected)

    def test_the_graph_matters(self):
        graph, other = generic_graph(0), generic_graph(1)
        net, x = self.net_for(graph), features(graph)
        assert not torch.allclose(net(x, graph), net(x, other))
        unweighted = torch.from_numpy(graph.edge_index())
        assert torch.allclose(net(x, graph), net(x, unweighted)) != self.weights_matter

    # -- forms of the input --------------------------------------------------------------------------------

    def test_edges_a_graph_and_a_matrix_made_beforehand_are_one(self):
        graph = generic_graph(0)
        net, x = self.net_for(graph), features(graph)
        made = SparseFeatures.from_dense(net.matrix(graph), dtype=torch.float64)
        out = net(x, made)
        assert torch.equal(out, net(x, graph))
        assert torch.equal(out, net(x, *edges_of(graph)))

    def test_one_direction_of_every_edge_is_enough(self):
        graph = generic_graph(0)
        net, x = self.net_for(graph), features(graph)
        edges, weight = edges_of(graph)
        half = edges[0] <= edges[1]
        assert torch.equal(net(x, edges[:, half], weight[half]), net(x, edges, weight))

    def test_sparse_and_dense_features_are_one(self):
        graph = generic_graph(0)
        net, x = self.net_for(graph), features(graph)
        sparse = SparseFeatures.from_dense(x, dtype=torch.float64)
        expected, actual = net(x, graph), net(sparse, graph)
        assert_near(actual, expected)
        ours, theirs = (dense.gradients(value, net, torch.ones_like(value)) for value in (actual, expected))
        for name, gradient in theirs.items():
            assert_near(ours[name], gradient)

    def test_a_matrix_of_another_size_is_refused(self):
        graph = ZOO["path"]
        with pytest.raises(AsgatError, match="x has 14 rows, but the graph has 6 nodes"):
            self.net_for(generic_graph(0))(features(generic_graph(0)), graph)

    # -- the model -----------------------------------------------------------------------------------------

    @given(seed=st.integers(0, 20))
    def test_nodes_have_no_order(self, seed):
        graph = generic_graph(seed)
        order = np.random.default_rng(seed).permutation(graph.num_nodes)
        net, x = self.net_for(graph), features(graph)
        assert_near(net(x[order], permuted(graph, order)), net(x, graph)[order])

    def test_dropout_acts_in_training_alone(self):
        graph = generic_graph(0)
        net, x = self.net_for(graph, dropout=0.5), features(graph)
        assert torch.equal(net(x, graph), net(x, graph))
        net.train()
        assert not torch.equal(net(x, graph), net(x, graph))

    def test_reset_parameters_draws_anew(self):
        net = self.net_for(generic_graph(0))
        before = [parameter.clone() for parameter in net.parameters()]
        net.reset_parameters()
        assert all(not torch.equal(p, b) for p, b in zip(net.parameters(), before, strict=True))
        assert all(torch.isfinite(p).all() for p in net.parameters())
