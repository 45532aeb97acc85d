import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from asgat.errors import AsgatError
from asgat.filters import MLPFilter
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation

SPECTRUM = torch.linspace(0, 2, 101)
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(), (4,), (6, 5), (3, 7, 2)])
def test_is_the_network_by_hand(activation, hidden):
    torch.manual_seed(0)
    filter = MLPFilter(3, hidden, activation).double()
    state = {name: value.numpy() for name, value in filter.state_dict().items()}
    value = np.linspace(0, 2, 7)[:, None] - 1.0
    for i in range(len(hidden)):
        value = np.maximum(value @ state[f"layers.{i}.weight"].T + state[f"layers.{i}.bias"], 0)
    last = len(hidden)
    value = ACTIVATIONS[activation](value @ state[f"layers.{last}.weight"].T + state[f"layers.{last}.bias"])
    actual = filter(torch.linspace(0, 2, 7, dtype=torch.float64)).detach().numpy()
    np.testing.assert_allclose(actual, value, atol=1e-12)


@functools.cache
def starts(heads, activation, hidden=(64, 64), seeds=100):
    """Responses at initialisation, [seeds, n, heads]."""
    out = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        out.append(MLPFilter(heads, hidden, activation)(SPECTRUM).detach())
    return torch.stack(out)


@pytest.mark.parametrize("activation", ["none", "tanh", "relu"])
@pytest.mark.parametrize("hidden", [(64, 64), (32, 64, 32)])
def test_every_head_starts_as_a_filter_of_its_own(activation, hidden):
    response = starts(4, activation, hidden)
    span = response.amax(1) - response.amin(1)
    flat = (span < 0.02).float().mean()
    assert flat < 0.01 if activation == "tanh" else flat == 0, "no head is flat; a tanh may saturate now and then"
    assert span.median() > 0.3
    apart = [(response[..., i] - response[..., j]).abs().amax(1) for i in range(4) for j in range(i)]
    same = (torch.stack(apart) < 0.02).float().mean()
    assert same < 0.01 if activation == "tanh" else same == 0, "no two heads are the same"
    slope = (response[:, -1] - response[:, 0]).sign()
    assert 0.3 < (slope > 0).float().mean() < 0.7, "low-pass and high-pass alike"


@pytest.mark.parametrize("activation", ["none", "tanh"])
def test_the_start_is_neither_tiny_nor_huge(activation):
    response = starts(4, activation)
    assert 0.2 < response.square().mean().sqrt() < 2.0


@pytest.mark.parametrize("heads", [1, 8])
@pytest.mark.parametrize("hidden", [(64, 64), (32, 64, 32), (2,)])
def test_an_output_relu_starts_alive_over_the_whole_spectrum(heads, hidden):
    assert starts(heads, "relu", hidden).amin() > 0


def test_an_output_relu_starts_with_gradients_for_every_head():
    for seed in range(50):
        torch.manual_seed(seed)
        filter: Any = MLPFilter(6, output_activation="relu")
        filter(SPECTRUM).sum().backward()
        assert (filter.layers[-1].bias.grad > 0).all()


@pytest.mark.parametrize("damping", [False, True])
def test_an_exact_bias_is_the_coefficient_of_order_0(damping):
    torch.manual_seed(0)
    exact: Any = MLPFilter(3, exact_bias=True).double()
    exact.layers[-1].bias.data.normal_()
    sampled = MLPFilter(3).double()
    sampled.load_state_dict(exact.state_dict())
    interpolation = ChebyshevInterpolation(8, 12, 2.0, damping)
    points, transform = interpolation.points, interpolation.transform
    torch.testing.assert_close(exact.transformed(points, transform), sampled.transformed(points, transform))
    torch.testing.assert_close(exact(points), sampled(points), rtol=0, atol=0)


def test_an_exact_bias_gets_no_rounding_of_other_orders():
    torch.manual_seed(0)
    interpolation = ChebyshevInterpolation(8)
    points, transform = interpolation.points.float(), interpolation.transform.float()
    gradients = []
    for exact_bias in (False, True):
        filter: Any = MLPFilter(3, exact_bias=exact_bias)
        filter.transformed(points, transform)[:, 1:].square().sum().backward()
        gradients.append(filter.layers[-1].bias.grad)
    assert (gradients[0] != 0).any(), "what rounding leaves of nothing"
    assert (gradients[1] == 0).all()


def test_under_an_activation_a_bias_is_no_shift():
    assert not MLPFilter(1, output_activation="tanh", exact_bias=True).exact_bias


def test_errors():
    with pytest.raises(AsgatError, match=r"Unknown output activation 'rel'. Did you mean 'relu'"):
        MLPFilter(1, output_activation="rel")
    with pytest.raises(AsgatError, match=r"at least 1, but are \[4, 0\]"):
        MLPFilter(1, hidden=(4, 0))


def test_repr():
    assert repr(MLPFilter(3)).startswith("MLPFilter(\n  heads=3, output_activation='none'\n")
