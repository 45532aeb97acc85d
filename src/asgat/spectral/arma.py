"""Scores by rational functions of the Laplacian."""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.spectral.certificate import Certificate
from asgat.spectral.chebyshev import ChebyshevOperator, LambdaMax
from asgat.spectral.rational import Rational, RationalFit, chebyshev_values
from asgat.spectral.spectral_operator import UNREACHABLE
from asgat.spectral.topk import top_k
from asgat.tables.table_operator import TableOperator

Solver = Callable[[Tensor], Tensor]
Result = TypeVar("Result")

_FINE = 1 << 14  # points at which an expansion is held against what it expands
_ROUNDING = 1e-6  # error of single precision, beside the sum of all coefficients
_DENSE_GAIN = 8  # how many multiplications of dense matrices take the time of one with a sparse matrix


@dataclass(frozen=True)
class Fallback:
    """Heads that were given a polynomial, q = 1, because their rational function could not be used.

    Attributes:
        heads: the most in one evaluation.
        evaluations: how many were concerned.
        residual: the largest that was found, of conjugate gradients or of a fit.
    """

    heads: int
    evaluations: int
    residual: float


class RationalForm(ChebyshevOperator):
    r"""What both ARMA operators share: the fit :math:`g \approx p / q`, and the memory of what could not be used.

    The denominator is found anew whenever the response has changed, and is a constant in the eyes of gradients.
    """

    capturable = False

    def __init__(self, fit: RationalFit, graph: Graph, **polynomial: Any) -> None:
        self.fit = fit
        self.fallback: Fallback | None = None
        self._held: Tensor | None = None
        super().__init__(graph, **polynomial)

    def _prepare(self) -> None:
        super()._prepare()
        self.fit = self.fit.to(self.device)
        self._held = None if self._held is None else self._held.to(self.device)
        self._known: deque[tuple[Tensor, Tensor]] = deque(maxlen=4)

    @property
    def stacks_heads(self) -> bool:
        return False  # a fit that fails is replaced for all heads of the call

    def rational(self, filter: SpectralFilter) -> Rational:
        """The rational functions that stand for a filter's responses, on the shifted spectrum [-1, 1]."""
        response = self._response(filter)
        rational = self.fit(response, self._denominator(response))
        failed = ~rational.residual.isfinite()
        if bool(failed.any()):
            self._remember(int(failed.sum()), math.inf)
        return rational

    def holding(self, filter: SpectralFilter) -> Self:
        """The same operator with this filter's denominators for all filters: then scores are linear in the response."""
        held = copy.copy(self)
        held._held = self._denominator(self._response(filter))
        return held

    def take_fallback(self) -> Fallback | None:
        """What had to fall back since it was last asked."""
        taken, self.fallback = self.fallback, None
        return taken

    def _response(self, filter: SpectralFilter) -> Tensor:
        """The filter at the points of the fit, [heads, points]."""
        with torch.autocast(self.device.type, enabled=False):
            frequency = self.lambda_max / 2.0 * (self.fit.points + 1.0)
            response: Tensor = filter(frequency.to(self.dtype)).t()
            return response

    def _denominator(self, response: Tensor) -> Tensor:
        """Remembered on the CPU, as an epoch trains with the filters the last one was judged by."""
        if self._held is not None:
            return self._held
        for known, denominator in self._known:
            if known.shape == response.shape and torch.equal(known, response):
                return denominator
        denominator = self.fit.best_denominator(response)
        self._known.append((response.detach(), denominator))
        return denominator

    def _remember(self, heads: int, residual: float) -> None:
        before = self.fallback or Fallback(0, 0, 0.0)
        self.fallback = Fallback(max(heads, before.heads), before.evaluations + 1, max(residual, before.residual))


class ArmaOperator(RationalForm):
    r"""Scores :math:`\psi = p(X) \, q(X)^{-1}`, all pairs, with :math:`X = 2L/\lambda_{\max} - I`.

    For every head the response is fitted by a rational function (:class:`~asgat.spectral.rational.RationalFit`). Rows
    are blocks of one-hot signals E: conjugate gradients solve :math:`q(X) Z = E`, then :math:`\psi = \sum_j b_j T_j(X)
    Z` is a sum, differentiable in b; no gradient passes through the iterations. A node reaches its whole component.

    A head for which conjugate gradients end above the tolerance is given q = 1 in that evaluation, which is a Chebyshev
    polynomial of degree Q; ``fallback`` says so.

    A row costs O(steps · P · E) per head, or O(steps · N²) where that is less and the matrices fit ``block_bytes``: for
    small graphs.

    Args:
        graph: the graph.
        numerator: degree Q.
        denominator: degree P.
        steps: conjugate-gradient steps T at most; they end earlier where rounding leaves nothing to gain.
        tolerance: largest residual :math:`\lVert E_u - q(X) Z_u \rVert` a solution may have.
        condition: largest max q / min q on the spectrum. With 30, thirty steps leave 1e-5 or so.
        fit_error: error, beside the largest response, up to which a fit is good enough: a smooth response then needs no
            denominator, nor a high order to be expanded.
        lambda_max, dtype, device: as for :class:`ChebyshevOperator`.
        block_bytes: working memory allowed for one block of rows.

    Attributes:
        steps_taken: conjugate-gradient steps of the last solution.
        residual: its largest residual.
    """

    def __init__(
        self,
        graph: Graph,
        numerator: int = 18,
        denominator: int = 12,
        steps: int = 30,
        tolerance: float = 1e-4,
        condition: float = 30.0,
        fit_error: float = 0.01,
        lambda_max: LambdaMax = "bound",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        block_bytes: int = 1 << 30,
    ) -> None:
        if steps < 1:
            raise AsgatError(f"steps must be at least 1, but is {steps}.")
        if not tolerance > 0.0:
            raise AsgatError(f"tolerance must be positive, but is {tolerance}.")
        self.steps, self.tolerance = steps, tolerance
        self.steps_taken, self.residual = 0, 0.0
        self._component = torch.from_numpy(graph.components)
        super().__init__(
            RationalFit(numerator, denominator, condition, fit_error),
            graph,
            order=max(numerator, denominator),
            lambda_max=lambda_max,
            dtype=dtype,
            device=device,
            cache_bytes=0,
            block_bytes=block_bytes,
        )

    def _prepare(self) -> None:
        super()._prepare()
        self._component = self._component.to(self.device)

    def scores(
        self, filter: SpectralFilter, rows: slice | None = None, include_unreachable: bool = False
    ) -> tuple[Tensor, Tensor]:
        first, last, _ = (rows or slice(None)).indices(self.num_nodes)
        block = slice(first, max(first, last))

        def evaluate(rational: Rational) -> Tensor:
            terms = self._terms(self._solver(rational.denominator), rational.numerator.size(0), block)
            return torch.einsum("hj,jhbn->hbn", rational.numerator.to(self.dtype), terms)

        score = self._with_fallback(filter, evaluate)
        score = score.masked_fill(self._apart(block), 0.0 if include_unreachable else UNREACHABLE)
        return torch.arange(self.num_nodes, device=self.device).expand(score.shape[1:]), score

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        unreachable = 0.0 if include_unreachable else UNREACHABLE

        def evaluate(rational: Rational) -> tuple[Tensor, Tensor]:
            solve, numerator = self._solver(rational.denominator), rational.numerator.to(self.dtype)
            heads = numerator.size(0)
            indices = [torch.empty(heads, 0, min(k, self.num_nodes), dtype=torch.int64, device=self.device)]
            values = [indices[0].to(self.dtype)]
            for rows in self._blocks(heads):
                with torch.no_grad():
                    terms, apart = self._terms(solve, heads, rows), self._apart(rows)
                    score = torch.einsum("hj,jhbn->hbn", numerator, terms).masked_fill_(apart, unreachable)
                    index = top_k(score, k)
                    kept = torch.stack([term.gather(-1, index) for term in terms])
                    missing = apart.expand_as(score).gather(-1, index)
                value = torch.einsum("hj,jhbk->hbk", numerator, kept)
                indices.append(index)
                values.append(value.masked_fill(missing, unreachable))
            return torch.cat(indices, dim=1), torch.cat(values, dim=1)

        return self._with_fallback(filter, evaluate)

    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        """See :meth:`SpectralOperator.apply`; conjugate gradients on the signal, and on its gradient."""

        def evaluate(rational: Rational) -> Tensor:
            solve, numerator = self._solver(rational.denominator), rational.numerator.to(signal.dtype)
            repeated = signal.expand(numerator.size(0), -1, -1).transpose(0, 1)
            solution: Tensor = _Solve.apply(repeated, solve)  # type: ignore[no-untyped-call]
            total = torch.zeros_like(solution)
            for coefficient, term in zip(numerator.t(), self._polynomials(solution.flatten(1)), strict=False):
                total = total + coefficient[:, None] * term.view_as(total)
            return total.transpose(0, 1)

        return self._with_fallback(filter, evaluate)

    def _with_fallback(self, filter: SpectralFilter, evaluate: Callable[[Rational], Result]) -> Result:
        """What ``evaluate`` makes of the fit; heads it cannot solve for are given q = 1."""
        rational = self.rational(filter)
        failed = torch.zeros_like(rational.residual, dtype=torch.bool)
        worst = 0.0
        while True:
            try:
                result = evaluate(rational)
            except _NotSolvedError as error:
                failed |= error.failed
                worst = max(worst, error.residual)
                denominator = rational.denominator.masked_fill(failed.unsqueeze(1), 0.0)
                rational = self.fit(self._response(filter), denominator)
                continue
            if bool(failed.any()):
                self._remember(int(failed.sum()), worst)
            return result

    def _solver(self, denominator: Tensor) -> Solver:
        """Solves q(X) Z = signal for every head, [N, heads, B]; raises where conjugate gradients do not end."""
        product = self._product(denominator.to(self.dtype))

        def solve(signal: Tensor) -> Tensor:
            solution, self.steps_taken, residual = conjugate_gradients(product, signal, self.steps)
            self.residual = float(residual.max()) if residual.numel() else 0.0
            failed = ~(residual <= self.tolerance).all(dim=1)
            # Without a denominator there is nothing to solve: what is not finite then was so before.
            failed &= (denominator != 0.0).any(dim=1)
            if bool(failed.any()):
                raise _NotSolvedError(failed, self.residual)
            return solution

        return solve

    def _product(self, denominator: Tensor) -> Solver:
        """q(X) times a signal [N, heads, B]: by one matrix per head where that is cheaper, or by sparse products."""
        heads, degree = denominator.shape
        cheaper = self.num_nodes**2 <= _DENSE_GAIN * degree * self._shifted.nnz
        if cheaper and heads * self.num_nodes**2 * self.dtype.itemsize <= self.block_bytes:
            eye = torch.eye(self.num_nodes, dtype=self.dtype, device=self.device)
            matrix = eye.repeat(heads, 1, 1)
            for coefficient, term in zip(denominator.t(), islice(self._polynomials(eye), 1, None), strict=False):
                matrix += coefficient[:, None, None] * term
            return lambda signal: (matrix @ signal.transpose(0, 1)).transpose(0, 1)

        def product(signal: Tensor) -> Tensor:
            total = signal.clone()
            terms = islice(self._polynomials(signal.flatten(1)), 1, None)
            for coefficient, term in zip(denominator.t(), terms, strict=False):
                total += coefficient[:, None] * term.view_as(signal)
            return total

        return product

    def _terms(self, solve: Solver, heads: int, rows: slice) -> Tensor:
        """Rows of all T_j(X) / q(X), [Q + 1, heads, B, N]: X is symmetric, so a column is a row."""
        width = rows.stop - rows.start
        one_hot = torch.zeros(self.num_nodes, width, dtype=self.dtype, device=self.device)
        one_hot[rows].fill_diagonal_(1.0)
        solution = solve(one_hot.unsqueeze(1).expand(-1, heads, -1))
        terms = torch.empty(self.fit.numerator + 1, heads, width, self.num_nodes, dtype=self.dtype, device=self.device)
        for j, term in zip(range(self.fit.numerator + 1), self._polynomials(solution.flatten(1)), strict=False):
            terms[j] = term.view_as(solution).permute(1, 2, 0)
        return terms

    def _apart(self, rows: slice) -> Tensor:
        """Pairs [B, N] of different components."""
        return self._component[rows].unsqueeze(1) != self._component

    def _blocks(self, heads: int) -> Iterator[slice]:
        """Ranges of rows whose terms, conjugate gradients and selection keys fit ``block_bytes``."""
        per_row = self.num_nodes * heads * ((self.fit.numerator + 12) * self.dtype.itemsize + 3 * 8)
        size = max(1, self.block_bytes // max(per_row, 1))
        for start in range(0, self.num_nodes, size):
            yield slice(start, min(start + size, self.num_nodes))


class ArmaTableOperator(RationalForm, TableOperator):
    r"""The scores of :class:`ArmaOperator` on a candidate table: :math:`p / q` expanded in Chebyshev polynomials.

    The rational function is sampled at Chebyshev points and expanded to an order far above its own, and the table of
    that order serves the expansion like any other polynomial. What the expansion leaves out, at most :math:`\delta` at
    any frequency, moves no score by more than :math:`\delta`: :meth:`certify` adds :math:`2 \delta`.

    Args:
        graph: the graph.
        order: of the expansion. Smooth responses need little, sharp ones much: :meth:`deviation` tells.
        numerator, denominator, condition, fit_error: as for :class:`ArmaOperator`.
        table: the other arguments of :class:`TableOperator`.
    """

    def __init__(
        self,
        graph: Graph,
        order: int = 30,
        numerator: int = 18,
        denominator: int = 12,
        condition: float = 30.0,
        fit_error: float = 0.01,
        **table: Any,
    ) -> None:
        super().__init__(RationalFit(numerator, denominator, condition, fit_error), graph, order=order, **table)

    def coefficients(self, filter: SpectralFilter) -> Tensor:
        """The coefficients of the expansion, [heads, order + 1], differentiable in the filter."""
        shifted = 2.0 / self.lambda_max * self.points - 1.0
        return (self.rational(filter)(shifted) @ self._transform).to(self.dtype)

    @torch.no_grad()
    def deviation(self, filter: SpectralFilter) -> Tensor:
        r"""Bounds [heads] on :math:`\delta = \max |\sum_i c_i T_i - p / q|`, over all of [0, λmax].

        Between the points of a fine grid neither :math:`q \sum_i c_i T_i - p` nor q, both polynomials, changes faster
        than their degree allows (Bernstein's inequality), which turns the largest value on the grid into a bound.
        """
        rational, coefficients = self.rational(filter), self.coefficients(filter).double()
        x = torch.cos(math.pi * (torch.arange(_FINE, dtype=torch.float64, device=self.device) + 0.5) / _FINE)
        below = rational.bottom(x)
        excess = below * (coefficients @ chebyshev_values(x, self.order).t()) - rational.top(x)
        reach, degree = math.pi / (2 * _FINE), max(self.order + self.fit.denominator, self.fit.numerator)
        largest = excess.abs().amax(dim=1, keepdim=True) / math.cos(reach * degree)
        steepest = self.fit.denominator * (below.amax(dim=1, keepdim=True) / math.cos(reach * self.fit.denominator))
        least = (below - reach * steepest).clamp(min=0.0)  # 0 tells nothing: the bound is infinite then
        return ((excess.abs() + reach * degree * largest) / least).amax(dim=1).nan_to_num(nan=math.inf, posinf=math.inf)

    def certify(self, filter: SpectralFilter, index: Tensor, score: Tensor, sample: int = 128) -> Certificate:
        """See :meth:`TableOperator.certify`; a row counts as exact only where the expansion is, up to rounding."""
        certificate = super().certify(filter, index, score, sample)
        error = 2.0 * self.deviation(filter).unsqueeze(1)
        size = self.coefficients(filter).detach().abs().sum(dim=1, keepdim=True)
        exact = certificate.exact & (error <= _ROUNDING * size.clamp(min=1.0))
        return replace(certificate, bound=certificate.bound + error, exact=exact)


def conjugate_gradients(product: Solver, right: Tensor, steps: int) -> tuple[Tensor, int, Tensor]:
    """Solves A Z = right for all columns [N, heads, B], A symmetric and positive: Z, the steps taken, and residuals.

    Ends when no column's residual is above rounding, or after ``steps``. Residuals [heads, B] are computed afresh from
    Z and are relative to the columns.
    """
    size = right.square().sum(dim=0)
    rest = size * (10.0 * torch.finfo(right.dtype).eps) ** 2
    solution, residual, direction, length = torch.zeros_like(right), right.clone(), right, size
    taken = 0
    while taken < steps and bool((length > rest).any()):
        image = product(direction)
        step = _ratio(length, (direction * image).sum(dim=0))
        solution = solution + step * direction
        residual = residual - step * image
        before, length = length, residual.square().sum(dim=0)
        direction = residual + _ratio(length, before) * direction
        taken += 1
    left = (right - product(solution)).square().sum(dim=0)
    return solution, taken, _ratio(left, size).sqrt()


def _ratio(above: Tensor, below: Tensor) -> Tensor:
    """A quotient, 0 where a column is done."""
    return (above / below).where(below != 0.0, 0.0)


class _Solve(torch.autograd.Function):
    """A linear system with a symmetric matrix: its gradient is another one."""

    @staticmethod
    def forward(ctx: Any, signal: Tensor, solve: Solver) -> Tensor:
        ctx.solve = solve
        return solve(signal.detach())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.solve(gradient), None


class _NotSolvedError(Exception):
    """Conjugate gradients did not end for these heads."""

    def __init__(self, failed: Tensor, residual: float) -> None:
        super().__init__(f"The residual is {residual}.")
        self.failed, self.residual = failed, residual
