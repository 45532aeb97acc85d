"""The ARMA operators: p(X) / q(X) by conjugate gradients, and expanded on a candidate table."""

from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from asgat.spectral.arma import Fallback, conjugate_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import dense
from tests.spectral.conformance import DOUBLE, FILTERS, OperatorConformance, assert_near
from tests.spectral.test_rational import band_pass
from tests.strategies import ZOO, generic_graph
from tests.tables.test_table_operator import EVERYTHING, LARGE, CompleteTable, ring_with_chords

from asgat.errors import AsgatError
from asgat.filters import HeatFilter, MLPFilter, SpectralFilter
from asgat.graph import Graph
from asgat.nn.attention import attend
from asgat.spectral import ArmaOperator, ArmaTableOperator, TableOperator
from asgat.spectral.certificate import SampledCertificate

STEPS = 300  # conjugate gradients to the last digit
chebval, legendre = np.polynomial.chebyshev.chebval, np.polynomial.legendre.legvander


class Given(SpectralFilter):
    """Responses that are functions of the shifted frequency."""

    def __init__(self, *responses):
        super().__init__(len(responses))
        self.responses = responses

    def forward(self, frequency):
        return torch.stack([response(frequency - 1.0) for response in self.responses], dim=1)

    def reset_parameters(self): ...


BAND_AND_HEAT = Given(band_pass, lambda x: torch.exp(-x))


def rational_response(operator, filter, at):
    """p/q [n, heads] at points of [-1, 1]: the operator's denominator, the numerator by Legendre least squares."""
    denominator = np.insert(operator.rational(filter).denominator.numpy(), 0, 1.0, axis=1)
    node, degree = operator.fit.points.numpy(), operator.fit.numerator
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
        return operator.holding(filter)

    def dense_truth(self, graph, filter):
        operator: Any = self.double(graph)
        value, vector = dense.eigen(graph)
        response = rational_response(operator, filter, 2.0 * value / operator.lambda_max - 1.0)
        return dense.spectral_matrix(vector, response), dense.hops(graph) >= 0


class TestArma(ArmaConformance): ...


class TestMoreBelowThanAboveToLanczos(ArmaConformance):
    numerator, denominator = 2, 5
    lambda_max = "lanczos"


class TestSparseProductsRowByRow(ArmaConformance):
    numerator, denominator = 3, 4
    memory: ClassVar[dict[str, Any]] = {"block_bytes": 1}


class TestExpansion(CompleteTable):
    """On a table that holds every pair within reach."""

    order = 7
    lambda_max = "lanczos"
    numerator, denominator = 5, 4

    def make(self, graph, **where):
        table: Any = {"candidates": EVERYTHING, "cap": EVERYTHING, "storage": DOUBLE, "lambda_max": self.lambda_max}
        return ArmaTableOperator(graph, self.order, self.numerator, self.denominator, fit_error=1e-4, **table, **where)

    def held(self, operator, filter):
        return operator.holding(filter)

    def dense_truth(self, graph, filter):
        operator: Any = self.double(graph)
        value, vector = dense.eigen(graph)
        node = np.cos(np.pi * (np.arange(self.order + 1) + 0.5) / (self.order + 1))
        at = 2.0 * value / operator.lambda_max - 1.0
        interpolate = legendre(at, self.order) @ np.linalg.inv(legendre(node, self.order))
        response = torch.from_numpy(interpolate) @ rational_response(operator, filter, node)
        hops = dense.hops(graph)
        return dense.spectral_matrix(vector, response), (hops >= 0) & (hops <= self.order)

    def test_repr(self):
        assert repr(self.make(ZOO["one edge"])) == (
            "ArmaTableOperator(CandidateTable(exact, num_nodes=2, order=7, candidates_per_node=2.0, dtype=float64))"
        )


def test_conformance_is_not_of_polynomials_alone():
    """The filters of the conformance tests do ask for denominators."""
    for case in (TestArma(), TestMoreBelowThanAboveToLanczos(), TestExpansion()):
        operator: Any = case.double(ZOO["generic"])
        assert (operator.rational(dense.filters()["mlp"]).condition > 1.1).all()


# -- conjugate gradients -----------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 3))
@settings(max_examples=30)
def test_conjugate_gradients_solve(seed, size, heads):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((heads, size, size))
    matrix = torch.from_numpy(root @ root.transpose(0, 2, 1) + np.eye(size))
    right = torch.from_numpy(rng.standard_normal((size, heads, 4)))
    right[:, :, 1] = 0.0

    def product(signal):
        return torch.einsum("hmn,nhb->mhb", matrix, signal)

    solution, steps, residual = conjugate_gradients(product, right, 200)
    expected = torch.linalg.solve(matrix, right.transpose(0, 1)).transpose(0, 1)
    assert_near(solution, expected, 1e-8)
    assert 1 <= steps < 200
    assert (solution[:, :, 1] == 0).all()
    assert (residual[:, 1] == 0).all()
    assert residual.max() < 1e-12
    short, taken, left = conjugate_gradients(product, right, 1)
    assert taken == 1
    relative = (right - product(short)).norm(dim=0) / right.norm(dim=0).clamp(min=1e-300)
    assert_near(left, relative)


def test_steps_and_residual_are_told():
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
    assert operator.fallback is None


# -- both ways ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [LARGE, generic_graph(3, 20)], ids=["connected", "components"])
def test_conjugate_gradients_and_the_expansion_agree(graph):
    filter = Given(band_pass, lambda x: (x - 0.3).abs(), lambda x: torch.exp(-x))
    truth = ArmaOperator(graph, steps=STEPS, fit_error=1e-4, dtype=DOUBLE).dense(filter)
    table: Any = {"fit_error": 1e-4, "candidates": EVERYTHING, "cap": EVERYTHING, "storage": DOUBLE, "dtype": DOUBLE}
    errors = []
    for order in (20, 60, 180):
        operator = ArmaTableOperator(graph, order, **table)
        error = (operator.dense(filter) - truth).abs().amax(dim=(1, 2))
        assert (error <= operator.deviation(filter) + 1e-12).all()
        errors.append(error)
    assert errors[0][0] > 1e-3
    assert errors[2].max() < 1e-4
    assert errors[0][2] < 1e-12, "a polynomial of degree 18 is its own expansion"


def test_thirty_single_precision_steps_are_near_the_truth():
    truth = ArmaOperator(LARGE, steps=STEPS, dtype=DOUBLE).dense(BAND_AND_HEAT)
    assert_near(ArmaOperator(LARGE).dense(BAND_AND_HEAT).double(), truth, 1e-5)


@pytest.mark.parametrize("order", [8, 30])
@pytest.mark.parametrize("name", FILTERS)
def test_the_deviation_is_a_near_bound(name, order):
    filter = Given(band_pass, lambda x: (x > 0.2).double()) if name == "heat" else dense.filters()[name]
    operator = ArmaTableOperator(ZOO["path"], order, fit_error=1e-4, candidates=6, dtype=DOUBLE)
    at = np.linspace(-1.0, 1.0, 100_001)
    rational = operator.rational(filter)
    values = rational(torch.from_numpy(at)).detach().numpy()
    largest = np.abs(chebval(at, operator.coefficients(filter).detach().numpy().T) - values).max(axis=1)
    bound = operator.deviation(filter).numpy()
    assert (bound >= largest - 1e-14).all()
    assert (bound <= 1.5 * largest + 1e-9).all()
    if name == "heat":
        assert (largest > 1e-3).all()


# -- the certificate ---------------------------------------------------------------------------------------


def true_error(truth, index, score):
    """The backward error of rows, with the truth [heads, N, N] at hand."""
    kept = torch.isfinite(score)
    own = (score - truth.gather(-1, index)).abs().masked_fill(~kept, 0.0).amax(dim=-1)
    rest = truth.scatter(-1, index, -torch.inf).amax(dim=-1)
    worst = score.masked_fill(~kept, torch.inf).amin(dim=-1)
    return torch.maximum(own, (rest - worst).clamp(min=0.0))


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(3, 30), st.integers(0, 3), st.sampled_from(["band", "mlp"]))
@settings(max_examples=25)
def test_the_certificate_is_never_below_the_truth(seed, k, order, cap, name):
    graph = ring_with_chords(40, seed)
    filter = BAND_AND_HEAT if name == "band" else dense.filters()["mlp"]
    shared: Any = {"fit_error": 1e-4, "dtype": DOUBLE}
    operator = ArmaTableOperator(graph, order, candidates=k, cap=cap, storage=DOUBLE, **shared)
    truth = ArmaOperator(graph, steps=STEPS, **shared).dense(filter)
    index, score = operator.top(filter, k)
    certificate = operator.certify(filter, index, score)
    error = true_error(truth, index, score)
    assert (certificate.bound >= error).all()
    assert (certificate.bound >= 2 * operator.deviation(filter)[:, None]).all()
    assert (error[certificate.exact] < 1e-5).all()


def test_a_row_is_exact_only_where_the_expansion_is():
    operator = ArmaTableOperator(LARGE, 20, candidates=EVERYTHING, cap=EVERYTHING)
    attention = attend(operator, BAND_AND_HEAT, 3, certified=True)
    certificate = attention.certificate
    assert certificate is not None
    assert not certificate.exact[0].any(), "order 20 is too low for the band"
    assert certificate.exact[1].all()
    assert certificate.bound[0].min() > 1e-2
    assert certificate.bound[1].max() < 1e-5
    polynomial = TableOperator(LARGE, 20, candidates=EVERYTHING, cap=EVERYTHING)
    assert attend(polynomial, BAND_AND_HEAT, 3, certified=True).certificate.exact.all()  # type: ignore[union-attr]


def test_single_precision_of_large_scores_is_rounding():
    """A polynomial is its own expansion, whatever its size."""
    operator = ArmaTableOperator(LARGE, 20, candidates=EVERYTHING, cap=EVERYTHING)
    large = Given(lambda x: 1e3 * torch.exp(-x), lambda x: 1e-3 * torch.exp(-x))
    certificate = attend(operator, large, 3, certified=True).certificate
    assert certificate is not None
    assert certificate.exact.all()
    assert 1e-5 < certificate.bound[0].max() < 1e-2
    assert certificate.bound[1].max() < 1e-6


def test_a_truncated_table_is_certified_by_its_sample_and_the_expansion():
    operator = ArmaTableOperator(LARGE, 20, candidates=20, builder="truncated")
    index, score = operator.top(BAND_AND_HEAT, 3)
    certificate = operator.certify(BAND_AND_HEAT, index, score, sample=16)
    plain = TableOperator.certify(operator, BAND_AND_HEAT, index, score, sample=16)
    assert isinstance(certificate, SampledCertificate)
    assert certificate.bound.shape == (2, 16)
    assert_near(certificate.bound - plain.bound, 2 * operator.deviation(BAND_AND_HEAT)[:, None].expand(2, 16))


# -- what cannot be solved ---------------------------------------------------------------------------------


def polynomial_scores(graph):
    """The least-squares polynomials of degree 18."""
    operator = ArmaOperator(graph, dtype=DOUBLE)
    operator = operator.holding(Given(torch.exp, torch.exp))
    assert (operator.rational(BAND_AND_HEAT).denominator == 0).all()
    return operator


@pytest.mark.parametrize("memory", [{}, {"block_bytes": 1 << 14}])
def test_a_head_that_does_not_converge_falls_back_to_the_polynomial(memory):
    operator = ArmaOperator(LARGE, steps=3, dtype=DOUBLE, **memory)
    expected = polynomial_scores(LARGE)
    assert_near(operator.dense(BAND_AND_HEAT), expected.dense(BAND_AND_HEAT), 1e-12)
    assert operator.fallback is not None
    assert (operator.fallback.heads, operator.fallback.evaluations) == (1, 1)
    assert operator.fallback.residual > 1e-4
    for actual, wanted in zip(operator.top(BAND_AND_HEAT, 4), expected.top(BAND_AND_HEAT, 4), strict=True):
        assert_near(actual, wanted, 1e-12)
    signal = torch.randn(60, 2, dtype=DOUBLE)
    assert_near(operator.apply(BAND_AND_HEAT, signal), expected.apply(BAND_AND_HEAT, signal), 1e-12)
    taken = operator.take_fallback()
    assert taken is not None
    assert (taken.heads, taken.evaluations) == (1, 3)
    assert operator.take_fallback() is None
    operator.top(Given(torch.exp), 3)
    assert operator.fallback is None


def test_gradients_reach_a_head_that_fell_back():
    filter = dense.filters()["mlp"]
    operator, expected = ArmaOperator(LARGE, steps=2, fit_error=1e-4, dtype=DOUBLE), polynomial_scores(LARGE)
    weight = torch.randn(2, 60, 3, dtype=DOUBLE)
    parameters = list(filter.parameters())
    grads = [torch.autograd.grad((op.top(filter, 3)[1] * weight).sum(), parameters) for op in (operator, expected)]
    assert operator.fallback is not None
    for actual, wanted in zip(*grads, strict=True):
        assert_near(actual, wanted, 1e-10)


@pytest.mark.parametrize("make", [ArmaOperator, lambda graph: ArmaTableOperator(graph, 8, candidates=8)])
def test_a_response_that_is_no_number_is_told(make):
    operator = make(LARGE)
    _, score = operator.top(Given(torch.exp, lambda x: x / 0.0), 2)
    assert operator.fallback == Fallback(heads=1, evaluations=1, residual=float("inf"))
    assert score[0].isfinite().all()
    assert not score[1].isfinite().any()


# -- the rest ----------------------------------------------------------------------------------------------


def test_a_held_denominator_stays():
    filter, other = dense.filters()["mlp"], dense.filters()["polynomial"]
    operator = ArmaTableOperator(LARGE, 20, fit_error=1e-4, candidates=4, dtype=DOUBLE)
    held = operator.holding(filter)
    assert torch.equal(held.rational(other).denominator, operator.rational(filter).denominator)
    assert not torch.equal(operator.rational(other).denominator, held.rational(other).denominator)
    assert torch.equal(
        held.to(dtype=torch.float32).rational(other.float()).denominator, held.rational(filter).denominator
    )


def test_a_response_is_fitted_once():
    operator, filter = ArmaTableOperator(LARGE, 20, candidates=4), MLPFilter(2)
    calls = []
    fit = operator.fit.best_denominator
    operator.fit.best_denominator = lambda response: calls.append(1) or fit(response)  # type: ignore
    with torch.no_grad():
        operator.top(filter, 3)
    operator.top(filter, 3)
    assert len(calls) == 1
    with torch.no_grad():
        next(filter.parameters()).data.add_(0.5)
    operator.top(filter, 3)
    assert len(calls) == 2


def test_both_wait_for_the_host():
    assert not ArmaOperator(ZOO["path"]).capturable
    assert not ArmaTableOperator(ZOO["path"], 4).capturable
    assert TableOperator(ZOO["path"], 4).capturable


@pytest.mark.parametrize("make", [ArmaOperator, lambda graph: ArmaTableOperator(graph, 30, candidates=4)])
@pytest.mark.parametrize("name", ["no nodes", "one node", "one loop", "one edge", "no edges"])
def test_the_smallest_graphs(name, make):
    attention = attend(make(ZOO[name]), MLPFilter(2), 4, certified=True)
    reached = 2 if name == "one edge" else 1
    assert attention.index.shape[:2] == (2, ZOO[name].num_nodes)
    assert ((attention.weight > 0).sum(dim=-1) == reached).all()


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
    from asgat.spectral.arma import _DENSE_GAIN

    q = torch.tensor([[0.3, -0.2, 0.1], [0.0, 0.4, 0.2]], dtype=DOUBLE)
    signal = torch.randn(60, 2, 4, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    entries = ArmaOperator(LARGE, 4, 3)._shifted.nnz
    assert _DENSE_GAIN * 3 * entries >= 60**2, "dense pays on this graph"
    fits = 2 * 60**2 * 8
    made = {limit: ArmaOperator(LARGE, 4, 3, dtype=DOUBLE, block_bytes=limit)._product(q) for limit in (fits, fits - 1)}
    assert made[fits].__name__ == "<lambda>"
    assert made[fits - 1].__name__ == "product"
    assert_near(made[fits](signal), made[fits - 1](signal))
    sparse = ring_with_chords(600)
    assert _DENSE_GAIN * 3 * ArmaOperator(sparse, 4, 3)._shifted.nnz < 600**2
    assert ArmaOperator(sparse, 4, 3, dtype=DOUBLE)._product(q).__name__ == "product"


def test_four_responses_are_remembered():
    operator = ArmaTableOperator(ZOO["path"], 4, 2, 2, candidates=4)
    calls = []
    fit = operator.fit.best_denominator
    operator.fit.best_denominator = lambda response: calls.append(1) or fit(response)  # type: ignore
    filters = [Given(lambda x, i=i: torch.exp(-i * x)) for i in range(5)]
    for filter in [*filters[:4], filters[0], filters[3]]:
        operator.rational(filter)
    assert len(calls) == 4
    operator.rational(filters[4])
    operator.rational(filters[1])
    assert len(calls) == 5
    operator.rational(filters[0])
    assert len(calls) == 6, "it had gone first"


def test_one_column_that_does_not_converge_is_enough():
    """A node apart is solved in one step; a head falls back as a whole."""
    ends = np.array(LARGE.adjacency.nonzero())
    operator = ArmaOperator(Graph.from_edges(ends, 61), steps=3, dtype=DOUBLE)
    operator.top(BAND_AND_HEAT, 3)
    assert operator.fallback is not None
    assert operator.fallback.heads == 1


def test_a_denominator_of_few_terms_is_solved_for_all_the_same():
    operator = ArmaOperator(LARGE, 4, 2, steps=1, dtype=DOUBLE)
    operator._held = torch.tensor([[0.0, 0.6], [0.0, 0.0]], dtype=DOUBLE)
    operator.top(BAND_AND_HEAT, 3)
    assert operator.fallback is not None
    assert operator.fallback.heads == 1


def test_a_right_side_of_zeros_takes_no_step():
    zeros = torch.zeros(5, 2, 3, dtype=DOUBLE)
    solution, taken, residual = conjugate_gradients(lambda signal: signal, zeros, 9)
    assert taken == 0
    assert (solution == 0).all()
    assert (residual == 0).all()


@pytest.mark.parametrize("precision", [torch.float32, DOUBLE])
def test_conjugate_gradients_end_where_rounding_begins(precision):
    """Ten times the unit of rounding, relative to the column; not a step more."""
    diagonal = torch.linspace(1.0, 2.0, 40, dtype=precision)[:, None, None]
    right = 1e3 * torch.ones(40, 1, 1, dtype=precision)
    _, taken, residual = conjugate_gradients(lambda signal: diagonal * signal, right, 200)
    _, _, before = conjugate_gradients(lambda signal: diagonal * signal, right, taken - 1)
    eps = torch.finfo(precision).eps
    assert residual.item() < 20 * eps
    assert before.item() > 5 * eps


def test_both_forms_have_the_same_settings():
    """The paper's (18, 12) with thirty steps, held at condition 30."""
    parts = [ArmaOperator(ZOO["path"]).fit, ArmaTableOperator(ZOO["path"]).fit]
    for fit in parts:
        assert (fit.numerator, fit.denominator, fit.condition, fit.fit_error) == (18, 12, 30.0, 0.01)
    assert (ArmaOperator(ZOO["path"]).steps, ArmaOperator(ZOO["path"]).tolerance) == (30, 1e-4)
    assert ArmaTableOperator(ZOO["path"]).order == 30


def test_the_deviation_is_what_bernsteins_inequality_leaves(monkeypatch):
    """On a grid so coarse that every part of the bound is seen."""
    monkeypatch.setattr("asgat.spectral.arma._FINE", 64)
    operator = ArmaTableOperator(ZOO["path"], 8, 5, 4, fit_error=1e-4, candidates=6, dtype=DOUBLE)
    filter = Given(lambda x: 1.0 / (1.0 + (2.0 * x) ** 2), lambda x: torch.exp(-x).abs())
    rational, coefficients = operator.rational(filter), operator.coefficients(filter)
    x = np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    for head, found in enumerate(operator.deviation(filter).tolist()):
        q = chebval(x, np.insert(rational.denominator[head].numpy(), 0, 1.0))
        excess = np.abs(q * chebval(x, coefficients[head].numpy()) - chebval(x, rational.numerator[head].numpy()))
        reach = np.pi / 128
        most = excess.max() / np.cos(12 * reach)
        least = q - reach * 4 * q.max() / np.cos(4 * reach)
        assert least.min() > 0
        assert found == pytest.approx(((excess + reach * 12 * most) / least).max(), rel=1e-9)


@pytest.mark.parametrize(
    ("size", "deviation", "exact"), [(1e-3, 0.4e-6, True), (1e-3, 0.6e-6, False), (1e3, 2e-6, True)]
)
def test_rounding_is_beside_the_size_of_scores_or_beside_one(size, deviation, exact, monkeypatch):
    operator = ArmaTableOperator(LARGE, 20, candidates=EVERYTHING, cap=EVERYTHING)
    monkeypatch.setattr(operator, "deviation", lambda filter: torch.tensor([deviation]))
    certificate = attend(operator, Given(lambda x: size * torch.exp(-x)), 3, certified=True).certificate
    assert certificate is not None
    assert (certificate.exact == exact).all()
