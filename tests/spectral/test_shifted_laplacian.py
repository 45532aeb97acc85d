import numpy as np
import pytest
import torch
from tests.spectral.conformance import DOUBLE, LARGE, assert_near
from tests.strategies import ZOO

from asgat.errors import AsgatError
from asgat.spectral.shifted_laplacian import ShiftedLaplacian

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
    assert_near(shifted.rows(4, slice(None)), terms)
    assert_near(shifted.rows(4, slice(1, 3)), terms[:, 1:3])
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
    assert single.rows(2, slice(0, 1)).dtype == torch.float32
    assert single.apply(torch.ones(1, 3), torch.ones(60, 1)).dtype == torch.float32
    assert shifted.rows(2, slice(0, 1)).dtype == DOUBLE


def test_only_two_bounds_are_known():
    with pytest.raises(AsgatError, match="lambda_max must be bound or lanczos, not 'exact'"):
        ShiftedLaplacian(LARGE, "exact", DOUBLE, CPU)  # type: ignore[arg-type]
