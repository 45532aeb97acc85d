"""What every spectral filter is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from asgat.errors import AsgatError


class SpectralFilter(nn.Module, ABC):
    r"""A response :math:`g: [0, \lambda_{\max}] \to \mathbb{R}^{heads}`, differentiable in its own parameters.

    A new filter is one file: a subclass that says what :meth:`forward` returns and how its parameters start.

    Args:
        heads: number of responses, one per attention head.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        if heads < 1:
            raise AsgatError(f"heads must be at least 1, but is {heads}.")
        self.heads = heads

    @abstractmethod
    def forward(self, frequency: Tensor) -> Tensor:
        """Responses [n, heads] at the frequencies λ [n]."""

    def transformed(self, frequency: Tensor, matrix: Tensor) -> Tensor:
        """The responses at the frequencies [n], as rows, times a matrix [n, m]: [heads, m]."""
        response: Tensor = self(frequency)
        return response.t() @ matrix

    @property
    def fixed(self) -> bool:
        """Whether training leaves the responses as they are; attention is then computed once."""
        return False

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
