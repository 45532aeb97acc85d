"""The simple graph convolution."""

from torch import Tensor

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import Propagating, renormalised
from asgat.nn.pyg import SGConv


class SGC(Propagating):
    r"""The linear model of `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_.

    .. math:: Y = (\tilde D^{-1/2} \tilde A \tilde D^{-1/2})^K X W + b

    ``steps`` is K; dropout is on the input. XW is computed first: K products with as many columns as there are classes
    cost less than one with all features, and nothing is stored between epochs. Cost: O(N · in · out + K · E · out).
    """

    matrix = staticmethod(renormalised)

    def __init__(self, in_channels: int, out_channels: int, steps: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = SGConv(in_channels, out_channels, K=steps)
        self.dropout = dropout

    def reset_parameters(self) -> None:
        self.conv.reset_parameters()

    def run(self, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        out = linear(dropout(x, self.dropout, self.training), self.conv.lin.weight)
        for _ in range(self.conv.K):
            out = step.matmul(out)
        logits: Tensor = out + self.conv.lin.bias
        return logits
