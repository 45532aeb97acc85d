from typing import Any

import numpy as np
import pytest
import torch

from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.baselines import MLP


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_is_the_network_by_hand(num_layers):
    torch.manual_seed(0)
    net: Any = MLP(4, 6, 3, num_layers).double().eval()
    assert len(net.layers) == num_layers
    x = np.random.default_rng(0).standard_normal((5, 4))
    value = x
    for i, layer in enumerate(net.layers):
        value = value @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        value = np.maximum(value, 0) if i < num_layers - 1 else value
    np.testing.assert_allclose(net(torch.from_numpy(x)).detach().numpy(), value, atol=1e-12)


def test_dropout_acts_on_every_input_in_training_alone():
    net, x = MLP(4, 6, 3, dropout=0.5), torch.randn(5, 4)
    assert not torch.equal(net(x), net(x))
    assert torch.equal(net.eval()(x), net(x))
    one: Any = MLP(1, 1, 1, num_layers=1, dropout=0.25)
    torch.nn.init.zeros_(one.layers[0].bias)
    assert 0.22 < (one(torch.ones(4000, 1)) == 0).float().mean() < 0.28


def test_reset_parameters():
    net: Any = MLP(4, 6, 3)
    before = [layer.weight.clone() for layer in net.layers]
    net.reset_parameters()
    assert all(not torch.equal(layer.weight, b) for layer, b in zip(net.layers, before, strict=True))


def test_sparse_and_dense_features_are_one():
    torch.manual_seed(0)
    net = MLP(4, 6, 3).double().eval()
    x = torch.randn(5, 4, dtype=torch.float64) * (torch.rand(5, 4) < 0.5)
    torch.testing.assert_close(net(SparseFeatures.from_dense(x, dtype=torch.float64)), net(x), rtol=0, atol=1e-12)
    net.train()
    assert net(SparseFeatures.from_dense(x)).shape == (5, 3)
