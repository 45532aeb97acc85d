"""Functions of feature rows as layers use them: of a single run, or of stacked runs with a leading dimension more."""

import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.kernels.each_run import each_run
from asgat.kernels.sparse_features import SparseFeatures, matmul


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """x [N, F] plus a bias [F]; of stacked runs [R, N, F] and [R, F]."""
    return each_run(2, lambda own, shift: own + shift.unsqueeze(-2), x, bias)


def linear(x: Tensor | SparseFeatures, weight: Tensor, bias: Tensor) -> Tensor:
    """x W + b."""
    return add_bias(matmul(x, weight), bias)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Rows of x shifted and scaled to mean 0 and variance 1, times a weight [F], plus a bias [F]."""

    def normalised(own: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        if own.dim() == 2:
            return F.layer_norm(own, own.shape[-1:], scale, shift)
        return torch.addcmul(shift.unsqueeze(-2), F.layer_norm(own, own.shape[-1:]), scale.unsqueeze(-2))

    return each_run(2, normalised, x, weight, bias)


def gelu(x: Tensor) -> Tensor:
    return each_run(2, F.gelu, x)


def by_copy(x: Tensor, copies: int) -> Tensor:
    """Rows [N, copies · F] of nodes as rows of their copies in a double cover, [copies · N, F]; nothing moves."""
    return x if copies == 1 else x.reshape(*x.shape[:-2], copies * x.size(-2), x.size(-1) // copies)


def by_node(x: Tensor) -> Tensor:
    """Rows [2 · N, F] of a double cover's copies as rows of the nodes, [N, 2 · F]."""
    return x.reshape(*x.shape[:-2], x.size(-2) // 2, 2 * x.size(-1))
