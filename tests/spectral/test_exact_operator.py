import copy

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


def twins(hubs=3, leaves=6):
    """Hubs in a ring, each with equal leaves: full of nodes with the same scores."""
    edges = [(h, (h + 1) % hubs) for h in range(hubs)]
    edges += [(h, hubs + h * leaves + j) for h in range(hubs) for j in range(leaves)]
    return Graph.from_edges(np.array(edges).T)


def rounded_otherwise(operator, seed):
    """The operator with other eigenvectors of the same eigenspaces, and rounding errors in them."""
    rng = np.random.default_rng(seed)
    value, vector = operator._decomposition
    vector = vector.copy()
    for eigenvalue in np.unique(value.round(9)):
        space = np.flatnonzero(value.round(9) == eigenvalue)
        vector[:, space] = vector[:, space] @ np.linalg.qr(rng.standard_normal((len(space), len(space))))[0]
    other = copy.copy(operator)
    other._decomposition = value, vector + 1e-15 * rng.standard_normal(vector.shape)
    other._move()
    return other


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_ties_go_to_the_lower_index_whatever_the_rounding(k, dtype):
    graph, filter = twins(), dense.filters()["mlp"].to(dtype)
    operator = ExactOperator(graph, dtype=dtype)
    index, score = operator.top(filter, k)
    for seed in range(5):
        assert torch.equal(rounded_otherwise(operator, seed).top(filter, k)[0], index)
    truth = dense.exact_scores(graph, dense.filters()["mlp"]).detach().numpy().round(9)
    for head, v in np.ndindex(*truth.shape[:2]):
        assert index[head, v].tolist() == np.argsort(-truth[head, v], kind="stable")[:k].tolist()
    everything = operator.scores(filter)[1]
    assert torch.equal(score, everything.gather(-1, index)), "ties change which nodes are kept, not their scores"


def test_without_ties_nothing_is_held_for_them():
    path = Graph.from_edges([[0, 1, 2], [1, 2, 3]], edge_weight=[1.0, 2.0, 5.0])
    assert ExactOperator(path)._twin is None
    twin = ExactOperator(twins(2, 3))._twin
    assert twin is not None
    assert twin[0].tolist() == [0, 1, 2, 2, 2, 5, 5, 5]


def test_nodes_of_other_components_are_not_twins_of_reachable_ones():
    """A path whose ends hardly see each other, and a node apart: all three score 0 up to rounding."""
    graph = Graph.from_edges([[1, 2, 3], [2, 3, 4]], 5, edge_weight=[1e-300, 1.0, 1e-300])
    _, score = ExactOperator(graph).top(HeatFilter(1), 4)
    assert score[0, 1].isfinite().all()
