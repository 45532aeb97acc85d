"""The filters of several runs as one."""

from collections.abc import Callable

import torch
from torch import Tensor

from asgat.filters.spectral_filter import SpectralFilter, places, shallow_copy
from asgat.kernels.each_run import aligned


class FilterStack(SpectralFilter):
    """The responses of R runs side by side, from one filter whose parameters and buffers are stacked, [R, ...].

    Runs become heads, so that every operator serves several runs. On the CPU the responses of each run are computed as
    if it were alone and do not depend on the others to the last bit; other devices compute all of them in one call.

    Args:
        filter: the filter. Its parameters are not those of the stack.
        runs: R.

    Shapes:
        frequency [n] → response [n, R · heads], run by run.
    """

    def __init__(self, filter: SpectralFilter, runs: int) -> None:
        super().__init__(runs * filter.heads)
        self.runs, self._owner = runs, (filter,)  # in a tuple, which hides it from parameters()
        self._single = tuple(shallow_copy(filter) for _ in range(runs))
        self._places = list(zip(places(filter), *map(places, self._single), strict=True))

    @property
    def filter(self) -> SpectralFilter:
        return self._owner[0]

    def each(self) -> tuple[SpectralFilter, ...]:
        """The filter of every run, always the same objects; their parameters are views of the stacked ones."""
        for (held, name), *singles in self._places:
            parts = held[name].unbind() if self.runs > 1 else (held[name].squeeze(0),)
            for (own, _), part in zip(singles, parts, strict=True):
                own[name] = aligned(part) if part.device.type == "cpu" else part
        return self._single

    def forward(self, frequency: Tensor) -> Tensor:
        return self._all(lambda single: single(frequency).t(), frequency.device).t()

    def transformed(self, frequency: Tensor, matrix: Tensor) -> Tensor:
        together = self.filter.stack_transformed(frequency, matrix)
        if together is not None:
            return together
        return self._all(lambda single: single.transformed(frequency, matrix), frequency.device)

    def _all(self, function: Callable[[SpectralFilter], Tensor], device: torch.device) -> Tensor:
        """What a function of a single filter, [heads, ...], gives for all of them."""
        if self.runs == 1:
            return function(self.each()[0])
        if device.type == "cpu" or not self._places:
            return torch.cat([function(single) for single in self.each()])

        def of_one(parts: list[Tensor]) -> Tensor:
            for (_, (own, name), *_), part in zip(self._places, parts, strict=True):
                own[name] = part
            return function(self._single[0])

        batched: Tensor = torch.vmap(of_one)([held[name] for (held, name), *_ in self._places])
        return batched.flatten(0, 1)

    @property
    def fixed(self) -> bool:
        return self.filter.fixed

    def extra_repr(self) -> str:
        return f"runs={self.runs}, heads={self.heads}"


def as_stack(filter: SpectralFilter) -> FilterStack | None:
    """The filter if it has the responses of several runs; None for that of one, as a stack of one is."""
    return filter if isinstance(filter, FilterStack) and filter.runs > 1 else None
