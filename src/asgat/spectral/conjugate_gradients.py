"""Linear systems with symmetric positive matrices, for many right-hand sides at once."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Product = Callable[[Tensor], Tensor]


def conjugate_gradients(product: Product, right: Tensor, steps: int) -> tuple[Tensor, int, Tensor]:
    """Solves A Z = right for all columns [N, heads, B], A symmetric and positive: Z, the steps taken, and residuals.

    Ends when no column's residual is above rounding, or after ``steps``. Residuals [heads, B] are computed from Z at
    the end and are relative to the columns.
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
    """A quotient, 0 where a column is solved."""
    return (above / below).where(below != 0.0, 0.0)


class Solve(torch.autograd.Function):
    """``Solve.apply(signal, solve)``: a linear system with a symmetric matrix; its gradient is another one."""

    @staticmethod
    def forward(ctx: Any, signal: Tensor, solve: Product) -> Tensor:
        ctx.solve = solve
        return solve(signal.detach())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return Solve.apply(gradient, ctx.solve), None  # type: ignore[no-untyped-call]
