"""The network of ARMA filters."""

from operator import attrgetter
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import LayerStack
from asgat.nn.pyg import ARMAConv


class ARMANet(LayerStack):
    r"""Recursive filters of `"Graph Neural Networks with Convolutional ARMA Filters"
    <https://arxiv.org/abs/1901.01343>`_, averaged over parallel stacks.

    .. math::
        H^{(t+1)}_k = \sigma\big(D^{-1/2} A D^{-1/2} H^{(t)}_k W_k + X V_k + b_k\big), \qquad
        H' = \frac{1}{K} \sum_{k=1}^K H^{(T)}_k

    σ is a ReLU in hidden layers and the identity in the last. The weights are shared over the iterations, except for
    the first, which maps X itself. Cost per layer: O(stacks · (N · in · out + T · E · out)).

    Arguments as in :class:`~asgat.nn.baselines.propagation.LayerStack`, except that ``dropout`` is between layers, and

    Args:
        stacks: K.
        depth: iterations T of each stack.
        skip_dropout: on X where it enters again.
    """

    matrix = attrgetter("normalised_adjacency")

    @staticmethod
    def make_layer(
        in_channels: int, out_channels: int, stacks: int = 2, depth: int = 1, skip_dropout: float = 0.75
    ) -> ARMAConv:
        layer = ARMAConv(in_channels, out_channels, stacks, depth, shared_weights=True, dropout=skip_dropout)
        if depth == 1:  # nothing is iterated
            layer.register_parameter("weight", None)
        return layer

    def activation(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)  # the ReLU is inside the layer

    def apply_layer(self, layer: Any, x: Tensor | SparseFeatures, step: SparseFeatures) -> Tensor:
        out = _per_stack(x, layer.init_weight)
        for t in range(layer.num_layers):
            if t > 0:
                out = torch.einsum("nki,kio->nko", out, layer.weight[0])
            skip = _per_stack(dropout(x, layer.dropout, self.training), layer.root_weight[0])
            out = step.matmul(out.flatten(1)).view_as(out) + skip + layer.bias[0, :, 0]
            if layer is not self.layers[-1]:
                out = torch.relu(out)
        return out.mean(dim=1)


def _per_stack(x: Tensor | SparseFeatures, weight: Tensor) -> Tensor:
    """Features times a weight [stacks, in, out] of each stack, [N, stacks, out]."""
    stacks, channels, out = weight.shape
    return linear(x, weight.transpose(1, 2).reshape(stacks * out, channels)).view(-1, stacks, out)
