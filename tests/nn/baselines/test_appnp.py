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
from tests.strategies import ZOO
from torch_geometric import nn as pyg

from asgat.nn.baselines import APPNP


class TestAPPNP(BaselineConformance):
    def make(self, **changes):
        return APPNP(FEATURES, HIDDEN, CLASSES, **{"alpha": 0.2, "steps": 4, **changes})

    def dense(self, net, x, adjacency):
        start = net.mlp(x)
        out, step = start, scaled(looped(adjacency))
        for _ in range(net.steps):
            out = (1 - net.alpha) * step @ out + net.alpha * start
        return out

    def pyg(self, net, x, edges, weight):
        return pyg.APPNP(net.steps, net.alpha)(net.mlp(x), edges, weight)

    @pytest.mark.parametrize(("steps", "alpha"), [(0, 0.5), (1, 0.0), (3, 1.0), (10, 0.1)])
    def test_any_number_of_steps_and_any_alpha(self, steps, alpha):
        self.check(ZOO["generic"], steps=steps, alpha=alpha)

    def test_many_steps_come_to_personalised_pagerank(self):
        graph = ZOO["generic"]
        net, x = self.net_for(graph, steps=200), features(graph)
        step = scaled(looped(torch.from_numpy(graph.adjacency.toarray())))
        exact = 0.2 * torch.linalg.inv(torch.eye(14, dtype=torch.float64) - 0.8 * step)
        assert_near(net(x, graph), exact @ net.mlp(x))


def test_dropout_takes_entries_of_the_matrix_as_well():
    """All features are equal and there is no bias: what still varies is the matrix."""
    net, graph = APPNP(1, 1, 1, num_layers=1, dropout=0.5, steps=1, alpha=0.0), ZOO["complete"]
    torch.nn.init.ones_(net.mlp.layers[0].weight)  # type: ignore[arg-type]
    torch.nn.init.zeros_(net.mlp.layers[0].bias)  # type: ignore[arg-type]
    net.mlp.dropout = 0.0
    torch.manual_seed(0)
    draws = torch.stack([net(torch.ones(5, 1), graph) for _ in range(300)]).flatten()
    assert len(draws.unique().round(decimals=3).unique()) == 6  # 0 to 5 of the 5 entries of a row
    assert draws.mean().item() == pytest.approx(1.0, abs=0.06)
