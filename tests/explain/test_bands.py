"""Contributions of frequency bands, compared with dense mathematics."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import ZOO, graphs

from asgat.data import load_dataset
from asgat.explain.bands import BANDS, Bands, smooth_steps
from asgat.filters import HeatFilter, MLPFilter
from asgat.spectral import ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator

GENERIC = ZOO["generic too"]


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
