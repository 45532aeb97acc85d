"""What a layer computes once and uses again."""

from asgat.filters import SpectralFilter
from asgat.filters.filter_stack import FilterStack
from asgat.nn.attention import SparseAttention


class LayerCache:
    """A copied or saved layer has an empty cache.

    Attributes:
        attention: of a filter that training does not change, and what it was computed from.
    """

    def __init__(self) -> None:
        self.attention: tuple[tuple[object, ...], SparseAttention] | None = None
        self._filters: FilterStack | None = None

    def filter_of(self, filter: SpectralFilter, runs: int | None) -> SpectralFilter:
        """The filter as operators take it: itself, or the responses of stacked runs, always as the same object."""
        if runs is None:
            return filter
        if self._filters is None or self._filters.filter is not filter:
            self._filters = FilterStack(filter, runs)
        return self._filters

    def __reduce__(self) -> tuple[type["LayerCache"], tuple[()]]:
        return LayerCache, ()
