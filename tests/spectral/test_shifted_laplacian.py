import numpy as np
import pytest
import torch
from tests import dense
from tests.spectral.conformance import DOUBLE, LARGE, assert_near
from tests.strategies import ZOO

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.spectral.shifted_laplacian import ShiftedLaplacian
from asgat.tables import TableOperator

CPU = torch.device("cpu")


def dense_polynomials(matrix, order):
    terms = [np.eye(len(matrix)), matrix]
    while len(terms) <= order:
        terms.append(2 * matrix @ terms[-1] - terms[-2])
    return torch.from_numpy(np.stack(terms))


@pytest.mark.parametrize("lambda_max", ["bound", "lanczos"])
@pytest.mark.parametrize("graph", [*ZOO.values(), LARGE], ids=[*ZOO, "large"])
def test_rows_and_products_are_dense_polynomials(graph, lambda_max):
    shifted = ShiftedLaplacian(graph, lambda_max, DOUBLE, CPU)
    matrix = 2.0 / shifted.lambda_max * graph.laplacian.toarray() - np.eye(graph.num_nodes)
    terms = dense_polynomials(matrix, 4)
    basis, unreached = shifted.rows(4, slice(None))
    assert_near(basis, terms)
    hops = dense.hops(graph)
    assert np.array_equal(unreached, (hops < 0) | (hops > 4))
    assert_near(shifted.rows(4, slice(1, 3))[0], terms[:, 1:3])
    c = torch.randn(2, 5, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    signal = torch.randn(2, graph.num_nodes, 3, dtype=DOUBLE)
    expected = torch.einsum("hi,ivu->hvu", c, terms)
    assert_near(shifted.apply(c, signal), expected @ signal)
    assert_near(shifted.apply(c, signal[0]), expected @ signal[0])


def test_moved_products_are_in_the_new_precision():
    shifted = ShiftedLaplacian(LARGE, "bound", DOUBLE, CPU)
    shifted.rows(2, slice(0, 1))
    shifted.apply(torch.ones(1, 3, dtype=DOUBLE), torch.ones(60, 1, dtype=DOUBLE))
    single = shifted.to(CPU, torch.float32)
    assert single.rows(2, slice(0, 1))[0].dtype == torch.float32
    assert single.apply(torch.ones(1, 3), torch.ones(60, 1)).dtype == torch.float32
    assert shifted.rows(2, slice(0, 1))[0].dtype == DOUBLE


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
@pytest.mark.parametrize("weights", [[1e300, 1e-300, 1e300], [1e-300, 1e300, 1e-300], [1e-300, 1e-300, 1.0]])
def test_weights_far_apart_do_not_hide_a_node(weights, dtype):
    graph = Graph.from_edges([[0, 1, 2], [1, 2, 3]], edge_weight=weights)
    shifted = ShiftedLaplacian(graph, "bound", dtype, CPU)
    assert not shifted.rows(3, slice(None))[1].any()
    assert np.abs(shifted.matrix + graph.normalised_adjacency).max() <= 1e-20
    table = TableOperator(graph, 3, candidates=4, dtype=dtype).table
    assert table.index.tolist() == [0, 1, 2, 3] * 4
    assert TableOperator(graph, 3, candidates=1, cap=0, dtype=dtype).table.complete.tolist() == [False] * 4


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_rows_of_equivalent_nodes_are_equal_to_the_last_bit(dtype):
    """Two hubs with equal leaves: the rows of a leaf hold the same numbers for the leaves of either hub."""
    edges = [(0, 1), *((h, 2 + 7 * h + j) for h in (0, 1) for j in range(7))]
    basis, _ = ShiftedLaplacian(Graph.from_edges(np.array(edges).T), "bound", dtype, CPU).rows(9, slice(None))
    for hub in (2, 9):
        assert (basis[:, 0, hub : hub + 7] == basis[:, 0, hub : hub + 1]).all()


def test_only_two_bounds_are_known():
    with pytest.raises(AsgatError, match="lambda_max must be bound or lanczos, not 'exact'"):
        ShiftedLaplacian(LARGE, "exact", DOUBLE, CPU)  # type: ignore[arg-type]
