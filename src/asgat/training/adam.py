"""Adam and AdamW for the parameters of one run."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from asgat.kernels.adam import BLOCK, JOINED, adam_step
from asgat.kernels.backend import is_compiled
from asgat.training.flat_parameters import FlatParameters, joined

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


class Adam:
    """Updates parameters as :class:`torch.optim.Adam` would; or as :class:`torch.optim.AdamW`, if ``decoupled``.

    On CUDA all parameters become views of one tensor, ``flat``, which a kernel of our own updates: PyTorch's has a
    program for every 65,536 entries, too few to fill the device. Small gradients are joined for it, a large one takes a
    launch. Nothing waits for the device.
    """

    def __init__(
        self, parameters: Sequence[Tensor], lr: float, weight_decay: float = 0.0, decoupled: bool = False
    ) -> None:
        self.decoupled = decoupled
        fused = torch._fused_adamw_ if decoupled else torch._fused_adam_
        self._fused = partial(
            fused, lr=lr, weight_decay=weight_decay, beta1=BETA1, beta2=BETA2, eps=EPS, amsgrad=False, maximize=False
        )
        device = parameters[0].device
        one_type = len({value.dtype for value in parameters}) == 1
        on_cuda = device.type == "cuda" and is_compiled(device)
        self.flat = FlatParameters(parameters) if on_cuda and one_type else None
        if self.flat is not None:
            self._moments = torch.zeros_like(self.flat.value), torch.zeros_like(self.flat.value)
            self.exp_avg, self.exp_avg_sq = (self.flat.views(moment) for moment in self._moments)
            self._groups = [(own, self.flat.blocks(own, BLOCK)) for own in self.flat.groups(JOINED)]
            self._rates = torch.tensor([lr, weight_decay], dtype=torch.float64, device=device)
        else:
            self.exp_avg, self.exp_avg_sq = (
                [torch.zeros_like(value, memory_format=torch.contiguous_format) for value in parameters]
                for _ in range(2)
            )
        self.parameters = [value.detach() for value in parameters]
        self._steps = torch.zeros(len(parameters), device=device)
        self.steps = list(self._steps.unbind())

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """One step; a parameter without gradient stays as it is."""
        used = [i for i, gradient in enumerate(gradients) if gradient is not None]
        if self.flat is not None and len(used) == len(gradients):
            self._steps.add_(1)
            for group, blocks in self._groups:
                gradient_row = joined([gradient for i in group if (gradient := gradients[i]) is not None])
                adam_step(
                    self.flat.value, gradient_row, *self._moments, blocks, self._rates, self._steps,
                    BETA1, BETA2, EPS, self.decoupled, BLOCK,
                )  # fmt: skip
            return
        own = [gradient.contiguous() for gradient in gradients if gradient is not None]
        parts = self.parameters, self.exp_avg, self.exp_avg_sq, self.steps
        parameters, means, squares, steps = ([part[i] for i in used] for part in parts)
        torch._foreach_add_(steps, 1)
        self._fused(parameters, own, means, squares, [], steps)

    def state(self) -> dict[str, Tensor]:
        """The moments and step counts, as views that can be copied from and into."""
        parts = {"step": self.steps, "exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq}
        return {f"{i}.{name}": value for name, part in parts.items() for i, value in enumerate(part)}
