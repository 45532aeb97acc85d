"""The paper's learned filter."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.errors import AsgatError, suggest
from asgat.filters.spectral_filter import SpectralFilter
from asgat.kernels.filter_mlp import fits_one_kernel, mlp_coefficients

OUTPUT_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"none": nn.Identity, "relu": nn.ReLU, "tanh": nn.Tanh}


class MLPFilter(SpectralFilter):
    r"""A multi-layer perceptron :math:`g(\lambda) = \mathrm{MLP}(\lambda) \in \mathbb{R}^{heads}` for all heads.

    Each hidden layer is a linear map and a ReLU. The input is centred, :math:`\lambda - 1`, so that the kinks of the
    first layer fall inside the spectrum, and weights have a variance-preserving initial scale, so that every head
    starts with another slope, low-pass or high-pass. An output ReLU (the authors' program has one) can die and leave a
    head without gradient: it is off by default, and with it the initial responses are positive on the whole spectrum.

    Args:
        heads: number of responses.
        hidden: sizes of the hidden layers; the paper has two.
        output_activation: ``"none"``, ``"relu"`` or ``"tanh"``.
        exact_bias: with no output activation, add the last bias to the coefficient of order 0, see
            :meth:`transformed`.

    Shapes:
        frequency [n] → response [n, heads]; O(n · Σ sizes) time.

    Example:
        >>> MLPFilter(heads=3)(torch.linspace(0, 2, 5)).shape
        torch.Size([5, 3])
    """

    def __init__(
        self, heads: int, hidden: Sequence[int] = (64, 64), output_activation: str = "none", exact_bias: bool = False
    ) -> None:
        super().__init__(heads)
        if output_activation not in OUTPUT_ACTIVATIONS:
            known = suggest(output_activation, list(OUTPUT_ACTIVATIONS))
            raise AsgatError(f"Unknown output activation {output_activation!r}. {known}")
        if any(size < 1 for size in hidden):
            raise AsgatError(f"Hidden sizes of the filter must be at least 1, but are {list(hidden)}.")
        self.output_activation = output_activation
        self.exact_bias = exact_bias and output_activation == "none"
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise([1, *hidden, heads]))
        self.activation = OUTPUT_ACTIVATIONS[output_activation]()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        *hidden, last = cast(Iterable[nn.Linear], self.layers)
        for layer in hidden:
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
            nn.init.uniform_(layer.bias, -1.0, 1.0)
        nn.init.xavier_uniform_(last.weight)
        nn.init.zeros_(last.bias)
        if self.output_activation == "relu":
            with torch.no_grad():
                lowest = self._linear_response(torch.linspace(0.0, 2.0, 65).to(last.bias)).amin(dim=0)
                last.bias.copy_((0.1 - lowest).clamp(min=1.0))

    def _hidden(self, frequency: Tensor) -> Tensor:
        hidden = frequency.unsqueeze(-1) - 1.0
        *layers, _ = cast(Iterable[nn.Linear], self.layers)  # a slice would build a ModuleList in every call
        for layer in layers:
            hidden = torch.relu(F.linear(hidden, layer.weight, layer.bias))
        return hidden

    def _linear_response(self, frequency: Tensor) -> Tensor:
        last = cast(nn.Linear, self.layers[-1])
        return F.linear(self._hidden(frequency), last.weight, last.bias)

    def forward(self, frequency: Tensor) -> Tensor:
        response = self._linear_response(frequency)
        return response if self.output_activation == "none" else cast(Tensor, self.activation(response))

    def transformed(self, frequency: Tensor, matrix: Tensor) -> Tensor:
        r"""See :meth:`SpectralFilter.transformed`; with ``exact_bias`` the matrix must interpolate by Chebyshev
        polynomials.

        The last bias shifts the whole response, which changes its coefficient of order 0 only. Where no node attends to
        itself, that coefficient has no gradient. Were the bias sampled with the rest, its gradient would be rounding,
        perhaps 1e-13, which Adam with weight decay multiplies by lr · weight_decay / ε, a thousand, in every epoch:
        two runs that differ in their last bit would diverge. Added to the coefficient, the bias stays zero.
        """
        if (own := self._for_one_kernel(frequency)) is not None:
            return mlp_coefficients(frequency, matrix, self.output_activation, self.exact_bias, own)
        if not self.exact_bias:
            return super().transformed(frequency, matrix)
        last = cast(nn.Linear, self.layers[-1])
        coefficients = F.linear(self._hidden(frequency), last.weight).t() @ matrix
        first = coefficients[:, :1] + last.bias.unsqueeze(1)
        return torch.cat([first, coefficients[:, 1:]], dim=1)

    def _for_one_kernel(self, frequency: Tensor) -> list[Tensor] | None:
        """Weights and biases, if one kernel serves them; a subclass may compute something else."""
        layers = self._weights_and_biases()
        plain = type(self)._hidden is MLPFilter._hidden
        return layers if plain and fits_one_kernel(frequency, self.output_activation, layers) else None

    def _weights_and_biases(self) -> list[Tensor]:
        return [value for layer in cast(Iterable[nn.Linear], self.layers) for value in (layer.weight, layer.bias)]

    def extra_repr(self) -> str:
        return f"heads={self.heads}, output_activation={self.output_activation!r}"
