"""The response of random walks: a fixed polynomial in 1 − λ."""

import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter


class WalkFilter(SpectralFilter):
    r"""The fixed response :math:`g(\lambda) = \sum_{r=1}^{window} (1 - \lambda)^r`, the same for every head.

    Since :math:`I - L = D^{-1/2} A D^{-1/2}`, it sums walks of 1 to ``window`` steps. A window of 1 is the normalised
    adjacency itself, the response of a GCN.

    Args:
        heads: number of responses.
        window: the longest walk.

    Example:
        >>> WalkFilter(heads=1, window=3)(torch.tensor([0.0, 1.0, 2.0])).flatten().tolist()
        [3.0, 0.0, -1.0]
    """

    def __init__(self, heads: int, window: int = 1) -> None:
        super().__init__(heads)
        if window < 1:
            raise AsgatError(f"The window of a walk must be at least 1, but is {window}.")
        self.window = window

    def forward(self, frequency: Tensor) -> Tensor:
        step = 1.0 - frequency
        response = torch.zeros_like(step)
        for _ in range(self.window):  # Horner's rule
            response = step * (1.0 + response)
        return response.unsqueeze(-1).expand(-1, self.heads)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, window={self.window}"
