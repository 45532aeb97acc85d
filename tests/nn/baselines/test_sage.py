import pytest
import torch
from tests.nn.baselines.conformance import (
    CLASSES,
    FEATURES,
    HIDDEN,
    BaselineConformance,
    assert_near,
    features,
)
from tests.strategies import ZOO

from asgat.nn.baselines import SAGE


class TestSAGE(BaselineConformance):
    pyg_graphs = ("one loop", "path", "star", "complete", "no edges")  # PyG's mean does not weigh

    def make(self, **changes):
        return SAGE(FEATURES, HIDDEN, CLASSES, **changes)

    def dense(self, net, x, adjacency):
        for i, layer in enumerate(net.layers):
            around = []
            for row in adjacency:  # the mean over neighbours, or zeros where there are none
                near = row.nonzero().squeeze(1)
                weight = row[near] / row[near].sum()
                around.append(weight @ x[near] if len(near) else torch.zeros_like(x[0]))
            mean = torch.stack(around)
            x = mean @ layer.lin_l.weight.t() + layer.lin_l.bias + x @ layer.lin_r.weight.t()
            x = x.relu() if i < len(net.layers) - 1 else x
        return x

    def pyg(self, net, x, edges, weight):
        for layer in net.layers[:-1]:
            x = layer(x, edges).relu()
        return net.layers[-1](x, edges)

    @pytest.mark.parametrize("num_layers", [1, 3])
    def test_any_number_of_layers(self, num_layers):
        self.check(ZOO["generic"], num_layers=num_layers)

    def test_the_scale_of_the_weights_plays_no_part(self):
        graph = ZOO["generic"]
        net, x, edges = self.net_for(graph), features(graph), torch.from_numpy(graph.edge_index())
        weight = torch.from_numpy(graph.adjacency.tocoo().data)
        assert_near(net(x, edges, 7.0 * weight), net(x, edges, weight))
