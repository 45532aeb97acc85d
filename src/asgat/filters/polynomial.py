"""A polynomial with learned coefficients."""

import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter


class PolynomialFilter(SpectralFilter):
    r"""The polynomial :math:`g(\lambda) = \sum_{j=0}^{degree} \theta_j \lambda^j`, :math:`\theta` learned per head.

    Args:
        heads: number of responses.
        degree: largest power of λ.

    Example:
        >>> PolynomialFilter(heads=2, degree=3)(torch.linspace(0, 2, 5)).shape
        torch.Size([5, 2])
    """

    def __init__(self, heads: int, degree: int = 3) -> None:
        super().__init__(heads)
        if degree < 0:
            raise AsgatError(f"The degree of a polynomial filter must not be negative, but is {degree}.")
        self.degree = degree
        self.theta = nn.Parameter(torch.empty(degree + 1, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            # On [0, 2] the power j is up to 2^j: all terms are about equal at first.
            power = torch.arange(self.degree + 1, device=self.theta.device).unsqueeze(-1)
            self.theta.normal_().div_(2.0**power)

    def forward(self, frequency: Tensor) -> Tensor:
        powers = frequency.unsqueeze(-1) ** torch.arange(self.degree + 1, device=frequency.device)
        return powers @ self.theta

    def extra_repr(self) -> str:
        return f"heads={self.heads}, degree={self.degree}"
