"""Predictions, then PageRank with learned weights."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.baselines.mlp import MLP
from asgat.nn.baselines.propagation import Propagating, renormalised


class GPRGNN(Propagating):
    r"""`"Adaptive Universal Generalized PageRank Graph Neural Network" <https://arxiv.org/abs/2006.07988>`_.

    .. math:: Z = \sum_{k=0}^{K} \gamma_k (\tilde D^{-1/2} \tilde A \tilde D^{-1/2})^k \, \mathrm{MLP}(X)

    The weights start as those of personalised PageRank, :math:`\gamma_k = \alpha (1 - \alpha)^k` and
    :math:`\gamma_K = (1 - \alpha)^K`, and are learned; they may become negative.

    Arguments of the :class:`~asgat.nn.baselines.mlp.MLP`, and

    Args:
        steps: number K of steps.
        alpha: of the initial weights; 1 is the MLP alone, 0 the last step alone.
        propagation_dropout: on the output of the MLP.

    Cost: the MLP's and O(K · E · out).
    """

    matrix = staticmethod(renormalised)

    def __init__(
        self, *sizes: Any, steps: int = 10, alpha: float = 0.1, propagation_dropout: float = 0.5, **shared: Any
    ) -> None:
        super().__init__()
        self.mlp = MLP(*sizes, **shared)
        self.gamma = nn.Parameter(torch.empty(steps + 1))
        self.steps, self.alpha, self.propagation_dropout = steps, alpha, propagation_dropout
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.mlp.reset_parameters()
        start = [self.alpha * (1.0 - self.alpha) ** k for k in range(self.steps)]
        self.gamma.copy_(torch.tensor([*start, (1.0 - self.alpha) ** self.steps]))

    def run(self, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        propagated = F.dropout(self.mlp(x), self.propagation_dropout, self.training)
        out: Tensor = self.gamma[0] * propagated
        for gamma in self.gamma[1:]:
            propagated = step.matmul(propagated)
            out = out + gamma * propagated
        return out
