"""The filters of several layers as one."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from asgat.filters.spectral_filter import SpectralFilter


class FilterGroup(SpectralFilter):
    """The responses of several filters side by side, so that an operator selects for all of them in one call.

    Args:
        filters: the filters. Their parameters are not those of the group.

    Shapes:
        frequency [n] → response [n, Σ heads], filter by filter.
    """

    def __init__(self, filters: Sequence[SpectralFilter]) -> None:
        super().__init__(sum(filter.heads for filter in filters))
        self.filters = tuple(filters)  # a tuple hides them from parameters()

    def forward(self, frequency: Tensor) -> Tensor:
        return self._all(lambda filter: filter(frequency), dim=1)

    def transformed(self, frequency: Tensor, matrix: Tensor) -> Tensor:
        return self._all(lambda filter: filter.transformed(frequency, matrix))

    def transformed_in_double(self, frequency: Tensor, matrix: Tensor) -> Tensor:
        return self._all(lambda filter: filter.transformed_in_double(frequency, matrix))

    def _all(self, function: Callable[[SpectralFilter], Tensor], dim: int = 0) -> Tensor:
        return torch.cat([function(filter) for filter in self.filters], dim=dim)

    @property
    def fixed(self) -> bool:
        return all(filter.fixed for filter in self.filters)
