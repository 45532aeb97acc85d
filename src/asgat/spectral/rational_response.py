"""Rational functions in place of a filter's responses."""

import copy
import math
from collections import deque
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from asgat.filters.spectral_filter import SpectralFilter
from asgat.spectral.rational import Rational, RationalFit


@dataclass(frozen=True)
class Fallback:
    """Heads that were evaluated with a polynomial, q = 1, because their rational function could not be used.

    Attributes:
        heads: the most in one evaluation.
        evaluations: number of evaluations with such heads.
        residual: the largest residual, of conjugate gradients or of a fit.
    """

    heads: int
    evaluations: int
    residual: float


class RationalResponse:
    r"""Fits :math:`g \approx p / q` to filters and records what could not be used; owned by the ARMA operators.

    The denominator is fitted again whenever the response has changed; gradients treat it as a constant. Filters are
    evaluated on [0, ``lambda_max``] in ``dtype``.

    Attributes:
        denominator: used for all filters if it is not None; scores are then linear in the response.
        fallback: heads that could not be used, since the last :meth:`take_fallback`.
    """

    def __init__(self, fit: RationalFit, lambda_max: float, dtype: torch.dtype, device: torch.device) -> None:
        self.fit, self.lambda_max, self.dtype = fit.to(device), lambda_max, dtype
        self.denominator: Tensor | None = None
        self.fallback: Fallback | None = None
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
