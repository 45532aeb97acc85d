"""Rational functions in place of a filter's responses, with denominators that conjugate gradients can invert."""

import copy
import math
from collections import deque
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter

ROUNDS = 2  # refinements of the denominator; a third gains a few per cent
_RIDGES = tuple(10.0**exponent for exponent in range(-4, 3))


@dataclass(frozen=True, eq=False)
class Rational:
    r""":math:`p(x) / q(x) = \sum_j b_j T_j(x) / (1 + \sum_{j \ge 1} a_j T_j(x))` on [-1, 1], one for every head."""

    numerator: Tensor  # b [heads, Q + 1], in double precision
    denominator: Tensor  # a [heads, P], without a_0 = 1; constant
    residual: Tensor  # largest error on the points of the fit, [heads]; not finite where no fit was found
    condition: Tensor  # bound on max q / min q over [-1, 1], [heads]

    def __call__(self, x: Tensor) -> Tensor:
        """Values [heads, n] at points [n] of [-1, 1], differentiable in the numerator."""
        return self.top(x) / self.bottom(x)

    def top(self, x: Tensor) -> Tensor:
        return self.numerator @ chebyshev_values(x, self.numerator.size(1) - 1).t()

    def bottom(self, x: Tensor) -> Tensor:
        return 1.0 + self.denominator @ chebyshev_values(x, self.denominator.size(1))[:, 1:].t()


@dataclass(eq=False)
class RationalFit:
    r"""Fits :math:`p / q` to responses given at Chebyshev points, in double precision and for all heads at once.

    The denominator comes from Sanathanan and Koerner's iteration: with the last round's :math:`\bar q`,

    .. math:: \min_{p, q} \sum_m \Big(\frac{p(x_m) - g(x_m) q(x_m)}{\bar q(x_m)}\Big)^2 + \mu \sum_{j \ge 1} a_j^2,

    is linear least squares. The ridge :math:`\mu` is the smallest of a few that leaves q positive with
    :math:`\max q / \min q` at most ``condition`` on all of [-1, 1]; a large ridge gives q = 1, a polynomial. Each head
    takes its best round. The first round is the polynomial, so a fit is never worse than that, and a smooth response
    whose error is already small enough keeps it.

    Gradients treat the denominator as a constant. Given it, the numerator is the least-squares projection of the
    response, :math:`b = M(q) g`, linear in it and differentiable.

    The normal equations of the numerator have a condition of at most about ``condition`` squared. A fit costs O(heads ·
    (points · (P + Q) + (P + Q)³)), a few milliseconds for a dozen heads.
    """

    numerator: int = 18  # degree Q
    denominator: int = 12  # degree P
    condition: float = 30.0  # largest max q / min q
    # Error relative to the largest response up to which no further round is needed: a smooth response then needs no
    # denominator, and no high order to be expanded.
    fit_error: float = 0.01

    def __post_init__(self) -> None:
        numerator, denominator = self.numerator, self.denominator
        if numerator < 1 or denominator < 1:
            raise AsgatError(f"numerator and denominator must be at least 1, but are {numerator} and {denominator}.")
        if self.condition <= 1.0:
            raise AsgatError(f"condition must be above 1, but is {self.condition}.")
        if not self.fit_error >= 0.0:
            raise AsgatError(f"fit_error must not be negative, but is {self.fit_error}.")
        degree = max(numerator, denominator)
        points = max(192, 8 * degree)
        self.points = torch.cos(math.pi * (torch.arange(points, dtype=torch.float64) + 0.5) / points)
        # Between Chebyshev points a polynomial of degree P exceeds its values there by this factor at most.
        self._between = 1.0 / math.cos(math.pi * denominator / (2 * points))
        self._values = chebyshev_values(self.points, 2 * degree)
        self._top, self._bottom = slice(0, numerator + 1), slice(1, denominator + 1)
        order = torch.arange(degree + 1)
        self._sums, self._differences = order.unsqueeze(1) + order, (order.unsqueeze(1) - order).abs()

    def to(self, device: torch.device) -> Self:
        moved = copy.copy(self)
        for name in ("points", "_values", "_sums", "_differences"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved

    def __call__(self, response: Tensor, denominator: Tensor | None = None) -> Rational:
        """The fit of responses g [heads, points], with the given denominator a [heads, P] or the best one."""
        response = response.double()
        if denominator is None:
            denominator = self.best_denominator(response)
        weight, factor = self._factor(denominator)
        numerator = self._project(response, weight, factor)
        with torch.no_grad():
            residual = self._error(response, numerator, weight)
            low, high = self._range(denominator)
        return Rational(numerator, denominator, residual, (1.0 + high) / (1.0 + low))

    @torch.no_grad()
    def best_denominator(self, response: Tensor) -> Tensor:
        """The denominator a [heads, P] of responses [heads, points]; zeros, q = 1, where no finite one was found."""
        size = response.detach().double().abs().amax(dim=1, keepdim=True).clamp(min=1e-300)
        g = response.detach().double() / size
        chosen = best = g.new_zeros(g.size(0), self.denominator)
        least = ridge = g.new_zeros(g.size(0))
        for round in range(ROUNDS + 1):
            weight, factor = self._factor(chosen)
            error = self._error(g, self._project(g, weight, factor), weight)
            better = error < least if round else torch.ones_like(error, dtype=torch.bool)
            least, best = error.where(better, least), chosen.where(better.unsqueeze(1), best)
            # On an accelerator this test would wait for the device.
            if round == ROUNDS or (not g.is_cuda and bool((least <= self.fit_error).all())):
                break
            normal, right = self._normal_equations(g, weight, factor)
            if not round:
                ridge = normal.diagonal(dim1=1, dim2=2).mean(dim=1).clamp(min=1e-12)
            chosen = self._ridged(normal, right, ridge).where((least > self.fit_error).unsqueeze(1), chosen)
        return best

    def _factor(self, denominator: Tensor) -> tuple[Tensor, Tensor]:
        """1 / q at the points, and the Cholesky factor of the numerator's normal equations."""
        weight = 1.0 / (1.0 + denominator @ self._values[:, self._bottom].t())
        return weight, torch.linalg.cholesky_ex(self._gram(weight.square(), self._top, self._top))[0]

    def _project(self, response: Tensor, weight: Tensor, factor: Tensor) -> Tensor:
        """The numerator b: least squares of p / q against the response."""
        right = self._means(weight * response)[:, self._top]
        return torch.cholesky_solve(right.unsqueeze(2), factor).squeeze(2)

    def _error(self, response: Tensor, numerator: Tensor, weight: Tensor) -> Tensor:
        values = numerator @ self._values[:, self._top].t()
        return (values * weight - response).abs().amax(dim=1)

    def _normal_equations(self, g: Tensor, weight: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
        """For the denominator, [heads, P, P] and [heads, P, 1], with the numerator eliminated."""
        mixed, own = g * weight.square(), (g * weight).square()
        both = self._gram(mixed, self._top, slice(0, self.denominator + 1))
        inner = torch.linalg.solve_triangular(factor, both, upper=False)
        right = self._means(own)[:, self._bottom].unsqueeze(2)
        columns = inner[:, :, 1:]
        normal = self._gram(own, self._bottom, self._bottom) - columns.mT @ columns
        return normal, right - columns.mT @ inner[:, :, :1]

    def _ridged(self, normal: Tensor, right: Tensor, ridge: Tensor) -> Tensor:
        """The solution of the smallest ridge that satisfies the condition, or of the largest, moved towards q = 1."""
        ridges = ridge.unsqueeze(1) * ridge.new_tensor(_RIDGES)
        eye = torch.eye(self.denominator, dtype=normal.dtype, device=normal.device)
        factor = torch.linalg.cholesky_ex(normal.unsqueeze(1) + ridges[:, :, None, None] * eye)[0]
        right = right.unsqueeze(1).expand(-1, len(_RIDGES), -1, -1)
        solution = -torch.cholesky_solve(right, factor).squeeze(3)  # [heads, ridges, P]
        solution = solution.where(solution.isfinite().all(dim=2, keepdim=True), 0.0)
        low, high = self._range(solution)
        kept = (low > -1.0) & (1.0 + high <= self.condition * (1.0 + low))
        kept[:, -1] = True
        first = kept.to(torch.uint8).argmax(dim=1)[:, None, None]
        chosen = solution.gather(1, first.expand(-1, 1, self.denominator)).squeeze(1)
        low, high = (part.gather(1, first.squeeze(2)) for part in (low, high))
        # 1 + t high = condition (1 + t low): the largest allowed step t from q = 1 to this denominator.
        share = (self.condition - 1.0) / (high - self.condition * low).clamp(min=1e-300)
        return chosen * share.clamp(max=1.0)

    def _range(self, denominator: Tensor) -> tuple[Tensor, Tensor]:
        """Bounds on q - 1 over all of [-1, 1]."""
        values = denominator @ self._values[:, self._bottom].t()
        low, high = values.amin(dim=-1), values.amax(dim=-1)
        middle, half = (low + high) / 2.0, (high - low) / 2.0 * self._between
        return middle - half, middle + half

    def _means(self, weight: Tensor) -> Tensor:
        """Means of weight · T_i over the points, for all i."""
        return weight @ self._values / self.points.numel()

    def _gram(self, weight: Tensor, rows: slice, columns: slice) -> Tensor:
        """Weighted means of T_i T_j = (T_{i+j} + T_{|i-j|}) / 2."""
        mean = self._means(weight)
        return (mean[:, self._sums[rows, columns]] + mean[:, self._differences[rows, columns]]) / 2.0


def chebyshev_values(x: Tensor, degree: int) -> Tensor:
    """T_0(x), …, T_degree(x) for x [n] in [-1, 1]: [n, degree + 1]."""
    angle = torch.arccos(x.clamp(-1.0, 1.0))
    return torch.cos(angle.unsqueeze(1) * torch.arange(degree + 1, dtype=x.dtype, device=x.device))


def polynomial_bound(coefficients: Tensor) -> Tensor:
    """Bounds [heads] on the largest magnitude over [-1, 1] of Chebyshev series, coefficients [heads, degree + 1]."""
    degree, points = coefficients.size(1) - 1, 8 * coefficients.size(1)
    x = torch.cos(math.pi * (torch.arange(points, dtype=torch.float64, device=coefficients.device) + 0.5) / points)
    values = coefficients.double() @ chebyshev_values(x, degree).t()
    return values.abs().amax(dim=1) / math.cos(math.pi * degree / (2 * points))  # by Bernstein's inequality


@dataclass(frozen=True)
class Fallback:
    """Heads that were evaluated with a polynomial, q = 1, because their rational function could not be used."""

    heads: int  # the most in one evaluation
    evaluations: int  # number of evaluations with such heads
    residual: float  # the largest, of conjugate gradients or of a fit


class RationalResponse:
    r"""Fits :math:`g \approx p / q` to filters and records what could not be used; owned by the ARMA operators.

    The denominator is fitted again whenever the response has changed; gradients treat it as a constant. Filters are
    evaluated on [0, ``lambda_max``] in ``dtype``.
    """

    def __init__(self, fit: RationalFit, lambda_max: float, dtype: torch.dtype, device: torch.device) -> None:
        self.fit, self.lambda_max, self.dtype = fit.to(device), lambda_max, dtype
        self.denominator: Tensor | None = None  # used for all filters; scores are then linear in the response
        self.fallback: Fallback | None = None  # heads that could not be used, since the last take_fallback
        self._known: deque[tuple[Tensor, Tensor]] = deque(maxlen=4)

    def __call__(self, filter: SpectralFilter, polynomial: Tensor | None = None) -> Rational:
        """The rational functions of a filter's heads on [-1, 1], with q = 1 for the heads of a mask ``polynomial``."""
        if torch.compiler.is_compiling():  # rounds depend on the data
            fitted: Rational = torch.compiler.disable(self.__call__)(filter, polynomial)  # type: ignore[no-untyped-call]
            return fitted
        points = self.fit.points
        with torch.autocast(points.device.type, enabled=False):
            response = filter((self.lambda_max / 2.0 * (points + 1.0)).to(self.dtype)).t()  # [heads, points]
        denominator = self._denominator(response)
        if polynomial is not None:
            return self.fit(response, denominator.masked_fill(polynomial.unsqueeze(1), 0.0))
        rational = self.fit(response, denominator)
        failed = ~rational.residual.isfinite()
        if bool(failed.any()):
            self.record(int(failed.sum()), math.inf)
        return rational

    def record(self, heads: int, residual: float) -> None:
        """Add one evaluation in which so many heads fell back to a polynomial."""
        before = self.fallback or Fallback(0, 0, 0.0)
        self.fallback = Fallback(max(heads, before.heads), before.evaluations + 1, max(residual, before.residual))

    def take_fallback(self) -> Fallback | None:
        taken, self.fallback = self.fallback, None
        return taken

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        moved = copy.copy(self)
        moved.fit, moved.dtype, moved._known = self.fit.to(device), dtype, deque(maxlen=4)
        moved.denominator = None if self.denominator is None else self.denominator.to(device)
        return moved

    def _denominator(self, response: Tensor) -> Tensor:
        """Remembered for the last responses: an epoch trains with the filters that the last one was evaluated with."""
        if self.denominator is not None:
            return self.denominator
        for known, denominator in self._known:
            if known.shape == response.shape and torch.equal(known, response):
                return denominator
        denominator = self.fit.best_denominator(response)
        self._known.append((response.detach(), denominator))
        return denominator
