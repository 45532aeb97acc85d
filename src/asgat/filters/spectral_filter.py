"""What every spectral filter is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn
from torch.func import functional_call

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

    def transformed_in_double(self, frequency: Tensor, matrix: Tensor) -> Tensor:
        """As :meth:`transformed`, in double precision whatever that of the parameters; their gradients are rounded."""
        state = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        wide = {f"filter.{name}": value.double() for name, value in state.items()}
        out: Tensor = functional_call(Transformed(self), wide, (frequency, matrix))
        return out

    @property
    def fixed(self) -> bool:
        """Whether training leaves the responses as they are; attention is then computed once."""
        return False

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw the parameters anew."""


class Transformed(nn.Module):
    """Calls :meth:`SpectralFilter.transformed`, which can then be called with other parameters."""

    def __init__(self, filter: SpectralFilter) -> None:
        super().__init__()
        self.filter = filter

    def forward(self, frequency: Tensor, matrix: Tensor) -> Tensor:
        return self.filter.transformed(frequency, matrix)
