"""The network of ARMA filters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import ARMAConv

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import Edges, propagation, symmetric


class ARMANet(nn.Module):
    r"""Recursive filters of `"Graph Neural Networks with Convolutional ARMA Filters"
    <https://arxiv.org/abs/1901.01343>`_, averaged over parallel stacks.

    .. math::
        H^{(t+1)}_k = \sigma\big(D^{-1/2} A D^{-1/2} H^{(t)}_k W_k + X V_k + b_k\big), \qquad
        H' = \frac{1}{K} \sum_{k=1}^K H^{(T)}_k

    σ is a ReLU, and absent in the last layer. The weights are shared over the iterations, except for the first, which
    maps X itself.

    Args:
        in_channels: number of input features.
        hidden_channels: size of each hidden layer.
        out_channels: number of classes.
        num_layers: number of layers.
        dropout: between layers.
        stacks: K.
        depth: iterations T of each stack.
        skip_dropout: on X where it enters again.

    Cost per layer: O(stacks · (N · in · out + T · E · out)).
    """

    matrix = staticmethod(symmetric)

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        stacks: int = 2,
        depth: int = 1,
        skip_dropout: float = 0.75,
    ) -> None:
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(
            ARMAConv(a, b, num_stacks=stacks, num_layers=depth, shared_weights=True, dropout=skip_dropout)
            for a, b in pairwise(sizes)
        )
        if depth == 1:  # nothing is iterated
            for layer in self.layers:
                layer.register_parameter("weight", None)
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | SparseFeatures, edge_index: Edges, edge_weight: Tensor | None = None) -> Tensor:
        step = propagation(x, edge_index, edge_weight, self.matrix)
        for layer in self.layers[:-1]:
            x = F.dropout(self._filter(layer, x, step, torch.relu), self.dropout, self.training)
        return self._filter(self.layers[-1], x, step, lambda out: out)

    def _filter(self, layer: Any, x: Tensor | SparseFeatures, step: SparseFeatures, act: Any) -> Tensor:
        out = _per_stack(x, layer.init_weight)
        for t in range(layer.num_layers):
            if t > 0:
                out = torch.einsum("nki,kio->nko", out, layer.weight[0])
            skip = _per_stack(dropout(x, layer.dropout, self.training), layer.root_weight[0])
            out = act(step.matmul(out.flatten(1)).view_as(out) + skip + layer.bias[0, :, 0])
        return out.mean(dim=1)


def _per_stack(x: Tensor | SparseFeatures, weight: Tensor) -> Tensor:
    """Features times a weight [stacks, in, out] of each stack, [N, stacks, out]."""
    stacks, channels, out = weight.shape
    return linear(x, weight.transpose(1, 2).reshape(stacks * out, channels)).view(-1, stacks, out)
