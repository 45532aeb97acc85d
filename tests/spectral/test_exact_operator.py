import numpy as np
import pytest
import torch
from hypothesis import given
from tests import dense
from tests.spectral.conformance import OperatorConformance, assert_near
from tests.strategies import ZOO, graphs

from asgat.errors import AsgatError
from asgat.filters import BandStop, HeatFilter, PolynomialFilter
from asgat.graph import Graph
from asgat.spectral import ExactOperator


class TestExact(OperatorConformance):
    def make(self, graph, **where):
        return ExactOperator(graph, **where)

    def dense_truth(self, graph, filter):
        return dense.exact_scores(graph, filter), dense.hops(graph) >= 0


def monomial(power):
    """g(λ) = λ^power, so that g(L) is a matrix power and no eigen-decomposition is needed for the truth."""
    filter = PolynomialFilter(1, degree=power).double()
    with torch.no_grad():
        filter.theta.zero_()[power] = 1.0
    return filter


@given(graphs(max_nodes=10))
def test_monomials_are_powers_of_the_laplacian(graph):
    operator = ExactOperator(graph, dtype=torch.float64)
    laplacian = dense.laplacian(graph.adjacency.toarray())
    for power in range(4):
        expected = torch.from_numpy(np.linalg.matrix_power(laplacian, power))
        assert_near(operator.dense(monomial(power))[0], expected)


@given(graphs(max_nodes=10))
def test_eigenvalues_lie_in_the_spectrum_of_a_normalised_laplacian(graph):
    value = ExactOperator(graph, dtype=torch.float64).eigenvalues
    assert (value >= 0).all()
    assert (value <= 2).all()
    np.testing.assert_allclose(value.numpy(), dense.eigen(graph)[0], atol=1e-11)


@pytest.mark.parametrize("leaves", [5, 6, 9, 20])
@pytest.mark.parametrize(("low", "high", "kept"), [(0.5, 1.0, [0, 1, 2]), (1.0, 1.5, [0, 2]), (1.0, 2.0, [0])])
def test_a_band_edge_on_a_multiple_eigenvalue_takes_all_of_it_or_nothing(low, high, kept, leaves):
    """A star has eigenvalues 0, 1 (once for each leaf but one) and 2; rounding puts some of them beside 1."""
    star = Graph.from_edges([[0] * leaves, range(1, leaves + 1)])
    value, vector = dense.eigen(star)
    expected = np.zeros((leaves + 1, leaves + 1))
    for eigenvalue in kept:
        near = vector[:, np.abs(value - eigenvalue) < 1e-6]
        expected += np.exp(-eigenvalue) * near @ near.T
    filter = BandStop(HeatFilter(1).double(), low, high)
    assert_near(ExactOperator(star, dtype=torch.float64).dense(filter)[0], torch.from_numpy(expected))


def test_a_large_graph_is_refused_with_the_alternative_named():
    with pytest.raises(AsgatError, match=r"6 × 6.*limit of 5 nodes.*ChebyshevOperator.*max_nodes"):
        ExactOperator(ZOO["path"], max_nodes=5)
    assert ExactOperator(ZOO["path"], max_nodes=6).num_nodes == 6
