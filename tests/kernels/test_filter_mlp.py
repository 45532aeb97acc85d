"""The fused kernels of filters that are perceptrons, against the filter in plain PyTorch."""

import pytest
import torch
from tests.kernels.devices import DEVICES

from asgat.filters import MLPFilter
from asgat.kernels.filter_mlp import MAX_WIDTH, fits_one_kernel, mlp_coefficients
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
on_devices = pytest.mark.parametrize("device", DEVICES)
HIDDEN = [(20,), (64, 64), (32, 64, 32), (5, 7, 3)]
OUTPUTS = [("none", False), ("relu", False), ("none", True)]


def filter_of(hidden, output, exact_bias):
    torch.manual_seed(0)
    made = MLPFilter(3, hidden, output, exact_bias)
    with torch.no_grad():
        for value in made.parameters():
            value.add_(0.3 * torch.randn_like(value))
    return made


def gradients(coefficients, parameters):
    weight = torch.linspace(-1, 1, coefficients.numel(), dtype=torch.float64).view_as(coefficients).to(coefficients)
    return torch.autograd.grad((weight * coefficients).sum(), parameters)


def plain(one, frequency, matrix):
    """The coefficients by PyTorch's operators, which have gradients of their own."""
    hidden = frequency.unsqueeze(-1) - 1.0
    *layers, last = one.layers
    for layer in layers:
        hidden = torch.relu(hidden @ layer.weight.t() + layer.bias)
    response = hidden @ last.weight.t()
    response = response if one.exact_bias else response + last.bias
    coefficients = (torch.relu(response) if one.output_activation == "relu" else response).t() @ matrix
    first = torch.eye(matrix.size(1), dtype=matrix.dtype)[:1]
    return coefficients + last.bias.unsqueeze(1) * first if one.exact_bias else coefficients


@on_devices
@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
@pytest.mark.parametrize(("output", "exact_bias"), OUTPUTS)
def test_the_kernel_computes_what_the_filter_does_in_double_precision(hidden, output, exact_bias, device):
    one = filter_of(hidden, output, exact_bias)
    wide = ChebyshevInterpolation(9, dtype=torch.float64)
    expected = plain(one.double(), wide.points, wide.transform)
    wanted = gradients(expected, list(one.parameters()))
    if device == "cpu":
        same = wide.coefficients(one)
        torch.testing.assert_close(same, expected, rtol=1e-12, atol=1e-12)
        for got, want in zip(gradients(same, list(one.parameters())), wanted, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    one.float().to(device)
    narrow = ChebyshevInterpolation(9, device=device)
    assert fits_one_kernel(narrow.points.float(), output, one._weights_and_biases())
    found = narrow.coefficients(one)
    torch.testing.assert_close(found.double().cpu(), expected, rtol=1e-5, atol=1e-5)
    for got, want in zip(gradients(found, list(one.parameters())), wanted, strict=True):
        torch.testing.assert_close(got.double().cpu(), want, rtol=1e-4, atol=1e-4)


def test_another_precision_keeps_to_pytorch():
    one = filter_of((8, 8), "none", False)
    points = torch.linspace(0, 2, 9)
    assert one._for_one_kernel(points) is not None
    assert not fits_one_kernel(points, "none", one.double()._weights_and_biases())


@on_devices
def test_large_filters_other_activations_and_subclasses_keep_to_pytorch(device):
    points = torch.linspace(0, 2, 9, device=device)
    for one in (
        MLPFilter(2, (MAX_WIDTH + 1,)),
        MLPFilter(2, (4, 4, 4, 4)),
        MLPFilter(2, output_activation="tanh"),
        type("Shifted", (MLPFilter,), {"_hidden": lambda self, at: MLPFilter._hidden(self, at + 1)})(2),
    ):
        one.to(device)
        assert one._for_one_kernel(points) is None
        torch.testing.assert_close(one.transformed(points, torch.eye(9, device=device)), one(points).t())


@needs_cuda
def test_the_compiler_takes_it_as_one_operator():
    one = filter_of((8, 8), "none", False)
    one.cuda()
    points = torch.linspace(0, 2, 9, device="cuda")
    matrix = torch.eye(9, device="cuda")
    layers = [value.detach() for value in one._weights_and_biases()]
    compiled = torch.compile(lambda *own: mlp_coefficients(points, matrix, "none", False, own), fullgraph=True)
    torch.testing.assert_close(compiled(*layers), one(points).t())
