"""The ARMA operator on a candidate table: p(X) / q(X) expanded in Chebyshev polynomials."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import dense
from tests.spectral.conformance import DOUBLE, FILTERS, LARGE, assert_near, ring_with_chords
from tests.spectral.test_arma_operator import BAND_AND_HEAT, STEPS, chebval, fitted_response, legendre
from tests.spectral.test_rational import Given, band_pass
from tests.strategies import ZOO, generic_graph
from tests.tables.test_table_operator import EVERYTHING, CompleteTable

from asgat.filters import MLPFilter
from asgat.nn import ASGATConv
from asgat.nn.attention import attend
from asgat.spectral import ArmaOperator
from asgat.spectral.certificate import SampledCertificate
from asgat.tables import ArmaTableOperator, TableOperator


class TestExpansion(CompleteTable):
    """On a table that holds every pair within reach."""

    order = 7
    lambda_max = "lanczos"
    numerator, denominator = 5, 4

    def make(self, graph, **where):
        table: Any = {"candidates": EVERYTHING, "cap": EVERYTHING, "storage": DOUBLE, "lambda_max": self.lambda_max}
        return ArmaTableOperator(graph, self.order, self.numerator, self.denominator, fit_error=1e-4, **table, **where)

    def held(self, operator, filter):
        operator.rational.denominator = operator.rational(filter).denominator
        return operator

    def dense_truth(self, graph, filter):
        operator: Any = self.double(graph)
        value, vector = dense.eigen(graph)
        node = np.cos(np.pi * (np.arange(self.order + 1) + 0.5) / (self.order + 1))
        at = 2.0 * value / operator.lambda_max - 1.0
        interpolate = legendre(at, self.order) @ np.linalg.inv(legendre(node, self.order))
        response = torch.from_numpy(interpolate) @ fitted_response(operator, filter, node)
        hops = dense.hops(graph)
        return dense.spectral_matrix(vector, response), (hops >= 0) & (hops <= self.order)

    def test_repr(self):
        assert repr(self.make(ZOO["one edge"])) == (
            "ArmaTableOperator(CandidateTable(exact, num_nodes=2, order=7, candidates_per_node=2.0, dtype=float64))"
        )


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


def test_the_filters_of_the_conformance_tests_need_denominators():
    operator: Any = TestExpansion().double(ZOO["generic"])
    assert (operator.rational(dense.filters()["mlp"]).condition > 1.1).all()


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


def test_both_forms_have_the_same_settings():
    """The paper's (18, 12) with thirty steps, held at condition 30."""
    parts = [ArmaOperator(ZOO["path"]).rational.fit, ArmaTableOperator(ZOO["path"]).rational.fit]
    for fit in parts:
        assert (fit.numerator, fit.denominator, fit.condition, fit.fit_error) == (18, 12, 30.0, 0.01)
    assert (ArmaOperator(ZOO["path"]).steps, ArmaOperator(ZOO["path"]).tolerance) == (30, 1e-4)
    assert ArmaTableOperator(ZOO["path"]).order == 30


def test_the_deviation_is_what_bernsteins_inequality_leaves(monkeypatch):
    """On a grid so coarse that every part of the bound is seen."""
    monkeypatch.setattr("asgat.tables.arma_table_operator._FINE", 64)
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


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # PyTorch's own, where it resumes
@pytest.mark.parametrize("make", [lambda graph: ArmaOperator(graph, 4, 3), lambda graph: ArmaTableOperator(graph, 8)])
def test_a_compiled_layer_runs_the_fit_uncompiled(make):
    operator, conv = make(LARGE), ASGATConv(3, 4, heads=2, k=3)
    x = torch.randn(60, 3)
    out = torch.compile(conv, backend="aot_eager")(x, operator)
    torch.testing.assert_close(out, conv(x, operator))
    out.sum().backward()
    assert all(p.grad is not None for p in conv.filter.parameters())
