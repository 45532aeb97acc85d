"""Predictions, then personalised PageRank."""

from typing import Any

from torch import Tensor

from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.baselines.mlp import MLP
from asgat.nn.baselines.propagation import Propagating, renormalised


class APPNP(Propagating):
    r"""`"Predict then Propagate: Graph Neural Networks meet Personalized PageRank"
    <https://arxiv.org/abs/1810.05997>`_.

    .. math::
        Z^{(0)} = H = \mathrm{MLP}(X), \qquad
        Z^{(k+1)} = (1 - \alpha) \tilde D^{-1/2} \tilde A \tilde D^{-1/2} Z^{(k)} + \alpha H

    Arguments of the :class:`~asgat.nn.baselines.mlp.MLP`, and

    Args:
        dropout: on the input of every layer, and in every step on the entries of the matrix.
        steps: number K of steps.
        alpha: restart probability of the walk.

    Cost: the MLP's and O(K · E · out).
    """

    matrix = staticmethod(renormalised)

    def __init__(self, *sizes: Any, steps: int = 10, alpha: float = 0.1, **shared: Any) -> None:
        super().__init__()
        self.mlp = MLP(*sizes, **shared)
        self.dropout, self.steps, self.alpha = self.mlp.dropout, steps, alpha

    def reset_parameters(self) -> None:
        self.mlp.reset_parameters()

    def run(self, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        start: Tensor = self.mlp(x)
        out = start
        for _ in range(self.steps):
            propagated = step.dropout(self.dropout, self.training).matmul(out)
            out = (1.0 - self.alpha) * propagated + self.alpha * start
        return out
