import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import ZOO, generic_graph, graphs

from asgat.graph import Graph
from asgat.spectral import spectral_density
from asgat.spectral.density import affordable_signals

ANGLE = (np.arange(100) + 0.5) * np.pi / 100


def mass(graph, chosen=slice(None), **arguments):
    """The share of eigenvalues at λ = 1 - cos(angle): a midpoint sum, exact for up to 100 moments."""
    density = spectral_density(graph, 1.0 - np.cos(ANGLE), **arguments)
    assert (density >= 0).all()
    return np.sum((density * np.sin(ANGLE))[chosen]) * np.pi / 100


def smoothed_histogram(eigenvalues, frequency, moments):
    """The density with the true moments, term by term."""
    x, angle = frequency - 1.0, np.arccos(eigenvalues - 1.0)
    damping = dense.jackson_by_autocorrelation(moments)
    total = np.ones_like(x)
    for i in range(1, moments + 1):
        total += 2.0 * damping[i] * np.mean(np.cos(i * angle)) * np.cos(i * np.arccos(x))
    return total / (np.pi * np.sqrt(1.0 - x**2))


@given(graphs(max_nodes=10), st.integers(0, 5))
def test_integrates_to_one_and_is_not_negative(graph, seed):
    assert mass(graph, seed=seed) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("graph", ["no edges", "loops only", "one loop"])
def test_is_the_true_density_where_random_signals_cannot_err(graph):
    """Random signs square to 1, so the moments of a diagonal matrix come out exactly."""
    frequency = np.linspace(0.01, 1.99, 50)
    value, _ = dense.eigen(ZOO[graph])
    expected = smoothed_histogram(value, frequency, 30)
    np.testing.assert_allclose(spectral_density(ZOO[graph], frequency, 30), expected, atol=1e-10)


def test_nears_the_true_density_with_many_signals():
    graph = generic_graph(0, 30)
    frequency = np.linspace(0.01, 1.99, 50)
    expected = smoothed_histogram(dense.eigen(graph)[0], frequency, 20)
    few, many = (spectral_density(graph, frequency, 20, samples, seed=1) for samples in (2, 5000))
    np.testing.assert_allclose(many, expected, atol=0.03)
    assert np.abs(many - expected).max() < np.abs(few - expected).max()


def test_peaks_where_the_eigenvalues_are():
    """Many components of one edge: half of the eigenvalues are 0, half are 2."""
    graph = Graph.from_edges([np.arange(0, 40, 2), np.arange(1, 40, 2)])
    assert mass(graph, ANGLE < 0.15) == pytest.approx(0.5, abs=0.02)
    assert mass(graph, np.pi - 0.15 < ANGLE) == pytest.approx(0.5, abs=0.02)


def test_the_ends_of_the_spectrum_are_looked_at_from_next_to_them():
    graph = generic_graph(0, 30)
    ends, near = (spectral_density(graph, np.array(f), 20) for f in ([0.0, 2.0], [0.0001, 1.9999]))
    np.testing.assert_allclose(ends, near, rtol=1e-9)
    assert not np.isclose(spectral_density(graph, np.array([0.3, 1.7]), 20), near, rtol=1e-3).any()


def test_same_seed_same_density():
    graph, frequency = ZOO["generic"], np.linspace(0, 2, 9)
    assert np.array_equal(spectral_density(graph, frequency, seed=3), spectral_density(graph, frequency, seed=3))
    assert not np.array_equal(spectral_density(graph, frequency, seed=3), spectral_density(graph, frequency, seed=4))


def test_a_graph_without_nodes_has_no_density():
    assert spectral_density(ZOO["no nodes"], np.linspace(0, 2, 3)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("entries", "signals"), [(0, 16), (10**5, 16), (10**7, 2), (25 * 10**6, 1), (10**8, 0)])
def test_a_larger_graph_gets_fewer_signals(entries, signals):
    assert affordable_signals(entries) == signals


def test_a_graph_gets_the_signals_that_are_affordable(monkeypatch):
    graph, frequency = ZOO["generic"], np.linspace(0, 2, 9)
    few = spectral_density(graph, frequency, samples=1)
    monkeypatch.setattr("asgat.spectral.density.WORK", 80 * graph.num_entries)
    assert np.array_equal(spectral_density(graph, frequency), few)
    monkeypatch.setattr("asgat.spectral.density.WORK", 1)
    assert np.array_equal(spectral_density(graph, frequency), few)
