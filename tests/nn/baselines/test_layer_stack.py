from typing import Any

import pytest
import torch
from torch import nn

from asgat.graph import Graph
from asgat.nn.baselines.layer_stack import LayerStack
from asgat.nn.baselines.propagation import adjacency


@pytest.mark.parametrize(("num_layers", "sizes"), [(1, [(2, 4)]), (3, [(2, 3), (3, 3), (3, 4)])])
def test_sizes_of_layers(num_layers, sizes):
    net: Any = Summing(2, 3, 4, num_layers, bias=False)
    assert [(layer.in_features, layer.out_features) for layer in net.layers] == sizes
    assert all(layer.bias is None for layer in net.layers), "settings reach every layer"


class Summing(LayerStack):
    matrix = staticmethod(adjacency)
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
