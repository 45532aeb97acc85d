import pytest
import torch
from tests.nn.baselines.conformance import (
    CLASSES,
    FEATURES,
    HIDDEN,
    BaselineConformance,
    assert_near,
    features,
    looped,
    scaled,
)
from tests.strategies import ZOO, generic_graph
from torch_geometric import nn as pyg

from asgat.nn.baselines import GPRGNN


class TestGPRGNN(BaselineConformance):
    def make(self, **changes):
        return GPRGNN(FEATURES, HIDDEN, CLASSES, **{"alpha": 0.3, "steps": 4, **changes})

    def dense(self, net, x, adjacency):
        step = scaled(looped(adjacency))
        polynomial = sum(gamma * torch.linalg.matrix_power(step, k) for k, gamma in enumerate(net.gamma))
        return polynomial @ net.mlp(x)

    def pyg(self, net, x, edges, weight):
        """PyG has no such layer, but with the weights it starts from the model is APPNP."""
        with torch.no_grad():
            start = [0.3 * 0.7**k for k in range(net.steps)] + [0.7**net.steps]
            net.gamma.copy_(torch.tensor(start, dtype=torch.float64))
        return pyg.APPNP(net.steps, 0.3)(net.mlp(x), edges, weight)

    @pytest.mark.parametrize("steps", [0, 1, 6])
    def test_any_number_of_steps(self, steps):
        self.check(ZOO["generic"], steps=steps)

    def test_it_has_a_dropout_of_its_own(self):
        graph, x = generic_graph(0), features(generic_graph(0))
        net = self.net_for(graph, dropout=0.0, propagation_dropout=0.0).train()
        assert_near(net(x, graph), net(x, graph))
        net = self.net_for(graph, dropout=0.0, propagation_dropout=0.5).train()
        assert not torch.equal(net(x, graph), net(x, graph))

    def test_reset_parameters_draws_anew(self):
        net = self.net_for(generic_graph(0))
        before = net.mlp.layers[0].weight.clone()
        net.reset_parameters()
        assert not torch.equal(net.mlp.layers[0].weight, before)
        assert_near(net.gamma, self.make().double().gamma)


@pytest.mark.parametrize(
    ("alpha", "gamma"),
    [(0.1, [0.1, 0.09, 0.081, 0.729]), (1.0, [1.0, 0.0, 0.0, 0.0]), (0.0, [0.0, 0.0, 0.0, 1.0])],
)
def test_the_weights_start_as_those_of_pagerank(alpha, gamma):
    net = GPRGNN(FEATURES, HIDDEN, CLASSES, steps=3, alpha=alpha)
    assert net.gamma.tolist() == pytest.approx(gamma)
    assert sum(net.gamma.tolist()) == pytest.approx(1.0)
    assert net.gamma.requires_grad
