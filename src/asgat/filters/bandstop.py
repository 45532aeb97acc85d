"""A filter with a band of frequencies removed, for the paper's frequency ablation."""

from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter


class BandStop(SpectralFilter):
    r"""Another filter with its response set to zero for :math:`low \le \lambda < high`.

    Bands are half-open, so that neighbouring ones share no frequency; one that ends at 2 or above includes the end of
    the spectrum and what rounding adds to it.

    Args:
        filter: the other filter; its parameters are shared, not copied.
        low: start of the band.
        high: end of the band.

    Example:
        >>> import torch
        >>> from asgat.filters import HeatFilter
        >>> BandStop(HeatFilter(1), 0.0, 1.0)(torch.tensor([0.5, 1.0])).gt(0).flatten().tolist()
        [False, True]
    """

    def __init__(self, filter: SpectralFilter, low: float, high: float) -> None:
        super().__init__(filter.heads)
        if not low < high:
            raise AsgatError(f"A band must start below its end, but starts at {low} and ends at {high}.")
        self.filter = filter
        self.low = low
        self.high = float("inf") if high >= 2.0 else high

    def reset_parameters(self) -> None:
        self.filter.reset_parameters()

    def forward(self, frequency: Tensor) -> Tensor:
        stopped = (frequency >= self.low) & (frequency < self.high)
        response: Tensor = self.filter(frequency)
        return response.masked_fill(stopped.unsqueeze(-1), 0.0)

    def extra_repr(self) -> str:
        return f"low={self.low}, high={self.high}"
