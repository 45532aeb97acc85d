"""The filters of several runs as one."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.func import functional_call

from asgat.filters.mlp import MLPFilter, with_bias
from asgat.filters.spectral_filter import SpectralFilter


class StackedFilter(SpectralFilter):
    """The responses of filters that differ in their weights alone, side by side: runs become heads.

    An operator scores each head for itself, so that every operator serves several runs without knowing of them. In
    double precision, the precision of comparisons, the filters are evaluated one by one and rounded as they would be.

    Args:
        filter: one of the filters, for its form; its weights play no part.
        state: the filters' parameters and buffers by name, stacked, [runs, ...] each.

    Shapes:
        frequency [n] → response [n, runs · heads], run by run.
    """

    def __init__(self, filter: SpectralFilter, state: Mapping[str, Tensor]) -> None:
        self.runs = len(next(iter(state.values())))
        super().__init__(self.runs * filter.heads)
        self.form, self.state = (filter,), dict(state)  # in a tuple: its parameters are not this module's

    def reset_parameters(self) -> None:
        """Nothing to draw: the weights belong to the runs' models."""

    def forward(self, frequency: Tensor) -> Tensor:
        if frequency.dtype == torch.float64:
            return torch.cat(self._one_by_one(frequency), dim=1)
        (form,) = self.form
        if isinstance(form, MLPFilter):
            response = self._perceptron(form, frequency)
        else:
            response = torch.vmap(lambda state: functional_call(form, state, (frequency,)))(self.state)
        return response.transpose(0, 1).flatten(1)

    def transformed(self, frequency: Tensor, matrix: Tensor) -> Tensor:
        (form,) = self.form
        if isinstance(form, MLPFilter) and form.exact_bias:
            bias = self.state[f"layers.{len(form.layers) - 1}.bias"]
            response = self._perceptron(form, frequency, shifted=False)
            return with_bias(response.transpose(1, 2) @ matrix, bias).flatten(0, 1)
        if frequency.dtype == torch.float64:
            return torch.cat([response.t() @ matrix for response in self._one_by_one(frequency)])
        return super().transformed(frequency, matrix)

    def _one_by_one(self, frequency: Tensor) -> list[Tensor]:
        """Responses to the last bit as each filter gives them.

        Where a response is shifted as a whole and no node attends to itself, the gradient is zero but for rounding,
        which Adam and weight decay blow up to steps of full size within five epochs: a run and its double then part.
        """
        states = zip(*(value.unbind() for value in self.state.values()), strict=True)
        return [functional_call(self.form[0], dict(zip(self.state, own, strict=True)), (frequency,)) for own in states]

    def _perceptron(self, form: MLPFilter, frequency: Tensor, shifted: bool = True) -> Tensor:
        """As :class:`MLPFilter` has it, in batched products: half the time of mapping it over the runs.

        Not ``shifted``, the last layer's bias is left out.
        """
        hidden = (frequency.unsqueeze(-1) - 1.0).expand(self.runs, -1, -1)
        last = len(form.layers) - 1
        for i in range(last + 1):
            weight, bias = self.state[f"layers.{i}.weight"], self.state[f"layers.{i}.bias"]
            if i == last and not shifted:
                return torch.bmm(hidden, weight.transpose(1, 2))
            hidden = torch.baddbmm(bias.unsqueeze(1), hidden, weight.transpose(1, 2))
            if i < last:
                hidden = torch.relu(hidden)
        response: Tensor = form.activation(hidden)
        return response

    def extra_repr(self) -> str:
        return f"runs={self.runs}, heads={self.heads}"
