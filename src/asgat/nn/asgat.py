"""The model: spectral attention layers, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.filters import MLPFilter, PageRankFilter, SpectralFilter
from asgat.graph import Graph
from asgat.kernels.each_run import elu
from asgat.kernels.sparse_features import SparseFeatures, dropout
from asgat.nn.asgat_conv import ASGATConv, OperatorFactory, product
from asgat.nn.attention import SparseAttention, attend, filtered
from asgat.nn.layer_cache import LayerCache
from asgat.spectral import SpectralOperator
from asgat.spectral.certificate import Certificate

Elu = Literal["every", "hidden", "last", "none"]


class ASGAT(nn.Module):
    r"""The adaptive spectral graph attention network of `"Beyond Low-Pass Filters: Adaptive Feature Propagation on
    Graphs" <https://arxiv.org/abs/2103.14187>`_: :class:`ASGATConv` layers, hidden ones with concatenated heads.

    Args:
        in_channels: number of input features.
        hidden_channels: size of each hidden layer, per head.
        out_channels: number of classes.
        num_layers: number of layers; the paper has two.
        heads: heads of each hidden layer.
        out_heads: heads of the last layer, averaged.
        k: nodes each node attends to per head; None for all it reaches.
        dropout: on inputs and attention weights of every layer.
        elu: where the ELU stands: after ``"every"`` layer (the paper), after the ``"last"`` only (the authors'
            program), after the ``"hidden"`` ones (the usual way), or nowhere (``"none"``).
        root: add :math:`x_v W_{self}` in every layer (not in the paper).
        mix: learn how much each head of a layer counts (not in the paper).
        gain: factor of what is attended to, beside the root term (not in the paper).
        jump: add :math:`x_v W_{jump}`, a map of the input, to the last layer's output (not in the paper).
        propagate: pass the output through one more learned response, :math:`U g(\Lambda) U^\top`, over the whole
            spectrum: a :class:`~asgat.filters.PageRankFilter`, linear in the number of edges (not in the paper).
        alpha: of that response at the start; 1 for one that changes nothing.
        num_nodes: number of further columns of x, the adjacency rows that :func:`with_adjacency` puts there. Their
            weights belong to the nodes of one graph, so that another graph is refused (not in the paper).
        filter, operator, order, include_unreachable, cached: as for :class:`ASGATConv`.

    Shapes:
        x [N, in_channels] and a graph → logits [N, out_channels]

    Example:
        >>> import torch
        >>> model = ASGAT(8, 16, 3, heads=4, k=5)
        >>> model(torch.randn(5, 8), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
        torch.Size([5, 3])
    """

    stackable = True  # see asgat.nn.stacking

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        heads: int = 8,
        out_heads: int = 1,
        k: int | None = 10,
        dropout: float = 0.0,
        *,
        elu: Elu = "every",
        root: bool = False,
        mix: bool = False,
        gain: float = 1.0,
        jump: bool = False,
        propagate: bool = False,
        alpha: float = 0.1,
        num_nodes: int | None = None,
        filter: Callable[[int], SpectralFilter] = MLPFilter,
        operator: str | OperatorFactory = "chebyshev",
        order: int = 15,
        include_unreachable: bool = False,
        cached: bool = False,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise AsgatError(f"num_layers must be at least 1, but is {num_layers}.")
        if elu not in ("every", "hidden", "last", "none"):
            raise AsgatError(f"elu must be every, hidden, last or none, not {elu!r}.")
        self.elu, self.num_nodes, self.dropout = elu, num_nodes, dropout
        self.layers = nn.ModuleList()
        width = in_channels + (num_nodes or 0)
        self.jump_weight = nn.Parameter(torch.empty(width, out_channels)) if jump else None
        for layer in range(num_layers):
            last = layer == num_layers - 1
            conv = ASGATConv(
                width,
                out_channels if last else hidden_channels,
                out_heads if last else heads,
                concat=not last,
                k=k,
                dropout=dropout,
                root=root,
                mix=mix,
                gain=gain,
                filter=filter,
                operator=operator,
                order=order,
                include_unreachable=include_unreachable,
                cached=cached and layer == 0,  # the other layers are handed the first one's operator
            )
            self.layers.append(conv)
            width = heads * hidden_channels
        if self.jump_weight is not None:
            nn.init.xavier_uniform_(self.jump_weight)
        self._cache = LayerCache()
        self.propagation = PageRankFilter(1, alpha=alpha) if propagate else None

    @property
    def convs(self) -> list[ASGATConv]:
        """The layers, by their type."""
        return cast(list[ASGATConv], list(self.layers))

    @torch.no_grad()
    def certificates(self, operator: SpectralOperator) -> list[Certificate]:
        """How far each layer's attention on this graph can be from the paper's."""
        attentions = [attend(operator, conv.filter, conv.k, conv.include_unreachable, True) for conv in self.convs]
        return [attention.certificate for attention in attentions if attention.certificate is not None]

    def reset_parameters(self) -> None:
        for layer in self.convs:
            layer.reset_parameters()
        if self.jump_weight is not None:
            nn.init.xavier_uniform_(self.jump_weight)
        if self.propagation is not None:
            self.propagation.reset_parameters()

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor | Graph | SpectralOperator,
        edge_weight: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Tensor | tuple[Tensor, list[SparseAttention]]:
        """Logits, and with ``return_attention_weights`` the attention of every layer. See :meth:`ASGATConv.forward`."""
        convs = self.convs
        if self.num_nodes is not None and x.size(0) != self.num_nodes:
            raise AsgatError(
                f"This model has weights for the {self.num_nodes} nodes of the graph it was trained on; it cannot run "
                f"on one with {x.size(0)}. Train with adjacency=false for a model of any graph."
            )
        operator = convs[0].operator_for(x, edge_index, edge_weight)
        attentions = []
        hidden: Tensor | SparseFeatures = x
        for i, layer in enumerate(convs):
            out = layer(hidden, operator, return_attention_weights=return_attention_weights)
            if return_attention_weights is not None:
                out, attention = out
                attentions.append(attention)
            last = i == len(convs) - 1
            if last and self.jump_weight is not None:
                kept = dropout(x, self.dropout, self.training)
                jump = self.jump_weight.squeeze(0) if convs[0].runs == 1 else self.jump_weight
                out = out + product(kept, jump, operator)[..., : out.size(-2), :]
            if self.elu == "every" or self.elu == ("last" if last else "hidden"):
                out = elu(out)
            hidden = out
        if self.propagation is not None:
            out = filtered(operator, self._cache.filter_of(self.propagation, convs[0].runs), out)
        return out if return_attention_weights is None else (out, attentions)


def with_adjacency(x: npt.NDArray[np.float32], graph: Graph) -> sp.csr_array:
    r"""Features [N, F + N]: beside a node's own, its row of :math:`D^{-1/2} A D^{-1/2}`, as LINKX takes that of A."""
    return sp.csr_array(sp.hstack([sp.csr_array(x), graph.normalised_adjacency], dtype=np.float32))
