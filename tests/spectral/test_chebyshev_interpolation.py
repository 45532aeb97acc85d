import numpy as np
import pytest
import torch
from tests import dense

from asgat.filters import HeatFilter
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation, jackson


@pytest.mark.parametrize("order", [1, 2, 5, 15])
def test_coefficients_are_those_numpy_interpolates_with(order):
    filter = HeatFilter(1, scale=1.7).double()
    interpolation = ChebyshevInterpolation(order, dtype=torch.float64)

    def response(x):
        return filter(torch.from_numpy(x + 1.0)).numpy()[:, 0]

    expected = np.polynomial.chebyshev.chebinterpolate(response, order)
    np.testing.assert_allclose(interpolation.coefficients(filter)[0].numpy(), expected, atol=1e-13)


def test_single_precision_coefficients_come_from_points_kept_in_double():
    interpolation = ChebyshevInterpolation(5)
    assert interpolation.points.dtype == interpolation.transform.dtype == torch.float64
    assert interpolation.coefficients(HeatFilter(2)).dtype == torch.float32
    double = interpolation.to(torch.device("cpu"), torch.float64)
    assert double.coefficients(HeatFilter(2).double()).dtype == torch.float64


def test_coefficients_are_not_rounded_by_autocast():
    interpolation, filter = ChebyshevInterpolation(5), dense.filters()["mlp"].float()
    expected = interpolation.coefficients(filter)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(interpolation.coefficients(filter), expected)


@pytest.mark.parametrize("order", [1, 2, 7, 40])
def test_jackson_factors(order):
    np.testing.assert_allclose(jackson(order).numpy(), dense.jackson_by_autocorrelation(order), atol=1e-13)
