"""Adam and AdamW for one run or for several stacked ones."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from asgat.kernels.adam import BLOCK, JOINED, adam_step
from asgat.kernels.backend import is_compiled
from asgat.training.flat_parameters import FlatParameters, joined

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


class Adam:
    """Updates every run as :class:`torch.optim.Adam` would, with a learning rate and a weight decay of its own; or as
    :class:`torch.optim.AdamW`, if ``decoupled``.

    On the CPU the fused kernel gets the rows of stacked parameters as separate tensors: it rounds the last entries of a
    tensor differently, so that a run's weights would otherwise depend on the runs it is stacked with. On CUDA all
    parameters become views of one tensor, ``flat``, which a kernel of our own updates: PyTorch's has a program for
    every 65,536 entries, too few to fill the device. Small gradients are joined for it, a large one takes a launch.
    Nothing waits for the device.

    Args:
        parameters: of all runs, [runs, ...] each if ``stacked``; otherwise those of a single run.
        rates: learning rate and weight decay of each run.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        rates: Sequence[tuple[float, float]],
        stacked: bool,
        decoupled: bool = False,
    ) -> None:
        self.stacked, self.decoupled, self.rates = stacked, decoupled, list(rates)
        fused = torch._fused_adamw_ if decoupled else torch._fused_adam_
        self._fused = partial(fused, beta1=BETA1, beta2=BETA2, eps=EPS, amsgrad=False, maximize=False)
        device = parameters[0].device
        one_type = len({value.dtype for value in parameters}) == 1
        on_cuda = device.type == "cuda" and is_compiled(device)
        self.flat = FlatParameters(parameters) if on_cuda and one_type else None
        zeros = [torch.zeros_like(value, memory_format=torch.contiguous_format) for value in parameters]
        moments = zeros, [value.clone() for value in zeros]
        if self.flat is not None:
            self._moments = torch.zeros_like(self.flat.value), torch.zeros_like(self.flat.value)
            moments = self.flat.views(self._moments[0]), self.flat.views(self._moments[1])
            self._groups = [(own, self.flat.blocks(own, len(rates), BLOCK)) for own in self.flat.groups(JOINED)]
            self._rates = torch.tensor(rates, dtype=torch.float64, device=device)
        self.parameters = self._rows([value.detach() for value in parameters])
        self.exp_avg, self.exp_avg_sq = self._rows(moments[0]), self._rows(moments[1])
        self._steps = torch.zeros(len(rates), len(parameters), device=device)
        self.steps = [list(row.unbind()) for row in self._steps.unbind()]
        self._whole = None
        if len(rates) == 1 and self.flat is None:  # of a single run the tensors themselves are the rows
            self._whole = [value.detach() for value in parameters], *moments, self.steps[0]
        self.groups: dict[tuple[float, float], list[int]] = defaultdict(list)
        for row, rate in enumerate(rates):
            self.groups[rate].append(row)

    def _rows(self, tensors: Sequence[Tensor]) -> list[list[Tensor]]:
        """For every run its tensors, as views."""
        if not self.stacked:
            return [list(tensors)]
        return [list(row) for row in zip(*(value.unbind() for value in tensors), strict=True)]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """One step of all runs; a parameter without gradient stays as it is."""
        if self.flat is not None and all(gradient is not None for gradient in gradients):
            self._steps.add_(1)
            for group, blocks in self._groups:
                gradient_row = joined([gradient for i in group if (gradient := gradients[i]) is not None])
                adam_step(
                    self.flat.value, gradient_row, *self._moments, blocks, self._rates, self._steps,
                    BETA1, BETA2, EPS, self.decoupled, BLOCK,
                )  # fmt: skip
            return
        if self._whole is not None and all(gradient is not None for gradient in gradients):
            self._steps.add_(1)
            parameters, means, squares, steps = self._whole
            own = [gradient.contiguous() for gradient in gradients if gradient is not None]
            lr, weight_decay = self.rates[0]
            self._fused(parameters, own, means, squares, [], steps, lr=lr, weight_decay=weight_decay)
            return
        used = [i for i, gradient in enumerate(gradients) if gradient is not None]
        given = self._rows([gradient.contiguous() for gradient in gradients if gradient is not None])
        for (lr, weight_decay), rows in self.groups.items():
            steps = [self.steps[row][i] for row in rows for i in used]
            torch._foreach_add_(steps, 1)
            parts = self.parameters, self.exp_avg, self.exp_avg_sq
            parameters, means, squares = ([part[row][i] for row in rows for i in used] for part in parts)
            own = [value for row in rows for value in given[row]]
            self._fused(parameters, own, means, squares, [], steps, lr=lr, weight_decay=weight_decay)

    def state(self, row: int) -> dict[str, Tensor]:
        """The moments and step counts of a run, as views that can be copied from and into."""
        parts = {"step": self.steps, "exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq}
        return {f"{i}.{name}": value for name, part in parts.items() for i, value in enumerate(part[row])}
