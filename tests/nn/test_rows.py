import pytest
import torch
import torch.nn.functional as F
from tests.strategies import ZOO

from asgat.nn.rows import add_bias, by_copy, by_node, gelu, layer_norm, linear, product
from asgat.spectral import ChebyshevOperator
from asgat.tables import TableOperator


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


def test_products_are_wide_where_sums_are_exact():
    x, weight, bias = torch.randn(5, 3), torch.randn(3, 2), torch.randn(2)
    plain = ChebyshevOperator(ZOO["path"], order=2)
    exact = TableOperator(ZOO["path"], order=2, candidates=4, exact_sums=True)
    assert product(x, weight, plain).dtype == torch.float32
    torch.testing.assert_close(product(x, weight, exact), x.double() @ weight.double())
    torch.testing.assert_close(linear(x, weight, bias, plain), x @ weight + bias)
    torch.testing.assert_close(linear(x, weight, bias, exact), x.double() @ weight.double() + bias.double())


@pytest.mark.parametrize("lead", [(), (3,)])
def test_copies_of_a_node_are_next_to_each_other(lead):
    x = torch.arange(24.0).expand(*lead, 24).reshape(*lead, 4, 6)
    copies = by_copy(x, 2)
    assert copies.shape == (*lead, 8, 3)
    assert torch.equal(copies[..., 0::2, :], x[..., :3])
    assert torch.equal(copies[..., 1::2, :], x[..., 3:])
    assert torch.equal(by_node(copies), x)
    assert by_copy(x, 1) is x
