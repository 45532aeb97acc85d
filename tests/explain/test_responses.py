"""Responses of filters, and the names of their shapes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import ZOO, graphs

from asgat.data import load_dataset
from asgat.explain.responses import (
    BANDS,
    Bands,
    applied_response,
    correlation,
    filter_response,
    response_shape,
    smooth_steps,
)
from asgat.filters import HeatFilter, MLPFilter
from asgat.spectral import ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator

FREQUENCY = np.linspace(0.0, 2.0, 401)
FLAT = np.ones_like(FREQUENCY)
GENERIC = ZOO["generic too"]


WIGGLE = 0.1 * np.sin(20 * FREQUENCY)


@pytest.mark.parametrize(
    ("response", "name"),
    [
        (2.0 - FREQUENCY, "low-pass"),
        (np.exp(-FREQUENCY), "low-pass"),
        (np.exp(-FREQUENCY) + WIGGLE, "low-pass"),
        (np.where(FREQUENCY < 0.05, 1.0, 0.0), "low-pass"),
        (FREQUENCY, "high-pass"),
        (np.exp(3 * FREQUENCY), "high-pass"),
        (np.minimum(FREQUENCY, 3.7 - FREQUENCY), "high-pass"),  # it falls a little at the end
        (np.exp(-30 * (FREQUENCY - 1.0) ** 2), "band-pass at λ ≈ 1.0"),
        (np.exp(-4 * (FREQUENCY - 1.2) ** 2) - 3.0, "band-pass at λ ≈ 1.2"),
        (1.0 - np.abs(FREQUENCY - 0.6) + WIGGLE / 2, "band-pass at λ ≈ 0.6"),
        (np.abs(FREQUENCY - 1.0), "both ends"),
        ((FREQUENCY - 1.2) ** 2 + WIGGLE, "both ends"),
        (-np.exp(-30 * (FREQUENCY - 1.0) ** 2), "both ends"),
        (np.cos(6 * np.pi * FREQUENCY), "mixed"),
        (np.sin(4 * np.pi * FREQUENCY), "mixed"),
        (np.full_like(FREQUENCY, 3.7), "flat"),
        (np.zeros_like(FREQUENCY), "flat"),
        (3.5 + 0.25 * FREQUENCY, "flat"),  # as it looks on an axis from 0
        (3.2 + 0.4 * FREQUENCY, "high-pass"),
        (1e-5 * FREQUENCY, "flat"),  # a dead head with a trace of a slope
    ],
)
def test_response_shape(response, name):
    assert response_shape(response, FREQUENCY, FLAT) == name


@pytest.mark.parametrize(("scale", "level"), [(1e-2, 0.0), (1e3, 5.0), (1.0, -5.0)])
def test_response_shape_does_not_depend_on_scale_and_level(scale, level):
    for response in (np.exp(-FREQUENCY), FREQUENCY**2, np.exp(-30 * (FREQUENCY - 1.0) ** 2)):
        expected = response_shape(response, FREQUENCY, FLAT)
        assert response_shape(scale * response + level, FREQUENCY, FLAT) == expected


@pytest.mark.parametrize("response", [np.exp(-FREQUENCY), FREQUENCY**3, (FREQUENCY - 0.8) ** 2])
def test_a_mirrored_response_has_the_mirrored_name(response):
    opposite = {"low-pass": "high-pass", "high-pass": "low-pass", "both ends": "band-pass at λ ≈ 0.8"}
    name = response_shape(response, FREQUENCY, FLAT)
    assert response_shape(-response, FREQUENCY, FLAT) == opposite[name]


def test_response_shape_is_that_between_the_eigenvalues():
    """A response that rises where the eigenvalues are is high-pass, whatever it does elsewhere."""
    tent = 1.0 - np.abs(FREQUENCY - 1.0)
    assert response_shape(tent, FREQUENCY, FLAT) == "band-pass at λ ≈ 1.0"
    assert response_shape(tent, FREQUENCY, (FREQUENCY < 1.0).astype(float)) == "high-pass"
    assert response_shape(tent, FREQUENCY, (FREQUENCY > 1.0).astype(float)) == "low-pass"
    # A few eigenvalues next to most of them count.
    assert response_shape(tent, FREQUENCY, np.where(FREQUENCY > 1.0, 1.0, 0.01)) == "band-pass at λ ≈ 1.0"


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


def parts_by_hand(graph, response):
    """What each band adds to each score, [heads, N, N, 4], from eigenvectors; response is [N, heads]."""
    value, vector = dense.eigen(graph)
    value = value.round(9)
    parts = []
    for low, high in BANDS:
        inside = (value >= low) & ((value < high) | (high == 2.0))
        parts.append([(vector * (response[:, h] * inside)) @ vector.T for h in range(response.shape[1])])
    return np.moveaxis(np.array(parts), 0, -1)


@given(graphs(min_nodes=2), st.integers(0, 3))
def test_bands_are_sums_over_their_eigenvalues(graph, seed):
    torch.manual_seed(seed)
    filter = MLPFilter(2).double()
    operator = ExactOperator(graph, dtype=torch.float64)
    nodes = np.arange(graph.num_nodes)
    index = np.broadcast_to(nodes, (2, graph.num_nodes, graph.num_nodes))
    value, _ = dense.eigen(graph)
    with torch.no_grad():
        response = filter(torch.from_numpy(value.round(9))).numpy()
    found = Bands(graph).contributions(operator, filter, nodes, index)
    np.testing.assert_allclose(found, parts_by_hand(graph, response), atol=1e-7)


@pytest.mark.parametrize("exact_nodes", [3000, 0], ids=["eigenvectors", "polynomials"])
@pytest.mark.parametrize("make", [ChebyshevOperator, TableOperator, ExactOperator])
@pytest.mark.parametrize("graph", [GENERIC, ZOO["star"], ZOO["even cycle"]], ids=["generic", "star", "cycle"])
def test_the_bands_of_a_score_sum_to_it(exact_nodes, make, graph):
    torch.manual_seed(1)
    filter = MLPFilter(3).double()
    operator = make(graph, dtype=torch.float64)
    index, score = (part.detach().numpy() for part in operator.top(filter, 4))
    parts = Bands(graph, exact_nodes).contributions(operator, filter, np.arange(graph.num_nodes), index)
    there = np.isfinite(score)
    kinked = make is ExactOperator and not exact_nodes  # the response is not a polynomial
    np.testing.assert_allclose(parts.sum(axis=-1)[there], score[there], rtol=0, atol=1e-3 if kinked else 1e-5)


def test_polynomials_separate_bands_as_eigenvectors_do():
    """Except for eigenvalues in the blur next to an edge; one edge has many eigenvalues exactly on it."""
    graph = load_dataset("karate").graph
    operator, filter = ExactOperator(graph, dtype=torch.float64), HeatFilter(1)
    nodes = np.arange(graph.num_nodes)
    index = np.broadcast_to(nodes, (1, 34, 34))
    exact, smooth = (Bands(graph, size).contributions(operator, filter, nodes, index) for size in (3000, 0))
    value, vector = dense.eigen(graph)
    blurred = [i for i, v in enumerate(value) if any(-0.06 < v - low < 0 for low, _ in BANDS[1:])]
    allowed = np.abs(vector[:, blurred]) @ np.abs(vector[:, blurred]).T + 0.02
    assert (np.abs(exact - smooth)[0] <= allowed[..., None]).all()
    assert (np.abs(value - 1.0) < 1e-9).sum() > 5
    assert np.abs(exact - smooth).mean() < 0.01


def test_smooth_steps_sum_to_one_and_are_one_inside_their_band():
    steps = smooth_steps()
    total = steps.sum(axis=0)
    np.testing.assert_allclose(total, np.eye(len(total))[0], atol=1e-12)
    for band, (low, high) in enumerate(BANDS):
        inside = np.polynomial.chebyshev.chebval(np.linspace(low + 0.02, high - 0.07, 20) - 1.0, steps[band])
        assert (np.abs(inside - 1.0) < 0.05).all()
