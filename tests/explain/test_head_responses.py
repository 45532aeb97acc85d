import numpy as np
import pytest
import torch

from asgat.data import load_dataset
from asgat.explain.head_responses import HeadResponses, head_responses, oriented
from asgat.graph import Graph
from asgat.nn.deep import ASGATDeep
from asgat.nn.ensemble import Ensemble
from asgat.spectral import ExactOperator

FREQUENCY = np.linspace(0.0, 2.0, 401)
EVEN = HeadResponses(FREQUENCY, np.full(401, 0.5), [], [])


def deep(channels, **settings):
    return ASGATDeep(3, 6, 2, num_layers=2, heads=3, channels=channels, **settings)


@pytest.mark.parametrize(
    ("channels", "attention", "filters"), [("attention+filters", 2, 2), ("filters+mean", 0, 2), ("mean", 0, 0)]
)
def test_every_head_has_a_response(channels, attention, filters):
    model, graph = deep(channels), load_dataset("karate").graph
    held = head_responses(model, graph)
    assert [r.shape for r in held.attention] == [(401, 3)] * attention
    assert [r.shape for r in held.filters] == [(401, 3)] * filters
    for conv, response in zip(model.filter_convs, held.filters, strict=True):
        expected = conv.filter(torch.linspace(0, 2, 401)).detach().numpy()
        np.testing.assert_allclose(response, expected, atol=1e-6)
    of_ensemble = head_responses(Ensemble([model, deep(channels)]), graph)
    assert all(np.array_equal(a, b) for a, b in zip(held.filters, of_ensemble.filters, strict=True))
    assert Ensemble([model]).layer_name == "block"


def test_the_shape_of_a_filter_is_that_with_its_largest_size_positive():
    falling = FREQUENCY - 2.0  # large and negative at low frequencies
    assert EVEN.shape(falling, "attention") == "high-pass"
    assert EVEN.shape(falling, "filters") == "low-pass"
    assert EVEN.shape(np.full(401, -3.0), "filters") == "flat"
    assert EVEN.shape(FREQUENCY * 2 - 1.0, "filters") == "high-pass"  # from -1 to 3
    np.testing.assert_array_equal(oriented(falling), 2.0 - FREQUENCY)


def test_shares_of_bands_are_those_of_the_squared_response():
    shares = EVEN.band_shares(np.where(FREQUENCY < 0.5, 2.0, 0.0))
    np.testing.assert_allclose(shares, [1, 0, 0, 0])
    np.testing.assert_allclose(EVEN.band_shares(np.where(FREQUENCY < 1.0, 1.0, -1.0)), [0.25] * 4, atol=0.01)
    assert EVEN.band_shares(np.zeros(401)).tolist() == [0.0] * 4


def test_shares_of_bands_are_those_of_the_matrix():
    graph = load_dataset("csbm").graph
    values = np.cos(FREQUENCY)[:, None]
    held = head_responses(deep("filters"), graph)
    eigenvalues = ExactOperator(graph, dtype=torch.float64).eigenvalues.numpy()
    strength, _ = np.histogram(eigenvalues, [0, 0.5, 1, 1.5, 2.000001], weights=np.cos(eigenvalues) ** 2)
    np.testing.assert_allclose(held.band_shares(values[:, 0]), strength / strength.sum(), atol=0.05)


def test_odd_responses_go_along_directed_edges():
    """The double cover is bipartite: an odd function of its adjacency matrix joins sources with targets."""
    graph = Graph.from_edges(load_dataset("karate").graph.edges_once()[0], 34, directed=True)
    held = head_responses(deep("filters", directed=True), graph)
    assert held.along_edges(1.0 - FREQUENCY) == pytest.approx(1.0)
    assert held.along_edges((1.0 - FREQUENCY) ** 2) == pytest.approx(0.0)
    matrix = graph.double_cover.normalised_adjacency.toarray()
    whole = matrix + 0.5 * matrix @ matrix
    across = np.sum(whole[::2, 1::2] ** 2 + whole[1::2, ::2] ** 2) / np.sum(whole**2)
    found = held.along_edges((1.0 - FREQUENCY) + 0.5 * (1.0 - FREQUENCY) ** 2)
    assert found == pytest.approx(across, abs=0.05)
