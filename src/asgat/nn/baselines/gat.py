"""The graph attention network."""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.kernels.sparse_features import SparseFeatures, dropout, linear
from asgat.nn.baselines.propagation import LayerStack, renormalised
from asgat.nn.pyg import GATConv


class GAT(LayerStack):
    r"""Attention over neighbours of `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_: PyG's
    ``GATConv`` with ELU and dropout. Every node attends to itself too; edge weights are not used.

    Arguments as in :class:`~asgat.nn.baselines.propagation.LayerStack` with ``hidden_channels`` per head, and

    Args:
        heads: attention heads of hidden layers, concatenated.
        out_heads: attention heads of the last layer, averaged.
        attention_dropout: on the attention weights.

    Cost per layer: O(N · in · heads · out + E · heads · out) time, O(E · heads · out) memory.
    """

    matrix = staticmethod(renormalised)
    activation = staticmethod(F.elu)
    default_dropout = 0.6

    def make_layers(  # type: ignore[override]
        self, sizes: list[int], heads: int = 8, out_heads: int = 1, attention_dropout: float = 0.6
    ) -> Iterator[GATConv]:
        shared: dict[str, Any] = {"dropout": attention_dropout, "add_self_loops": False}
        width, *hidden, out_channels = sizes
        for channels in hidden:
            yield GATConv(width, channels, heads, **shared)
            width = heads * channels
        yield GATConv(width, out_channels, out_heads, concat=False, **shared)

    def run(self, x: Tensor | SparseFeatures, looped: SparseFeatures) -> Tensor:
        nodes = torch.arange(looped.size(0), device=looped.device)
        target = nodes.repeat_interleave(looped.indptr.diff(), output_size=looped.index.numel())
        return super().run(x, torch.stack([looped.index, target]))

    def apply_layer(self, layer: Any, x: Tensor | SparseFeatures, edges: Tensor) -> Tensor:
        """The layer's ``forward``, except that the features may be sparse."""
        mapped = linear(dropout(x, self.dropout, self.training), layer.lin.weight)
        mapped = mapped.view(-1, layer.heads, layer.out_channels)
        scores = (mapped * layer.att_src).sum(dim=-1), (mapped * layer.att_dst).sum(dim=-1)
        weight = layer.edge_updater(edges, alpha=scores, edge_attr=None, size=None)
        out = layer.propagate(edges, x=(mapped, mapped), alpha=weight, size=None)
        out = out.flatten(1) if layer.concat else out.mean(dim=1)
        biased: Tensor = out + layer.bias
        return biased
