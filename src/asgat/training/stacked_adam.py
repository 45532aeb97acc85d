"""Adam for several runs at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor
from torch.optim.adam import adam

Rates = Sequence[tuple[float, float]]  # learning rate and weight decay of each run


class StackedAdam:
    """Adam on parameters [runs, ...], with a learning rate and a weight decay for each run.

    Every entry is updated as :class:`torch.optim.Adam` would: its own function is called once for each stretch of runs
    with the same rates; in double precision once for each run, as the last entries of an array are rounded otherwise
    than the rest. Nothing waits for the device.

    Args:
        parameters: the runs' parameters, stacked.
        rates: learning rate and weight decay of each run; sort the runs by them.
        moments: running means of gradients and of their squares; zeros by default.
        count: steps taken so far, as a tensor; none by default.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        rates: Rates,
        moments: tuple[list[Tensor], list[Tensor]] | None = None,
        count: Tensor | None = None,
    ) -> None:
        self.parameters, self.rates = parameters, rates
        zeros = [torch.zeros_like(value) for value in parameters], [torch.zeros_like(value) for value in parameters]
        self.first, self.second = zeros if moments is None else moments
        start = torch.zeros((), device=parameters[0].device) if count is None else count
        self.stretches = [
            (rows, *rate, [start.clone() for _ in parameters])
            for rows, rate in _stretches(rates, parameters[0].dtype == torch.float64)
        ]  # a count for each parameter, as PyTorch has it

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """One step; a parameter without gradient stays as it is."""
        used = [i for i, gradient in enumerate(gradients) if gradient is not None]
        given = [gradient.contiguous() for gradient in gradients if gradient is not None]
        for rows, lr, weight_decay, counts in self.stretches:
            adam(
                [self.parameters[i][rows] for i in used],
                [gradient[rows] for gradient in given],
                [self.first[i][rows] for i in used],
                [self.second[i][rows] for i in used],
                [],
                [counts[i] for i in used],
                fused=True,
                capturable=given[0].is_cuda,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=lr,
                weight_decay=weight_decay,
                eps=1e-8,
                maximize=False,
            )

    def select(self, parameters: Sequence[Tensor], rows: Sequence[int]) -> StackedAdam:
        """The same optimiser for some of the runs, whose parameters are given."""
        first, second = ([part[list(rows)] for part in moment] for moment in (self.first, self.second))
        count = self.stretches[0][3][0]
        return StackedAdam(parameters, [self.rates[row] for row in rows], (first, second), count)

    @property
    def tensors(self) -> list[Tensor]:
        """All that a step changes beside the parameters."""
        return [*self.first, *self.second, *(count for *_, counts in self.stretches for count in counts)]


def _stretches(rates: Rates, single: bool) -> Iterator[tuple[slice, tuple[float, float]]]:
    """Runs next to each other with the same rates, or each run for itself."""
    for (rate, _), rows in groupby(range(len(rates)), key=lambda row: (rates[row], row if single else 0)):
        first, *others = rows
        yield slice(first, (others or [first])[-1] + 1), rate
