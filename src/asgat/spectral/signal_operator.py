"""Operators that can filter signals."""

from abc import abstractmethod

from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.spectral.spectral_operator import SpectralOperator


class SignalOperator(SpectralOperator):
    r"""A :class:`SpectralOperator` that also applies :math:`g(L)` to signals of a whole graph, or of a rank's nodes."""

    @abstractmethod
    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        r"""Filtered signals :math:`g(L) x`, [heads, N, F], without an N×N matrix if possible.

        Args:
            filter: the response g.
            signal: [N, F], the same for all heads, or [heads, N, F], one for each.
        """

    def filter_channels(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        """Signals [N, F] with every head's response applied to its slice of the F channels.

        F is a multiple of the number of heads.
        """
        filtered = self.apply(filter, signal.view(signal.size(0), filter.heads, -1).transpose(0, 1))
        return filtered.transpose(0, 1).reshape(signal.shape)

    @abstractmethod
    def neighbour_mean(self, signal: Tensor) -> Tensor:
        """The weighted mean of the neighbours' rows of a signal [N, F]; 0 for a node without any.

        On a double cover, signals may be given per node instead, [N / 2, F]: both copies of a node then have its row.
        """


def as_signal_operator(operator: SpectralOperator) -> SignalOperator:
    """The operator itself; an error if it cannot filter signals."""
    if not isinstance(operator, SignalOperator):
        raise AsgatError(
            f"{type(operator).__name__} holds only some rows of a graph and cannot filter a signal; use an operator of "
            "the whole graph, such as TableOperator."
        )
    return operator
