"""Responses of filters, and the names of their shapes."""

import numpy as np
import pytest
from tests.strategies import ZOO

from asgat.explain.responses import applied_response, correlation, filter_response, response_shape
from asgat.filters import HeatFilter, MLPFilter
from asgat.spectral import ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator

FREQUENCY = np.linspace(0.0, 2.0, 401)
FLAT = np.ones_like(FREQUENCY)
GENERIC = ZOO["generic too"]


@pytest.mark.parametrize(
    ("response", "name"),
    [
        (2.0 - FREQUENCY, "low-pass"),
        (np.exp(-FREQUENCY), "low-pass"),
        (FREQUENCY, "high-pass"),
        (np.exp(3 * FREQUENCY), "high-pass"),
        (np.exp(-30 * (FREQUENCY - 1.0) ** 2), "middle"),
        (np.cos(6 * np.pi * FREQUENCY), "mixed"),
        (np.full_like(FREQUENCY, 3.7), "flat"),
        (np.zeros_like(FREQUENCY), "flat"),
        (1e-5 * FREQUENCY, "flat"),  # a dead head with a trace of a slope
        (np.where(FREQUENCY > 1.999, 1e-3, 0.0), "flat"),
        (np.abs(FREQUENCY - 1.0), "both ends"),
        (np.sin(4 * np.pi * FREQUENCY), "mixed"),
    ],
)
def test_response_shape(response, name):
    assert response_shape(response, FREQUENCY, FLAT) == name


@pytest.mark.parametrize(("scale", "level"), [(1e-3, 0.0), (1e3, 5.0), (1.0, -100.0)])
def test_response_shape_does_not_depend_on_scale_and_level(scale, level):
    for response in (np.exp(-FREQUENCY), FREQUENCY**2, np.exp(-30 * (FREQUENCY - 1.0) ** 2)):
        expected = response_shape(response, FREQUENCY, FLAT)
        assert response_shape(scale * response + level, FREQUENCY, FLAT) == expected


def test_a_negated_low_pass_is_high_pass():
    for response in (np.exp(-FREQUENCY), FREQUENCY**3):
        names = {response_shape(sign * response, FREQUENCY, FLAT) for sign in (1, -1)}
        assert names == {"low-pass", "high-pass"}


def test_response_shape_weights_frequencies_by_the_density():
    """A response that rises where the eigenvalues are is high-pass, whatever it does elsewhere."""
    tent = 1.0 - np.abs(FREQUENCY - 1.0)
    assert response_shape(tent, FREQUENCY, FLAT) == "middle"
    assert response_shape(tent, FREQUENCY, (FREQUENCY < 1.0).astype(float)) == "high-pass"
    assert response_shape(tent, FREQUENCY, (FREQUENCY > 1.0).astype(float)) == "low-pass"


def test_correlation():
    assert correlation(np.exp(-FREQUENCY), FREQUENCY, FLAT) < -0.95
    assert correlation(FREQUENCY, FREQUENCY, FLAT) == pytest.approx(1.0)
    assert correlation(FLAT, FREQUENCY, FLAT) == 0.0
    assert correlation((FREQUENCY - 1) ** 2, FREQUENCY, FLAT) == pytest.approx(0.0, abs=1e-9)


def test_filter_response_is_the_formula():
    response = filter_response(HeatFilter(2, scale=1.5), FREQUENCY)
    assert response.shape == (401, 2)
    np.testing.assert_allclose(response, np.exp(-1.5 * FREQUENCY)[:, None].repeat(2, axis=1), rtol=1e-5)


@pytest.mark.parametrize("filter", [HeatFilter(2), MLPFilter(2)])
def test_filter_response_has_the_filters_precision(filter):
    assert filter_response(filter, FREQUENCY).dtype == np.float32
    assert filter_response(filter.double(), FREQUENCY).dtype == np.float64


def test_the_applied_response_is_the_operators_polynomial():
    filter, frequency = HeatFilter(2, scale=30.0), np.linspace(0.0, 2.0, 50)
    coarse = applied_response(ChebyshevOperator(GENERIC, order=2), filter, frequency)
    fine = applied_response(ChebyshevOperator(GENERIC, order=60), filter, frequency)
    truth = applied_response(ExactOperator(GENERIC), filter, frequency)
    for table in (TableOperator(GENERIC, order=2), TableOperator(GENERIC, order=2, builder="truncated")):
        np.testing.assert_allclose(applied_response(table, filter, frequency), coarse, atol=1e-6)
    assert coarse.shape == truth.shape == (50, 2)
    assert np.abs(fine - truth).max() < 1e-4 < 0.1 < np.abs(coarse - truth).max()
