"""Chebyshev coefficients of a filter's response."""

import math
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.spectral.rational import RationalResponse


@dataclass(eq=False)
class ChebyshevInterpolation:
    r"""Polynomials that interpolate responses at S Chebyshev points :math:`\lambda_m`, with coefficients

    .. math::
        c_i = \frac{2 - [i = 0]}{S} \sum_{m=1}^{S} \cos\frac{\pi i (m - 1/2)}{S} \, g(\lambda_m), \qquad
        \lambda_m = \frac{\lambda_{\max}}{2} \left(\cos\frac{\pi (m - 1/2)}{S} + 1\right).

    Args:
        order: polynomial order R.
        sampling_points: S, at least R + 1, which is the default.
        lambda_max: upper end of the interval [0, λmax].
        damping: multiply the coefficients by Jackson's factors: less sharp, but without ripples.
        dtype, device: of the coefficients.
        rational: interpolate the rational functions fitted to responses instead of the responses.

    Attributes:
        points: :math:`\lambda_m`, [S], in double precision.
        transform: [S, R + 1], the matrix from responses at the points to coefficients, in double precision.
    """

    order: int
    sampling_points: int | None = None
    lambda_max: float = 2.0
    damping: bool = False
    dtype: torch.dtype = torch.float32
    device: torch.device | str = "cpu"
    rational: RationalResponse | None = None

    def __post_init__(self) -> None:
        if self.order < 1:
            raise AsgatError(f"order must be at least 1, but is {self.order}.")
        size = self.order + 1 if self.sampling_points is None else self.sampling_points
        if size < self.order + 1:
            raise AsgatError(f"sampling_points must be at least order + 1 = {self.order + 1}, but is {size}.")
        angle = math.pi * (torch.arange(1, size + 1, dtype=torch.float64) - 0.5) / size
        transform = (2.0 / size) * torch.cos(angle.unsqueeze(1) * torch.arange(self.order + 1, dtype=torch.float64))
        transform[:, 0] /= 2.0
        if self.damping:
            transform = transform * jackson(self.order)
        self.points = (self.lambda_max / 2.0 * (torch.cos(angle) + 1.0)).to(self.device)
        self.transform = transform.to(self.device)
        self._rounded = self.points.to(self.dtype), self.transform.to(self.dtype)

    def coefficients(self, filter: SpectralFilter) -> Tensor:
        """The coefficients c [heads, R + 1], differentiable in the filter."""
        if self.rational is not None:
            at = 2.0 / self.lambda_max * self.points - 1.0
            return (self.rational(filter)(at) @ self.transform).to(self.dtype)
        device = self.points.device.type
        if torch.is_autocast_enabled(device):
            with torch.autocast(device, enabled=False):  # a few numbers that every score depends on
                return self.coefficients(filter)
        return filter.transformed(*self._rounded)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        rational = None if self.rational is None else self.rational.to(device, dtype)
        return replace(self, device=device, dtype=dtype, rational=rational)


def jackson(order: int) -> Tensor:
    """Jackson's damping factors [order + 1]; they keep the partial sum of a non-negative response non-negative."""
    terms = order + 2
    degree = torch.arange(order + 1, dtype=torch.float64)
    angle = math.pi / terms
    return ((terms - degree) * torch.cos(angle * degree) + torch.sin(angle * degree) / math.tan(angle)) / terms
