import pytest
import torch
from tests.nn.baselines.conformance import CLASSES, FEATURES, HIDDEN, BaselineConformance, looped, scaled
from tests.strategies import ZOO

from asgat.nn.baselines import GCN


class TestGCN(BaselineConformance):
    def make(self, **changes):
        return GCN(FEATURES, HIDDEN, CLASSES, **changes)

    def dense(self, net, x, adjacency):
        step = scaled(looped(adjacency))
        for i, layer in enumerate(net.layers):
            x = step @ x @ layer.lin.weight.t() + layer.bias
            x = x.relu() if i < len(net.layers) - 1 else x
        return x

    def pyg(self, net, x, edges, weight):
        for layer in net.layers[:-1]:
            x = layer(x, edges, weight).relu()
        return net.layers[-1](x, edges, weight)

    @pytest.mark.parametrize("num_layers", [1, 3])
    def test_any_number_of_layers(self, num_layers):
        self.check(ZOO["generic"], num_layers=num_layers)
        assert len(self.make(num_layers=num_layers).layers) == num_layers


def test_dropout_is_on_the_input_of_every_layer():
    net, x = GCN(1, 1, 1, num_layers=1, dropout=0.25), torch.ones(4000, 1)
    torch.nn.init.ones_(net.layers[0].lin.weight)  # type: ignore[union-attr,arg-type]
    lost = (net(x, torch.empty(2, 0, dtype=torch.long)) == 0).float().mean()
    assert 0.22 < lost < 0.28
