import pytest
import torch
import torch.nn.functional as F

from asgat.nn.rows import add_bias, by_copy, by_node, gelu, layer_norm


@pytest.mark.parametrize("runs", [1, 3])
def test_stacked_runs_are_computed_as_single_ones(runs):
    torch.manual_seed(0)
    x, weight, bias = torch.randn(runs, 6, 4), torch.randn(runs, 4), torch.randn(runs, 4)
    for row in range(runs):
        own, scale, shift = x[row], weight[row], bias[row]
        assert torch.equal(add_bias(x, bias)[row], own + shift)
        assert torch.equal(gelu(x)[row], F.gelu(own))
        assert torch.equal(layer_norm(x, weight, bias)[row], F.layer_norm(own, (4,), scale, shift))
    with_axes = (F.layer_norm(x, (4,)) * weight.unsqueeze(1)) + bias.unsqueeze(1)
    torch.testing.assert_close(layer_norm(x, weight, bias), with_axes)


@pytest.mark.parametrize("lead", [(), (3,)])
def test_copies_of_a_node_are_next_to_each_other(lead):
    x = torch.arange(24.0).expand(*lead, 24).reshape(*lead, 4, 6)
    copies = by_copy(x, 2)
    assert copies.shape == (*lead, 8, 3)
    assert torch.equal(copies[..., 0::2, :], x[..., :3])
    assert torch.equal(copies[..., 1::2, :], x[..., 3:])
    assert torch.equal(by_node(copies), x)
    assert by_copy(x, 1) is x
