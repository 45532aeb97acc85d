"""Functions of feature rows as layers use them."""

from torch import Tensor

from asgat.kernels.sparse_features import SparseFeatures, matmul


def linear(x: Tensor | SparseFeatures, weight: Tensor, bias: Tensor) -> Tensor:
    """x W + b."""
    return matmul(x, weight) + bias


def by_copy(x: Tensor, copies: int) -> Tensor:
    """Rows [N, copies · F] of nodes as rows of their copies in a double cover, [copies · N, F]; nothing moves."""
    return x if copies == 1 else x.reshape(copies * x.size(0), x.size(1) // copies)


def by_node(x: Tensor) -> Tensor:
    """Rows [2 · N, F] of a double cover's copies as rows of the nodes, [N, 2 · F]."""
    return x.reshape(x.size(0) // 2, 2 * x.size(1))
