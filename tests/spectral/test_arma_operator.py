"""The ARMA operator: p(X) / q(X) by conjugate gradients."""

from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from tests import dense
from tests.spectral.conformance import DOUBLE, LARGE, OperatorConformance, assert_near, ring_with_chords
from tests.spectral.test_rational import Given, band_pass
from tests.strategies import ZOO

from asgat.errors import AsgatError
from asgat.filters import HeatFilter
from asgat.graph import Graph
from asgat.spectral import ArmaOperator
from asgat.spectral.arma_operator import _DENSE_GAIN

STEPS = 300  # conjugate gradients to the last digit
chebval, legendre = np.polynomial.chebyshev.chebval, np.polynomial.legendre.legvander


BAND_AND_HEAT = Given(band_pass, lambda x: torch.exp(-x))


def fitted_response(operator, filter, at):
    """p/q [n, heads] at points of [-1, 1]: the operator's denominator, the numerator by Legendre least squares."""
    denominator = np.insert(operator.rational(filter).denominator.numpy(), 0, 1.0, axis=1)
    node, degree = operator.rational.fit.points.numpy(), operator.rational.fit.numerator
    response = filter(torch.from_numpy(operator.lambda_max / 2.0 * (node + 1.0)))
    columns = []
    for head, a in enumerate(denominator):
        q, q_at = chebval(node, a)[:, None], chebval(at, a)[:, None]
        matrix = legendre(at, degree) / q_at @ np.linalg.pinv(legendre(node, degree) / q)
        columns.append(torch.from_numpy(matrix) @ response[:, head])
    return torch.stack(columns, dim=1)


class ArmaConformance(OperatorConformance):
    numerator, denominator = 18, 12
    lambda_max: Any = "bound"
    memory: ClassVar[dict[str, Any]] = {}
    fit_error = 1e-4  # so that all filters ask for a denominator

    def make(self, graph, **where):
        return ArmaOperator(
            graph,
            self.numerator,
            self.denominator,
            STEPS,
            fit_error=self.fit_error,
            lambda_max=self.lambda_max,
            **self.memory,
            **where,
        )

    def held(self, operator, filter):
        operator.rational.denominator = operator.rational(filter).denominator
        return operator

    def dense_truth(self, graph, filter):
        operator: Any = self.double(graph)
        value, vector = dense.eigen(graph)
        response = fitted_response(operator, filter, 2.0 * value / operator.lambda_max - 1.0)
        return dense.spectral_matrix(vector, response), dense.hops(graph) >= 0


class TestArma(ArmaConformance): ...


class TestMoreBelowThanAboveToLanczos(ArmaConformance):
    numerator, denominator = 2, 5
    lambda_max = "lanczos"


class TestSparseProductsRowByRow(ArmaConformance):
    numerator, denominator = 3, 4
    memory: ClassVar[dict[str, Any]] = {"block_bytes": 1}


def test_the_filters_of_the_conformance_tests_need_denominators():
    for case in (TestArma(), TestMoreBelowThanAboveToLanczos()):
        operator: Any = case.double(ZOO["generic"])
        assert (operator.rational(dense.filters()["mlp"]).condition > 1.1).all()


# -- conjugate gradients -----------------------------------------------------------------------------------


def test_steps_and_residual_are_reported():
    operator = ArmaOperator(LARGE)
    operator.top(BAND_AND_HEAT, 3)
    assert 10 < operator.steps_taken <= 30
    assert 0 < operator.residual < 1e-4
    operator.top(HeatFilter(1), 3)
    assert (operator.steps_taken, operator.residual) == (1, 0.0), "without a denominator there is nothing to solve"


@pytest.mark.parametrize("seed", range(3))
def test_thirty_steps_suffice_at_the_largest_condition(seed):
    filter = Given(lambda x: 1.0 / (1.0 + (30.0 * (x - 0.5)) ** 2), band_pass)  # the first ends at condition 30
    operator = ArmaOperator(ring_with_chords(300, seed))
    assert operator.rational(filter).condition[0] > 25
    operator.scores(filter, slice(0, 20))
    assert operator.residual < 5e-5
    assert operator.rational.fallback is None


def test_thirty_single_precision_steps_are_near_the_truth():
    truth = ArmaOperator(LARGE, steps=STEPS, dtype=DOUBLE).dense(BAND_AND_HEAT)
    assert_near(ArmaOperator(LARGE).dense(BAND_AND_HEAT).double(), truth, 1e-5)


# -- what cannot be solved ---------------------------------------------------------------------------------


def polynomial_scores(graph):
    """The least-squares polynomials of degree 18."""
    operator = ArmaOperator(graph, dtype=DOUBLE)
    operator.rational.denominator = operator.rational(Given(torch.exp, torch.exp)).denominator
    assert (operator.rational(BAND_AND_HEAT).denominator == 0).all()
    return operator


@pytest.mark.parametrize("memory", [{}, {"block_bytes": 1 << 14}])
def test_a_head_that_does_not_converge_falls_back_to_the_polynomial(memory):
    operator = ArmaOperator(LARGE, steps=3, dtype=DOUBLE, **memory)
    expected = polynomial_scores(LARGE)
    assert_near(operator.dense(BAND_AND_HEAT), expected.dense(BAND_AND_HEAT), 1e-12)
    assert operator.rational.fallback is not None
    assert (operator.rational.fallback.heads, operator.rational.fallback.evaluations) == (1, 1)
    assert operator.rational.fallback.residual > 1e-4
    for actual, wanted in zip(operator.top(BAND_AND_HEAT, 4), expected.top(BAND_AND_HEAT, 4), strict=True):
        assert_near(actual, wanted, 1e-12)
    signal = torch.randn(60, 2, dtype=DOUBLE)
    assert_near(operator.apply(BAND_AND_HEAT, signal), expected.apply(BAND_AND_HEAT, signal), 1e-12)
    taken = operator.take_fallback()
    assert taken is not None
    assert (taken.heads, taken.evaluations) == (1, 3)
    assert operator.take_fallback() is None
    operator.top(Given(torch.exp), 3)
    assert operator.rational.fallback is None


def test_gradients_reach_a_head_that_fell_back():
    filter = dense.filters()["mlp"]
    operator, expected = ArmaOperator(LARGE, steps=2, fit_error=1e-4, dtype=DOUBLE), polynomial_scores(LARGE)
    weight = torch.randn(2, 60, 3, dtype=DOUBLE)
    parameters = list(filter.parameters())
    grads = [torch.autograd.grad((op.top(filter, 3)[1] * weight).sum(), parameters) for op in (operator, expected)]
    assert operator.rational.fallback is not None
    for actual, wanted in zip(*grads, strict=True):
        assert_near(actual, wanted, 1e-10)


# -- the rest ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"steps": 0}, "steps must be at least 1, but is 0"),
        ({"tolerance": 0.0}, r"tolerance must be positive, but is 0\.0"),
        ({"tolerance": float("nan")}, "tolerance must be positive, but is nan"),
        ({"numerator": 0}, "numerator and denominator must be at least 1"),
        ({"lambda_max": "largest"}, "lambda_max must be bound or lanczos"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(AsgatError, match=sentence):
        ArmaOperator(ZOO["path"], **arguments)


# -- what is chosen on the way, and gives the same numbers --------------------------------------------------------


def test_nothing_is_solved_before_it_is_asked_for():
    operator = ArmaOperator(LARGE, 4, 3)
    assert (operator.steps_taken, operator.residual) == (0, 0.0)


@pytest.mark.parametrize("rows", [0, 1, 3, 7, 1000])
def test_blocks_are_as_large_as_the_memory_allows(rows):
    """A row of 60 nodes and 2 heads: 4 + 12 numbers of 8 bytes and 3 keys of 8 for each of them."""
    per_row = 60 * 2 * ((4 + 12) * 8 + 3 * 8)
    operator = ArmaOperator(LARGE, 4, 3, dtype=DOUBLE, block_bytes=rows * per_row + per_row - 1)
    blocks = list(operator._blocks(2))
    assert [v for block in blocks for v in range(block.start, block.stop)] == list(range(60))
    assert {block.stop - block.start for block in blocks[:-1]} <= {max(rows, 1)}
    assert len(blocks) == -(-60 // max(rows, 1))


def test_a_matrix_per_head_is_made_only_where_that_is_cheaper_and_fits():
    """Either way the product is q(X): N² against the entries of X times the degree, with a factor of their speeds."""
    q = torch.tensor([[0.3, -0.2, 0.1], [0.0, 0.4, 0.2]], dtype=DOUBLE)
    signal = torch.randn(60, 2, 4, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    entries = ArmaOperator(LARGE, 4, 3).shifted.matrix.nnz
    assert _DENSE_GAIN * 3 * entries >= 60**2, "dense pays on this graph"
    fits = 2 * 60**2 * 8
    made = {limit: ArmaOperator(LARGE, 4, 3, dtype=DOUBLE, block_bytes=limit)._product(q) for limit in (fits, fits - 1)}
    assert made[fits].__name__ == "<lambda>"
    assert made[fits - 1].__name__ == "product"
    assert_near(made[fits](signal), made[fits - 1](signal))
    sparse = ring_with_chords(600)
    assert _DENSE_GAIN * 3 * ArmaOperator(sparse, 4, 3).shifted.matrix.nnz < 600**2
    assert ArmaOperator(sparse, 4, 3, dtype=DOUBLE)._product(q).__name__ == "product"


def test_one_column_that_does_not_converge_is_enough():
    """A node apart is solved in one step; a head falls back as a whole."""
    ends = np.array(LARGE.adjacency.nonzero())
    operator = ArmaOperator(Graph.from_edges(ends, 61), steps=3, dtype=DOUBLE)
    operator.top(BAND_AND_HEAT, 3)
    assert operator.rational.fallback is not None
    assert operator.rational.fallback.heads == 1


def test_a_denominator_of_few_terms_is_solved_for_all_the_same():
    operator = ArmaOperator(LARGE, 4, 2, steps=1, dtype=DOUBLE)
    operator.rational.denominator = torch.tensor([[0.0, 0.6], [0.0, 0.0]], dtype=DOUBLE)
    operator.top(BAND_AND_HEAT, 3)
    assert operator.rational.fallback is not None
    assert operator.rational.fallback.heads == 1
