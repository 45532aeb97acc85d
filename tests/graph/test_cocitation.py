import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.filters import MLPFilter
from asgat.graph import cocitation as coupling
from asgat.graph.cocitation import cocitation_graph
from asgat.spectral import ChebyshevOperator
from asgat.tables import TableOperator


@st.composite
def directed(draw, most=9):
    """Edges of a directed graph: several of one pair, loops, nodes without any, sinks and sources."""
    n = draw(st.integers(0, most))
    edges = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3 * n)) if n else []
    return np.array(edges, dtype=np.int64).reshape(-1, 2).T, n


def dense(edges, n):
    """Ā = D_out^(-1/2) A D_in^(-1/2), from the definition."""
    a = np.zeros((n, n))
    a[edges[0], edges[1]] = 1.0
    roots = [np.sqrt(np.where(d > 0, d, 1.0)) for d in (a.sum(axis=1), a.sum(axis=0))]
    return a / roots[0][:, None] / roots[1][None, :]


@given(directed(), st.sampled_from(["out", "in"]))
def test_its_normalised_adjacency_is_the_product_of_steps_there_and_back(graph, direction):
    edges, n = graph
    step = dense(edges, n)
    expected = step @ step.T if direction == "out" else step.T @ step
    coupled = cocitation_graph(edges, n, direction)
    np.testing.assert_allclose(coupled.normalised_adjacency.toarray(), expected, atol=1e-12)
    np.testing.assert_array_equal(coupled.adjacency.toarray(), coupled.adjacency.toarray().T)
    values = np.linalg.eigvalsh(coupled.laplacian.toarray()) if n else np.zeros(0)
    assert np.all((values > -1e-9) & (values < 1 + 1e-9)), "1 minus eigenvalues in [0, 1]"


@given(directed())
def test_degrees_are_those_of_the_directed_graph(graph):
    edges, n = graph
    out, into = (np.bincount(np.unique(edges, axis=1)[side], minlength=n) for side in (0, 1))
    np.testing.assert_allclose(cocitation_graph(edges, n, "out").degree, out, atol=1e-12)
    np.testing.assert_allclose(cocitation_graph(edges, n, "in").degree, into, atol=1e-12)


@given(directed())
def test_turning_every_edge_round_turns_the_direction_round(graph):
    edges, n = graph
    forth, back = cocitation_graph(edges, n, "in"), cocitation_graph(edges[::-1], n, "out")
    np.testing.assert_array_equal(forth.adjacency.toarray(), back.adjacency.toarray())


def test_a_table_on_it_scores_as_all_pairs_do():
    rng = np.random.default_rng(0)
    graph = cocitation_graph(rng.integers(0, 40, (2, 120)), 40)
    torch.manual_seed(0)
    filter = MLPFilter(2).double()
    table = TableOperator(graph, order=12, candidates=40, dtype=torch.float64)
    index, score = table.top(filter, 3)
    _, expected = ChebyshevOperator(graph, order=12, dtype=torch.float64).top(filter, 3)
    np.testing.assert_allclose(score.detach(), expected.detach(), atol=1e-6)
    assert index.shape == (2, 40, 3)


def test_what_it_refuses(monkeypatch):
    with pytest.raises(AsgatError, match="out or in"):
        cocitation_graph([[0], [1]], direction="both")  # type: ignore[arg-type]
    with pytest.raises(AsgatError, match="names node 5"):
        cocitation_graph([[0], [5]], num_nodes=2)
    monkeypatch.setattr(coupling, "MOST", 10)
    with pytest.raises(AsgatError, match="16 products, and at most 10"):
        cocitation_graph([[0, 1, 2, 3], [4, 4, 4, 4]])
