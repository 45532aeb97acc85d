import pytest
import torch
import torch.nn.functional as F
from tests.nn.baselines.conformance import CLASSES, FEATURES, HIDDEN, BaselineConformance, features, looped
from tests.strategies import ZOO, generic_graph

from asgat.nn.baselines import GAT


class TestGAT(BaselineConformance):
    weights_matter = False

    def make(self, **changes):
        return GAT(FEATURES, HIDDEN, CLASSES, **{"heads": 2, **changes})

    def dense(self, net, x, adjacency):
        outside = looped(adjacency) == 0
        for i, layer in enumerate(net.layers):
            heads = []
            for h, weight in enumerate(layer.lin.weight.view(layer.heads, layer.out_channels, -1)):
                mapped = x @ weight.t()
                to, of = mapped @ layer.att_dst[0, h], mapped @ layer.att_src[0, h]
                score = F.leaky_relu(to[:, None] + of[None, :], 0.2).masked_fill(outside, -torch.inf)
                heads.append(torch.softmax(score, dim=1) @ mapped)
            last = i == len(net.layers) - 1
            x = torch.stack(heads).mean(dim=0) + layer.bias if last else torch.cat(heads, dim=1) + layer.bias
            x = x if last else F.elu(x)
        return x

    def pyg(self, net, x, edges, weight):
        for layer in net.layers:
            layer.add_self_loops = True
        for layer in net.layers[:-1]:
            x = F.elu(layer(x, edges))
        return net.layers[-1](x, edges)

    @pytest.mark.parametrize(("num_layers", "heads", "out_heads"), [(1, 1, 1), (2, 3, 2), (3, 2, 1)])
    def test_any_shape(self, num_layers, heads, out_heads):
        self.check(ZOO["generic"], num_layers=num_layers, heads=heads, out_heads=out_heads)
        net = self.make(num_layers=num_layers, heads=heads, out_heads=out_heads)
        assert [layer.heads for layer in net.layers] == [heads] * (num_layers - 1) + [out_heads]

    def test_attention_has_its_own_dropout(self):
        graph, x = generic_graph(0), features(generic_graph(0))
        net = self.net_for(graph, dropout=0.0, attention_dropout=0.0).train()
        assert torch.equal(net(x, graph), net(x, graph))
        net = self.net_for(graph, dropout=0.0, attention_dropout=0.5).train()
        assert not torch.equal(net(x, graph), net(x, graph))
