"""H2GCN against dense mathematics, and against loops over nodes and their neighbours."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.nn.baselines.conformance import CLASSES, FEATURES, HIDDEN, BaselineConformance, features, scaled
from tests.strategies import ZOO, graphs

from asgat.errors import AsgatError
from asgat.nn.baselines import H2GCN, h2gcn
from asgat.nn.baselines.h2gcn import neighbourhoods


def hops(graph, v):
    """The nodes at one hop and those at two, by walking."""
    near = {int(u) for u in graph.adjacency[[v]].indices} - {v}
    beyond = {int(w) for u in near for w in graph.adjacency[[u]].indices} - near - {v}
    return near, beyond


class TestH2GCN(BaselineConformance):
    weights_matter = False

    def make(self, **changes):
        return H2GCN(FEATURES, HIDDEN, CLASSES, **changes)

    def dense(self, net, x, adjacency):
        one = (adjacency > 0).double().fill_diagonal_(0)
        two = ((one @ one) > 0).double().fill_diagonal_(0) * (1 - one)
        rounds = [torch.relu(x @ net.embedding.weight.t())]
        for _ in range(net.num_layers):
            rounds.append(torch.cat([scaled(one) @ rounds[-1], scaled(two) @ rounds[-1]], dim=1))
        return torch.cat(rounds, dim=1) @ net.classifier.weight.t()

    def pyg(self, net, x, edges, weight):
        """PyG has no such layer: the paper's sums, node by node."""
        graph = next(g for g in ZOO.values() if np.array_equal(g.edge_index(), edges) and g.num_nodes == len(x))
        near = [hops(graph, v) for v in range(graph.num_nodes)]
        rounds = [torch.relu(x @ net.embedding.weight.t())]
        for _ in range(net.num_layers):
            last = rounds[-1]
            rows = []
            for v in range(graph.num_nodes):
                parts = [torch.zeros_like(last[0]), torch.zeros_like(last[0])]
                for i in (0, 1):
                    for u in near[v][i]:
                        parts[i] = parts[i] + last[u] / np.sqrt(len(near[v][i]) * len(near[u][i]))
                rows.append(torch.cat(parts))
            rounds.append(torch.stack(rows))
        return torch.cat(rounds, dim=1) @ net.classifier.weight.t()

    @given(graph=graphs(), num_layers=st.integers(1, 3))
    def test_any_number_of_rounds(self, graph, num_layers):
        self.check(graph, num_layers=num_layers)

    def test_sizes(self):
        net = self.make(num_layers=1)
        assert [list(p.shape) for p in net.parameters()] == [[HIDDEN, FEATURES], [CLASSES, 3 * HIDDEN]]


@pytest.mark.parametrize("name", ZOO)
def test_the_two_neighbourhoods(name):
    graph = ZOO[name]
    both = neighbourhoods(graph)
    assert both.shape == (2 * graph.num_nodes, graph.num_nodes)
    for v in range(graph.num_nodes):
        assert tuple(set(both[[2 * v + i]].indices.tolist()) for i in (0, 1)) == hops(graph, v)


def test_more_pairs_than_memory_are_refused(monkeypatch):
    monkeypatch.setattr(h2gcn, "available_memory", lambda: 100)
    with pytest.raises(AsgatError, match=r"pairs of nodes within two hops.*more than the 1e\+02 that are free"):
        neighbourhoods(ZOO["path"])
    monkeypatch.setattr(h2gcn, "available_memory", lambda: None)
    net = H2GCN(FEATURES, HIDDEN, CLASSES).double()
    assert net(features(ZOO["path"]), ZOO["path"]).shape == (6, CLASSES)
