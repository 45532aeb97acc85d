"""Scores by rational functions of the Laplacian, expanded on a candidate table."""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.spectral.certificate import Certificate, SampledCertificate
from asgat.spectral.rational import Fallback, RationalFit, RationalResponse, chebyshev_values
from asgat.tables.table_operator import TableOperator

_FINE = 1 << 14  # points at which an expansion is compared with the rational function
_ROUNDING = 1e-6  # error of single precision, relative to the sum of all coefficients


class ArmaTableOperator(TableOperator):
    r"""The scores of :class:`~asgat.spectral.ArmaOperator` on a candidate table.

    The rational function is sampled at Chebyshev points and expanded to an order far above its degree; the table of
    that order serves the expansion like any other polynomial. The expansion is off by at most :math:`\delta` at any
    frequency, which moves no score by more than :math:`\delta`: :meth:`certify` adds :math:`2 \delta`.

    Args:
        order: of the expansion. Smooth responses need a low one, sharp ones a high one; see :meth:`deviation`.
        numerator, denominator, condition, fit_error: see :class:`~asgat.spectral.rational.RationalFit`.
        table: the other arguments of :class:`TableOperator`.
    """

    capturable = False
    records_fallbacks = True

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
        fit = RationalFit(numerator, denominator, condition, fit_error)
        super().__init__(graph, order, **table)
        rational = RationalResponse(fit, self.lambda_max, self.dtype, self.device)
        self.rows.interpolation = replace(self.rows.interpolation, rational=rational)

    @property
    def rational(self) -> RationalResponse:
        """The fits and the record of heads that fell back."""
        rational = self.rows.interpolation.rational
        assert rational is not None
        return rational

    def take_fallback(self) -> Fallback | None:
        return self.rational.take_fallback()

    @torch.no_grad()
    def deviation(self, filter: SpectralFilter) -> Tensor:
        r"""Bounds [heads] on :math:`\delta = \max |\sum_i c_i T_i - p / q|`, over all of [0, λmax].

        Between the points of a fine grid the polynomials :math:`q \sum_i c_i T_i - p` and q change no faster than
        their degree allows (Bernstein's inequality), which turns the largest value on the grid into a bound.
        """
        rational, coefficients = self.rational(filter), self.coefficients(filter).double()
        x = torch.cos(math.pi * (torch.arange(_FINE, dtype=torch.float64, device=self.device) + 0.5) / _FINE)
        fit, below = self.rational.fit, rational.bottom(x)
        excess = below * (coefficients @ chebyshev_values(x, self.order).t()) - rational.top(x)
        reach, degree = math.pi / (2 * _FINE), max(self.order + fit.denominator, fit.numerator)
        largest = excess.abs().amax(dim=1, keepdim=True) / math.cos(reach * degree)
        steepest = fit.denominator * (below.amax(dim=1, keepdim=True) / math.cos(reach * fit.denominator))
        least = (below - reach * steepest).clamp(min=0.0)  # at 0 the bound is infinite
        return ((excess.abs() + reach * degree * largest) / least).amax(dim=1).nan_to_num(nan=math.inf, posinf=math.inf)

    def certify(self, filter: SpectralFilter, index: Tensor, score: Tensor, sample: int = 128) -> Certificate:
        """See :meth:`TableOperator.certify`; a row counts as exact only where the expansion is, up to rounding."""
        certificate = super().certify(filter, index, score, sample)
        error = 2.0 * self.deviation(filter).unsqueeze(1)
        size = self.coefficients(filter).detach().abs().sum(dim=1, keepdim=True)
        exact = certificate.exact & (error <= _ROUNDING * size.clamp(min=1.0))
        certificate = replace(certificate, bound=certificate.bound + error, exact=exact)
        if isinstance(certificate, SampledCertificate):
            certificate = replace(certificate, largest=certificate.largest + float(error.max()))
        return certificate
