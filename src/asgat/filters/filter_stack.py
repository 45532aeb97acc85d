"""The filters of several runs as one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from asgat.filters.spectral_filter import SpectralFilter, Transformed
from asgat.kernels.each_run import aligned

Module = TypeVar("Module", bound=nn.Module)


class FilterStack(SpectralFilter):
    """The responses of R runs side by side, from one filter whose parameters and buffers are stacked, [R, ...].

    Runs become heads: every operator serves several runs without knowing of them. On the CPU each run's responses are
    computed as if it were alone, so that they do not depend on the other runs to the last bit; on other devices in
    batched products.

    Args:
        filter: the filter. It remains the owner of its parameters.
        runs: R.

    Shapes:
        frequency [n] → response [n, R · heads], run by run.
    """

    def __init__(self, filter: SpectralFilter, runs: int) -> None:
        super().__init__(runs * filter.heads)
        self.runs = runs
        self._owner = (filter,)  # in a tuple: its parameters are not this module's
        self._single = tuple(_shell(filter) for _ in range(runs))
        self._places = [  # name, the dictionary that holds the stacked tensor, and where each run's part goes
            (name, vars(owner)[kind], [vars(single)[kind] for single in singles])
            for owner, *singles in zip(filter.modules(), *(single.modules() for single in self._single), strict=True)
            for kind in ("_parameters", "_buffers")
            for name, value in vars(owner)[kind].items()
            if value is not None
        ]

    @property
    def filter(self) -> SpectralFilter:
        return self._owner[0]

    def each(self) -> tuple[SpectralFilter, ...]:
        """The filter of every run, always the same objects; their parameters are views of the stacked ones."""
        for name, stacked, singles in self._places:
            value = stacked[name]
            each = value.unbind() if self.runs > 1 else (value.squeeze(0),)
            for own, part in zip(singles, each, strict=True):
                own[name] = aligned(part) if part.device.type == "cpu" else part
        return self._single

    def forward(self, frequency: Tensor) -> Tensor:
        if frequency.device.type == "cpu":
            return torch.cat([single(frequency) for single in self.each()], dim=1)
        return self._batched(self.filter, "", frequency).transpose(0, 1).flatten(1)

    def transformed(self, frequency: Tensor, matrix: Tensor) -> Tensor:
        if frequency.device.type == "cpu":
            return torch.cat([single.transformed(frequency, matrix) for single in self.each()])
        return self._batched(Transformed(self.filter), "filter", frequency, matrix).flatten(0, 1)

    def transformed_in_double(self, frequency: Tensor, matrix: Tensor) -> Tensor:
        return torch.cat([single.transformed_in_double(frequency, matrix) for single in self.each()])

    def _batched(self, module: nn.Module, prefix: str, *inputs: Tensor) -> Tensor:
        state = {**dict(self.filter.named_parameters(prefix)), **dict(self.filter.named_buffers(prefix))}
        if not state:
            return module(*inputs).expand(self.runs, -1, -1)
        call: Callable[..., Tensor] = torch.vmap(lambda own: functional_call(module, own, inputs))
        return call(state)

    @property
    def fixed(self) -> bool:
        return self.filter.fixed

    def reset_parameters(self) -> None:
        """Nothing to draw: the parameters belong to the filter."""

    def extra_repr(self) -> str:
        return f"runs={self.runs}, heads={self.heads}"


def _shell(module: Module) -> Module:
    """A copy that shares everything, but can be given other parameters and buffers."""
    shell = copy.copy(module)
    children = {name: None if child is None else _shell(child) for name, child in module._modules.items()}
    vars(shell).update(_parameters=dict(module._parameters), _buffers=dict(module._buffers), _modules=children)
    return shell
