"""The base class of spectral filters."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor, nn

from asgat.errors import AsgatError, shown


class SpectralFilter(nn.Module, ABC):
    r"""A response :math:`g: [0, \lambda_{\max}] \to \mathbb{R}^{heads}`, differentiable in its parameters.

    A new filter is one file: a subclass with :meth:`forward` and, if it has parameters, :meth:`reset_parameters`.

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
        """Whether training does not change the responses; attention is then computed once."""
        return False

    def reset_parameters(self) -> None:
        """Draw the parameters again; by default there are none."""


def build_filter(make: Callable[[int], SpectralFilter], heads: int) -> SpectralFilter:
    """The filter of a layer: ``make`` is a class of filters, or a function from a number of heads to a filter."""
    found = make(heads) if callable(make) and not isinstance(make, nn.Module) else None
    if not isinstance(found, SpectralFilter):
        raise AsgatError(
            "filter must be a subclass of SpectralFilter, not an object of it, or a function that takes the number of "
            f"heads and returns one, such as functools.partial(MyFilter, width=3); it is {shown(make)}."
        )
    return found
