"""A personalised PageRank with learned weights."""

import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter


class PageRankFilter(SpectralFilter):
    r"""The response :math:`g(\lambda) = \sum_{j=0}^{steps} \gamma_j (1 - \lambda)^j`, :math:`\gamma` learned per head.

    Since :math:`I - L = D^{-1/2} A D^{-1/2}`, :math:`\gamma_j` weighs walks of j steps. Initially they are those of a
    personalised PageRank, :math:`\gamma_j = \alpha (1 - \alpha)^j` and :math:`\gamma_{steps} = (1 - \alpha)^{steps}`: a
    low-pass response with :math:`g(0) = 1`, or, with :math:`\alpha = 1`, the identity.

    Args:
        heads: number of responses.
        steps: longest walk.
        alpha: probability of a walk to return to its start.

    Example:
        >>> response = PageRankFilter(heads=1, steps=2, alpha=0.5)(torch.tensor([0.0, 1.0, 2.0]))
        >>> response.flatten().round(decimals=3).tolist()
        [1.0, 0.5, 0.5]
    """

    def __init__(self, heads: int, steps: int = 10, alpha: float = 0.1) -> None:
        super().__init__(heads)
        if steps < 0:
            raise AsgatError(f"The steps of a walk must not be negative, but are {steps}.")
        if not 0.0 <= alpha <= 1.0:
            raise AsgatError(f"alpha is a probability, but is {alpha}.")
        self.steps, self.alpha = steps, alpha
        self.gamma = nn.Parameter(torch.empty(steps + 1, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            left = (1.0 - self.alpha) ** torch.arange(self.steps + 1, dtype=torch.float64)
            left[:-1] *= self.alpha
            self.gamma.copy_(left.unsqueeze(-1))

    def forward(self, frequency: Tensor) -> Tensor:
        walks = (1.0 - frequency).unsqueeze(-1) ** torch.arange(self.steps + 1, device=frequency.device)
        return walks @ self.gamma

    def extra_repr(self) -> str:
        return f"heads={self.heads}, steps={self.steps}, alpha={self.alpha:g}"
