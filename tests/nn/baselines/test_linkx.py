import pytest
import torch
from tests.nn.baselines.conformance import CLASSES, FEATURES, HIDDEN, BaselineConformance, assert_near, features
from tests.strategies import ZOO, generic_graph, permuted
from torch_geometric import nn as pyg

from asgat.nn.baselines import LINKX


class TestLINKX(BaselineConformance):
    def make(self, num_nodes=14, **changes):
        return LINKX(num_nodes, FEATURES, HIDDEN, CLASSES, **changes)

    def net_for(self, graph, **changes):
        net = super().net_for(graph, num_nodes=graph.num_nodes, **changes)
        for norm in net.final_mlp.norms:  # as after some training
            torch.nn.init.normal_(norm.module.running_mean)
        return net

    def dense(self, net, x, adjacency):
        links = adjacency @ net.edge_lin.weight + net.edge_lin.bias
        mapped = x @ net.node_mlp.lins[0].weight.t() + net.node_mlp.lins[0].bias
        both = torch.cat([links, mapped], dim=1) @ torch.cat([net.cat_lin1.weight, net.cat_lin2.weight], dim=1).t()
        out = (both + net.cat_lin1.bias + net.cat_lin2.bias + links + mapped).relu()
        *inner, last = net.final_mlp.lins
        for lin, norm in zip(inner, net.final_mlp.norms, strict=True):
            batch = norm.module
            out = (out @ lin.weight.t() + lin.bias).relu()
            out = (out - batch.running_mean) / (batch.running_var + batch.eps).sqrt() * batch.weight + batch.bias
        return out @ last.weight.t() + last.bias

    def pyg(self, net, x, edges, weight):
        return pyg.LINKX.forward(net, x, edges, weight)

    @pytest.mark.parametrize("num_layers", [1, 3])
    def test_any_number_of_layers(self, num_layers):
        self.check(ZOO["generic"], num_layers=num_layers)

    def test_nodes_have_no_order(self):
        """They have, but only in the weights, which have a row per node."""
        graph, order = generic_graph(0), torch.randperm(14, generator=torch.Generator().manual_seed(0))
        net, x = self.net_for(graph), features(graph)
        before = net(x, graph)
        with torch.no_grad():
            net.edge_lin.weight.copy_(net.edge_lin.weight[order])
        assert_near(net(x[order], permuted(graph, order.numpy())), before[order])
