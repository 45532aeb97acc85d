import pytest
import torch

from asgat.filters import HeatFilter, MLPFilter, PolynomialFilter
from asgat.filters.stacked import StackedFilter
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation

FORMS = [
    lambda: MLPFilter(3, hidden=(5, 4)),
    lambda: MLPFilter(2, hidden=(6,), output_activation="relu"),
    lambda: HeatFilter(2, scale=0.7, learned=True),
    lambda: HeatFilter(2),
    lambda: PolynomialFilter(3, degree=2),
]


def stacked(make, dtype, runs=4):
    filters = [make().to(dtype) for _ in range(runs)]
    state = {name: torch.stack([f.state_dict()[name] for f in filters]) for name in filters[0].state_dict()}
    return filters, StackedFilter(filters[0], {name: value.requires_grad_() for name, value in state.items()})


@pytest.mark.parametrize("make", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_run_responds_as_alone(make, dtype):
    filters, together = stacked(make, dtype)
    frequency = torch.linspace(0.0, 2.0, 7, dtype=dtype)
    expected = torch.cat([f(frequency) for f in filters], dim=1)
    assert together.heads == expected.size(1)
    torch.testing.assert_close(together(frequency), expected)
    matrix = torch.randn(7, 5, dtype=dtype)
    torch.testing.assert_close(together.transformed(frequency, matrix), expected.t() @ matrix)


@pytest.mark.parametrize("make", [FORMS[0], FORMS[2], FORMS[4]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_each_runs_own(make, dtype):
    filters, together = stacked(make, dtype)
    frequency = torch.linspace(0.0, 2.0, 7, dtype=dtype)
    scale = torch.randn(together.heads, dtype=dtype)
    (together(frequency) * scale).sum().backward()
    for run, own in enumerate(filters):
        (own(frequency) * scale.view(len(filters), -1)[run]).sum().backward()
        for name, value in own.named_parameters():
            torch.testing.assert_close(together.state[name].grad[run], value.grad)


def test_in_double_precision_to_the_last_bit():
    filters, together = stacked(lambda: MLPFilter(1), torch.float64)
    frequency, matrix = torch.rand(16, dtype=torch.float64), torch.randn(16, 16, dtype=torch.float64)
    assert torch.equal(together(frequency), torch.cat([f(frequency) for f in filters], dim=1))
    assert torch.equal(
        together.transformed(frequency, matrix), torch.cat([f.transformed(frequency, matrix) for f in filters])
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_runs_bias_is_exact(dtype):
    filters, together = stacked(lambda: MLPFilter(3, hidden=(5, 4), exact_bias=True), dtype)
    interpolation = ChebyshevInterpolation(6)
    points, transform = interpolation.points.to(dtype), interpolation.transform.to(dtype)
    together.state["layers.2.bias"].data.normal_()
    for own, bias in zip(filters, together.state["layers.2.bias"], strict=True):
        own.layers[-1].bias.data.copy_(bias)
    coefficients = together.transformed(points, transform)
    torch.testing.assert_close(coefficients, torch.cat([f.transformed(points, transform) for f in filters]))
    coefficients[:, 1:].square().sum().backward()
    assert (together.state["layers.2.bias"].grad == 0).all()


def test_the_weights_are_not_its_own():
    _, together = stacked(FORMS[0], torch.float32)
    assert not list(together.parameters())
    assert repr(together) == "StackedFilter(runs=4, heads=12)"
