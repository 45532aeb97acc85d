import pytest
import torch
from tests.nn.baselines.conformance import CLASSES, FEATURES, BaselineConformance, features, looped, scaled
from tests.strategies import ZOO

from asgat.nn.baselines import SGC


class TestSGC(BaselineConformance):
    def make(self, **changes):
        return SGC(FEATURES, CLASSES, **changes)

    def dense(self, net, x, adjacency):
        step = scaled(looped(adjacency))
        return torch.linalg.matrix_power(step, net.conv.K) @ x @ net.conv.lin.weight.t() + net.conv.lin.bias

    def pyg(self, net, x, edges, weight):
        return net.conv(x, edges, weight)

    @pytest.mark.parametrize("steps", [0, 1, 5])
    def test_any_number_of_steps(self, steps):
        self.check(ZOO["generic"], steps=steps)


def test_without_steps_it_is_a_linear_map():
    net, x = SGC(FEATURES, CLASSES, steps=0), features(ZOO["star"]).float()
    expected = torch.nn.functional.linear(x, net.conv.lin.weight, net.conv.lin.bias)
    torch.testing.assert_close(net(x, ZOO["star"]), expected)
