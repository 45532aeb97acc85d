import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import dense
from tests.spectral.conformance import DOUBLE, LARGE
from tests.strategies import ZOO

from asgat.errors import AsgatError
from asgat.filters import MLPFilter, SpectralFilter
from asgat.spectral import ArmaOperator
from asgat.spectral.rational import Fallback, RationalFit, chebyshev_values, polynomial_bound
from asgat.tables import ArmaTableOperator

FIT = RationalFit(fit_error=1e-4)  # so that most responses ask for a denominator
FINE = torch.linspace(-1.0, 1.0, 20001, dtype=torch.float64)
chebval = np.polynomial.chebyshev.chebval


class Given(SpectralFilter):
    """Responses that are functions of the shifted frequency."""

    def __init__(self, *responses):
        super().__init__(len(responses))
        self.responses = responses

    def forward(self, frequency):
        return torch.stack([response(frequency - 1.0) for response in self.responses], dim=1)

    def reset_parameters(self): ...


def band_pass(x, low=-0.4, high=0.4, width=0.1):
    """1 inside a band of the shifted spectrum, 0 outside, with cubic edges."""
    edges = torch.stack([(x - low) / width, (high - x) / width]).add(0.5).clamp(0.0, 1.0)
    return (edges.square() * (3.0 - 2.0 * edges)).prod(dim=0)


def fitted(*responses, fit=FIT):
    return fit(torch.stack([response(fit.points) for response in responses]))


def mlp(seed, scale=1.0):
    torch.manual_seed(seed)
    filter = MLPFilter(1, hidden=(32, 32)).double()
    with torch.no_grad():
        for parameter in filter.parameters():
            parameter.mul_(1.5)
    return lambda x: scale * filter(x + 1.0).detach().squeeze(1)


SEEDS = st.integers(0, 10**6)
SCALES = st.sampled_from([1.0, 1e6, 1e-6, 1e30, 1e-30, 1e-300])
ADVERSARIES = st.one_of(
    st.builds(lambda seed, scale: mlp(seed, scale), SEEDS, SCALES),
    st.builds(lambda edge, scale: lambda x: scale * (x < edge).double(), st.floats(-1.0, 1.0), SCALES),
    st.builds(lambda c: lambda x: torch.full_like(x, c), st.sampled_from([0.0, 1.0, -3.0, 1e6, -1e-30])),
    st.builds(lambda f, scale: lambda x: scale * torch.sin(f * x), st.floats(0.0, 200.0), SCALES),
    st.builds(lambda at, w: lambda x: 1.0 / ((x - at) ** 2 + w * w), st.floats(-1.0, 1.0), st.floats(1e-4, 1.0)),
    st.builds(
        lambda seed: lambda x: torch.randn(len(x), generator=torch.Generator().manual_seed(seed)).double(), SEEDS
    ),
    st.builds(lambda at: lambda x: ((x - at).abs() < 1e-2).double() * 1e9 + 1.0, st.floats(-1.0, 1.0)),
)


# -- the denominator ---------------------------------------------------------------------------------------


@given(st.lists(ADVERSARIES, min_size=1, max_size=4), st.sampled_from([30.0, 5.0, 1.5]))
@settings(max_examples=60)
def test_the_denominator_is_positive_and_its_condition_bounded(responses, condition):
    fit = RationalFit(condition=condition, fit_error=1e-4)
    rational = fitted(*responses, fit=fit)
    assert rational.denominator.isfinite().all()
    assert rational.residual.isfinite().all()
    values = chebval(FINE.numpy(), np.insert(rational.denominator.numpy(), 0, 1.0, axis=1).T)
    assert (values > 0).all()
    measured = torch.from_numpy(values.max(axis=1) / values.min(axis=1))
    assert (measured <= rational.condition + 1e-9).all()
    assert (rational.condition <= condition + 1e-9).all()
    assert (rational.condition <= 1.15 * measured).all(), "a bound, and a near one"


@given(st.lists(ADVERSARIES, min_size=1, max_size=4))
@settings(max_examples=40)
def test_a_fit_is_never_worse_on_its_points_than_the_polynomial(responses):
    response = torch.stack([one(FIT.points) for one in responses])
    polynomial = FIT(response, torch.zeros(len(responses), 12, dtype=torch.float64))
    assert (FIT(response).residual <= polynomial.residual * (1 + 1e-9)).all()


def test_a_band_pass_is_far_closer_than_by_chebyshev_polynomials():
    rational = fitted(band_pass)
    chebyshev = np.polynomial.chebyshev.chebinterpolate(lambda x: band_pass(torch.from_numpy(x)).numpy(), 15)
    truth = band_pass(FINE)
    ours = (rational(FINE)[0] - truth).abs().max()
    theirs = np.abs(chebval(FINE.numpy(), chebyshev) - truth.numpy()).max()
    assert ours < 0.03
    assert ours < theirs / 10


@pytest.mark.parametrize("pole", [0.2, 0.4])
def test_a_rational_response_is_found(pole):
    """1 / (1 + (x / pole)²) has condition 1 + 1 / pole² itself."""
    rational = fitted(lambda x: 1.0 / (1.0 + (x / pole) ** 2))
    polynomial = FIT(1.0 / (1.0 + (FIT.points[None] / pole) ** 2), torch.zeros(1, 12, dtype=torch.float64))
    error = (rational(FINE)[0] - 1.0 / (1.0 + (FINE / pole) ** 2)).abs().max()
    assert polynomial.residual > 1e-4
    assert error < polynomial.residual / 20
    assert rational.condition < 1.2 * (1.0 + 1.0 / pole**2)


def test_a_smooth_response_is_left_to_the_polynomial():
    rational = fitted(lambda x: torch.exp(-2.0 * x), lambda x: 3.0 - x**3, torch.zeros_like)
    assert (rational.denominator == 0).all()
    assert (rational.condition == 1).all()
    assert (rational.residual < 1e-7).all()
    assert (rational.numerator[2] == 0).all()


@pytest.mark.parametrize("fit_error", [1e-6, 1e-3, 0.1, 1.0])
def test_a_response_near_enough_to_the_polynomial_is_left_to_it(fit_error):
    fit = RationalFit(fit_error=fit_error)
    responses = [lambda x: 7.0 * (x - 0.3).abs(), band_pass, torch.exp]
    polynomial = fitted(*responses, fit=RationalFit(fit_error=1.0))
    relative = polynomial.residual / torch.tensor([9.1, 1.0, np.e], dtype=torch.float64)
    rational = fitted(*responses, fit=fit)
    assert (polynomial.denominator == 0).all()
    assert torch.equal((rational.denominator != 0).any(dim=1), relative > fit_error)
    assert (rational.residual <= polynomial.residual).all()


def test_heads_are_fitted_apart():
    responses = [band_pass, lambda x: torch.exp(-x), lambda x: (x - 0.3).abs(), mlp(3)]
    together = fitted(*responses)
    for head, response in enumerate(responses):
        alone = fitted(response)
        torch.testing.assert_close(together.denominator[head], alone.denominator[0], rtol=0, atol=1e-9)
        torch.testing.assert_close(together.numerator[head], alone.numerator[0], rtol=0, atol=1e-9)


@given(SEEDS, st.integers(-60, 60))
@settings(max_examples=20)
def test_the_size_of_a_response_changes_nothing_else(seed, exponent):
    response, scale = mlp(seed), 2.0**exponent  # a power of two: not even the rounding changes
    one, other = fitted(response), fitted(lambda x: scale * response(x))
    assert torch.equal(one.denominator, other.denominator)
    assert torch.equal(one.numerator * scale, other.numerator)
    assert torch.equal(one.residual * scale, other.residual)


def test_the_points_are_mirrored_with_the_response():
    one, other = fitted(lambda x: band_pass(x, -0.7, 0.1)), fitted(lambda x: band_pass(-x, -0.7, 0.1))
    torch.testing.assert_close(one(FINE), other(-FINE), rtol=0, atol=1e-7)


def test_a_response_that_is_no_number_is_told_and_harms_no_other():
    broken = torch.stack([band_pass(FIT.points), torch.full_like(FIT.points, torch.nan), FIT.points / 0.0])
    rational = FIT(broken)
    assert rational.residual.isfinite().tolist() == [True, False, False]
    assert (rational.denominator[1:] == 0).all()
    torch.testing.assert_close(rational.denominator[0], fitted(band_pass).denominator[0], rtol=0, atol=1e-9)


# -- the numerator -----------------------------------------------------------------------------------------


@given(SEEDS, st.integers(1, 20), st.integers(1, 14))
@settings(max_examples=20)
def test_the_numerator_is_the_least_squares_projection(seed, numerator, denominator):
    fit = RationalFit(numerator, denominator, fit_error=1e-4)
    response = torch.stack([mlp(seed)(fit.points), band_pass(fit.points)])
    rational = fit(response)
    for head in range(2):
        below = chebval(fit.points.numpy(), np.insert(rational.denominator[head].numpy(), 0, 1.0))
        matrix = np.polynomial.chebyshev.chebvander(fit.points.numpy(), numerator) / below[:, None]
        expected = np.linalg.lstsq(matrix, response[head].numpy())[0]
        np.testing.assert_allclose(rational.numerator[head].numpy(), expected, atol=1e-9)
        residual = np.abs(matrix @ expected - response[head].numpy()).max()
        assert float(rational.residual[head]) == pytest.approx(residual, abs=1e-9)


def test_gradients_are_those_of_finite_differences_with_the_denominator_held():
    fit = RationalFit(5, 3)
    response = torch.stack([band_pass(fit.points), mlp(1)(fit.points)]).requires_grad_()
    held = fit.best_denominator(response)
    assert (held != 0).any(dim=1).all()
    assert not held.requires_grad
    assert torch.autograd.gradcheck(lambda g: fit(g, held)(FINE[::4000]), (response,), fast_mode=True)
    torch.autograd.grad(fit(response).numerator.sum(), response)


def test_values_are_those_of_numpy():
    rational = fitted(band_pass, mlp(2))
    for head in range(2):
        above = chebval(FINE.numpy(), rational.numerator[head].numpy())
        below = chebval(FINE.numpy(), np.insert(rational.denominator[head].numpy(), 0, 1.0))
        np.testing.assert_allclose(rational(FINE)[head].numpy(), above / below, atol=1e-11)
        np.testing.assert_allclose(rational.top(FINE)[head].numpy(), above, atol=1e-11)
        np.testing.assert_allclose(rational.bottom(FINE)[head].numpy(), below, atol=1e-11)


def test_chebyshev_values_take_rounding_at_the_ends():
    values = chebyshev_values(torch.tensor([1.0 + 1e-12, -1.0 - 1e-12], dtype=torch.float64), 3)
    assert values.tolist() == [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, pytest.approx(-1.0)]]
    assert math.isclose(float(chebyshev_values(torch.tensor([0.3], dtype=torch.float64), 2)[0, 2]), 2 * 0.09 - 1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"numerator": 0}, "must be at least 1, but are 0 and 12"),
        ({"denominator": 0}, "must be at least 1, but are 18 and 0"),
        ({"condition": 1.0}, r"condition must be above 1, but is 1\.0"),
        ({"fit_error": -1.0}, r"fit_error must not be negative, but is -1\.0"),
        ({"fit_error": float("nan")}, "fit_error must not be negative, but is nan"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(AsgatError, match=sentence):
        RationalFit(**arguments)


@given(st.integers(0, 999), st.integers(0, 12))
def test_a_polynomial_is_within_its_bound_and_near_it(seed, degree):
    c = np.random.default_rng(seed).standard_normal((3, degree + 1))
    largest = np.abs(np.polynomial.chebyshev.chebval(np.linspace(-1, 1, 20_001), c.T)).max(axis=1)
    bound = polynomial_bound(torch.from_numpy(c)).numpy()
    assert (bound >= largest - 1e-12).all()
    assert (bound <= 1.03 * largest + 1e-12).all()


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
