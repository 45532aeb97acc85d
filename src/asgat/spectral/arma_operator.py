"""Scores by rational functions of the Laplacian, with conjugate gradients."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.spectral.conjugate_gradients import Product, Solve, conjugate_gradients
from asgat.spectral.graph_operator import GraphOperator
from asgat.spectral.rational import Fallback, Rational, RationalFit, RationalResponse
from asgat.spectral.shifted_laplacian import LambdaMax, ShiftedLaplacian
from asgat.spectral.spectral_operator import UNREACHABLE
from asgat.spectral.top_k import row_blocks, top_by_blocks

Result = TypeVar("Result")

_DENSE_GAIN = 8  # how many products of dense matrices take the time of one with a sparse matrix


class ArmaOperator(GraphOperator):
    r"""Scores :math:`\psi = p(X) \, q(X)^{-1}`, all pairs, with :math:`X = 2L/\lambda_{\max} - I`.

    For every head the response is fitted by a rational function (:class:`~asgat.spectral.rational.RationalFit`). Rows
    are blocks of one-hot signals E: conjugate gradients solve :math:`q(X) Z = E`, then :math:`\psi = \sum_j b_j T_j(X)
    Z` is a sum, differentiable in b; gradients do not pass through the iterations. A node reaches its whole component.

    A head for which conjugate gradients end above the tolerance is evaluated with q = 1, a Chebyshev polynomial of
    degree Q; :meth:`take_fallback` reports it.

    A row costs O(steps · P · E) per head, or O(steps · N²) where that is less and the matrices fit ``block_bytes``: for
    small graphs.

    Args:
        numerator, denominator, condition, fit_error: see :class:`~asgat.spectral.rational.RationalFit`. With condition
            30, thirty steps leave a residual of about 1e-5.
        steps: conjugate-gradient steps T at most; they end earlier once the residual is at rounding level.
        tolerance: largest residual :math:`\lVert E_u - q(X) Z_u \rVert` a solution may have.
        lambda_max, dtype, device: as for :class:`ChebyshevOperator`.
        block_bytes: working memory allowed for one block of rows.
    """

    capturable = False
    records_fallbacks = True

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
        fit = RationalFit(numerator, denominator, condition, fit_error)
        self.graph, self.num_nodes = graph, graph.num_nodes
        self.device, self.dtype = torch.device(device), dtype
        self.steps, self.tolerance, self.block_bytes = steps, tolerance, block_bytes
        self.steps_taken, self.residual = 0, 0.0  # conjugate-gradient steps of the last solution, its largest residual
        self.shifted = ShiftedLaplacian(graph, lambda_max, dtype, self.device)
        self.lambda_max = self.shifted.lambda_max
        self.rational = RationalResponse(fit, self.lambda_max, dtype, self.device)
        self._component = torch.from_numpy(graph.components).to(self.device)

    def _move(self) -> None:
        self.shifted = self.shifted.to(self.device, self.dtype)
        self.rational = self.rational.to(self.device, self.dtype)
        self._component = self._component.to(self.device)

    def take_fallback(self) -> Fallback | None:
        return self.rational.take_fallback()

    def scores(
        self, filter: SpectralFilter, rows: slice | None = None, include_unreachable: bool = False
    ) -> tuple[Tensor, Tensor]:
        first, last, _ = (rows or slice(None)).indices(self.num_nodes)
        block = slice(first, max(first, last))
        score, _, apart = self._with_fallback(filter, lambda rational: self._terms(rational)(block))
        score = score.masked_fill(apart, 0.0 if include_unreachable else UNREACHABLE)
        return torch.arange(self.num_nodes, device=self.device).expand(score.shape[1:]), score

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        unreachable = 0.0 if include_unreachable else UNREACHABLE

        def evaluate(rational: Rational) -> tuple[Tensor, Tensor]:
            numerator = rational.numerator.to(self.dtype)
            return top_by_blocks(self._blocks(len(numerator)), self._terms(rational), numerator, k, unreachable)

        return self._with_fallback(filter, evaluate)

    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        """See :meth:`GraphOperator.apply`; conjugate gradients on the signal, and on its gradient."""

        def evaluate(rational: Rational) -> Tensor:
            solve, numerator = self._solver(rational.denominator), rational.numerator.to(signal.dtype)
            repeated = signal.expand(numerator.size(0), -1, -1).transpose(0, 1)
            solution: Tensor = Solve.apply(repeated, solve)  # type: ignore[no-untyped-call]
            total = torch.zeros_like(solution)
            terms = self.shifted.polynomials(solution.flatten(1), numerator.size(1) - 1)
            for coefficient, term in zip(numerator.t(), terms, strict=True):
                total = total + coefficient[:, None] * term.view_as(total)
            return total.transpose(0, 1)

        return self._with_fallback(filter, evaluate)

    def _with_fallback(self, filter: SpectralFilter, evaluate: Callable[[Rational], Result]) -> Result:
        """Evaluates the fit, never compiled; heads that cannot be solved get q = 1."""
        if torch.compiler.is_compiling():
            outcome: Result = torch.compiler.disable(self._with_fallback)(filter, evaluate)  # type: ignore[no-untyped-call]
            return outcome
        rational = self.rational(filter)
        failed = torch.zeros_like(rational.residual, dtype=torch.bool)
        worst = 0.0
        while True:
            try:
                result = evaluate(rational)
            except _NotSolvedError as error:
                failed |= error.failed
                worst = max(worst, error.residual)
                rational = self.rational(filter, failed)
                continue
            if bool(failed.any()):
                self.rational.record(int(failed.sum()), worst)
            return result

    def _solver(self, denominator: Tensor) -> Product:
        """Solves q(X) Z = signal for every head, [N, heads, B]; raises where conjugate gradients do not converge."""
        product = self._product(denominator.to(self.dtype))

        def solve(signal: Tensor) -> Tensor:
            solution, self.steps_taken, residual = conjugate_gradients(product, signal, self.steps)
            self.residual = float(residual.max()) if residual.numel() else 0.0
            failed = ~(residual <= self.tolerance).all(dim=1)
            # Without a denominator there is nothing to solve: the right-hand side itself is not finite then.
            failed &= (denominator != 0.0).any(dim=1)
            if bool(failed.any()):
                raise _NotSolvedError(failed, self.residual)
            return solution

        return solve

    def _product(self, denominator: Tensor) -> Product:
        """q(X) times a signal [N, heads, B]: by one matrix per head where that is cheaper, or by sparse products."""
        heads, degree = denominator.shape
        cheaper = self.num_nodes**2 <= _DENSE_GAIN * degree * len(self.shifted.matrix.data)
        if cheaper and heads * self.num_nodes**2 * self.dtype.itemsize <= self.block_bytes:
            eye = torch.eye(self.num_nodes, dtype=self.dtype, device=self.device)
            matrix = eye.repeat(heads, 1, 1)
            for coefficient, term in zip(denominator.t(), self._after_first(eye, degree), strict=True):
                matrix += coefficient[:, None, None] * term
            return lambda signal: (matrix @ signal.transpose(0, 1)).transpose(0, 1)

        def product(signal: Tensor) -> Tensor:
            total = signal.clone()
            for coefficient, term in zip(denominator.t(), self._after_first(signal.flatten(1), degree), strict=True):
                total += coefficient[:, None] * term.view_as(signal)
            return total

        return product

    def _after_first(self, signal: Tensor, degree: int) -> Iterator[Tensor]:
        """T_1(X) x, …, T_degree(X) x."""
        return islice(self.shifted.polynomials(signal, degree), 1, None)

    def _terms(self, rational: Rational) -> Callable[[slice], tuple[Tensor, Tensor, Tensor]]:
        """For a range of rows the scores, their terms T_j(X) / q(X), [Q + 1, heads, B, N], and the pairs [B, N] of
        different components. X is symmetric, so a column is a row."""
        solve, numerator = self._solver(rational.denominator), rational.numerator.to(self.dtype)
        heads, count = numerator.shape

        def block_terms(rows: slice) -> tuple[Tensor, Tensor, Tensor]:
            one_hot = numerator.new_zeros(self.num_nodes, rows.stop - rows.start)
            one_hot[rows].fill_diagonal_(1.0)
            solution = solve(one_hot.unsqueeze(1).expand(-1, heads, -1))
            terms = numerator.new_empty(count, heads, one_hot.size(1), self.num_nodes)
            for j, term in enumerate(self.shifted.polynomials(solution.flatten(1), count - 1)):
                terms[j] = term.view_as(solution).permute(1, 2, 0)
            apart = self._component[rows].unsqueeze(1) != self._component
            return torch.einsum("hj,jhbn->hbn", numerator, terms), terms, apart

        return block_terms

    def _blocks(self, heads: int) -> Iterator[slice]:
        """Ranges of rows whose terms, conjugate gradients and selection keys fit ``block_bytes``."""
        per_row = self.num_nodes * heads * ((self.rational.fit.numerator + 12) * self.dtype.itemsize + 3 * 8)
        return row_blocks(self.num_nodes, per_row, self.block_bytes)


class _NotSolvedError(Exception):
    """Conjugate gradients did not converge for these heads."""

    def __init__(self, failed: Tensor, residual: float) -> None:
        super().__init__(f"The residual is {residual}.")
        self.failed, self.residual = failed, residual
