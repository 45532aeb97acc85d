"""The heat kernel, a low-pass filter."""

import math

import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter


class HeatFilter(SpectralFilter):
    r"""The heat kernel :math:`g(\lambda) = e^{-s \lambda}` with the same initial scale :math:`s > 0` for every head.

    Args:
        heads: number of responses.
        scale: the scale s; a larger one reaches farther.
        learned: learn s for every head, as its logarithm, which keeps it positive.

    Example:
        >>> HeatFilter(heads=1, scale=1.0)(torch.tensor([0.0])).item()
        1.0
    """

    log_scale: Tensor

    def __init__(self, heads: int, scale: float = 1.0, learned: bool = False) -> None:
        super().__init__(heads)
        if not (scale > 0 and math.isfinite(scale)):
            raise AsgatError(f"The heat kernel's scale must be a positive number, but is {scale}.")
        self.scale, self.learned = scale, learned
        if learned:
            self.log_scale = nn.Parameter(torch.empty(heads))
        else:
            self.register_buffer("log_scale", torch.empty(heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.log_scale, math.log(self.scale))

    def forward(self, frequency: Tensor) -> Tensor:
        return torch.exp(-frequency.unsqueeze(-1) * self.log_scale.exp())

    @property
    def fixed(self) -> bool:
        return not self.learned

    def extra_repr(self) -> str:
        return f"heads={self.heads}, scale={self.scale}, learned={self.learned}"
