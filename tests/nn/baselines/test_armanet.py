import pytest
import torch
from tests.nn.baselines.conformance import CLASSES, FEATURES, HIDDEN, BaselineConformance, scaled
from tests.strategies import ZOO, generic_graph

from asgat.nn.baselines import ARMANet


class TestARMANet(BaselineConformance):
    def make(self, **changes):
        return ARMANet(FEATURES, HIDDEN, CLASSES, **{"depth": 2, **changes})

    def dense(self, net, x, adjacency):
        step = scaled(adjacency)
        for i, layer in enumerate(net.layers):
            last = i == len(net.layers) - 1
            stacks = []
            for k in range(layer.num_stacks):
                out = x @ layer.init_weight[k]
                for t in range(layer.num_layers):
                    out = out @ layer.weight[0, k] if t else out
                    out = step @ out + x @ layer.root_weight[0, k] + layer.bias[0, k]
                    out = out if last else out.relu()
                stacks.append(out)
            x = torch.stack(stacks).mean(dim=0)
        return x

    def pyg(self, net, x, edges, weight):
        for layer in net.layers[:-1]:
            x = layer(x, edges, weight)
        net.layers[-1].act = None
        return net.layers[-1](x, edges, weight)

    @pytest.mark.parametrize(("num_layers", "stacks", "depth"), [(1, 1, 1), (2, 3, 1), (3, 2, 4)])
    def test_any_shape(self, num_layers, stacks, depth):
        self.check(ZOO["generic"], num_layers=num_layers, stacks=stacks, depth=depth)

    def test_the_skip_has_its_own_dropout(self):
        graph, x = generic_graph(0), torch.randn(14, FEATURES).double()
        net = self.net_for(graph, dropout=0.0, skip_dropout=0.0).train()
        assert torch.equal(net(x, graph), net(x, graph))
        net = self.net_for(graph, dropout=0.0, skip_dropout=0.5).train()
        assert not torch.equal(net(x, graph), net(x, graph))


def test_no_weight_is_kept_that_is_never_used():
    net, graph = ARMANet(FEATURES, HIDDEN, CLASSES, depth=1), generic_graph(0)
    net(torch.randn(14, FEATURES), graph).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())
