import pytest
import torch
from tests import dense
from tests.spectral.conformance import DOUBLE, LARGE
from tests.spectral.test_arma_operator import Given
from tests.strategies import ZOO

from asgat.filters import MLPFilter
from asgat.spectral import ArmaOperator
from asgat.spectral.rational_response import Fallback
from asgat.tables import ArmaTableOperator


@pytest.mark.parametrize("make", [ArmaOperator, lambda graph: ArmaTableOperator(graph, 8, candidates=8)])
def test_a_response_that_is_not_finite_is_recorded(make):
    operator = make(LARGE)
    _, score = operator.top(Given(torch.exp, lambda x: x / 0.0), 2)
    assert operator.rational.fallback == Fallback(heads=1, evaluations=1, residual=float("inf"))
    assert score[0].isfinite().all()
    assert not score[1].isfinite().any()


def test_a_given_denominator_is_used_for_all_filters():
    filter, other = dense.filters()["mlp"], dense.filters()["polynomial"]
    operator = ArmaTableOperator(LARGE, 20, fit_error=1e-4, candidates=4, dtype=DOUBLE)
    fitted, others = (operator.rational(response).denominator for response in (filter, other))
    assert not torch.equal(fitted, others)
    operator.rational.denominator = fitted
    assert torch.equal(operator.rational(other).denominator, fitted)
    assert torch.equal(operator.to(dtype=torch.float32).rational(other.float()).denominator, fitted)


def test_a_response_is_fitted_once():
    operator, filter = ArmaTableOperator(LARGE, 20, candidates=4), MLPFilter(2)
    calls = []
    fit = operator.rational.fit.best_denominator
    operator.rational.fit.best_denominator = lambda response: calls.append(1) or fit(response)  # type: ignore
    with torch.no_grad():
        operator.top(filter, 3)
    operator.top(filter, 3)
    assert len(calls) == 1
    with torch.no_grad():
        next(filter.parameters()).data.add_(0.5)
    operator.top(filter, 3)
    assert len(calls) == 2


def test_four_responses_are_remembered():
    operator = ArmaTableOperator(ZOO["path"], 4, 2, 2, candidates=4)
    calls = []
    fit = operator.rational.fit.best_denominator
    operator.rational.fit.best_denominator = lambda response: calls.append(1) or fit(response)  # type: ignore
    filters = [Given(lambda x, i=i: torch.exp(-i * x)) for i in range(5)]
    for filter in [*filters[:4], filters[0], filters[3]]:
        operator.rational(filter)
    assert len(calls) == 4
    operator.rational(filters[4])
    operator.rational(filters[1])
    assert len(calls) == 5
    operator.rational(filters[0])
    assert len(calls) == 6, "the oldest was dropped first"
