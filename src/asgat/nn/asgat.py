"""The model: spectral attention layers, one after the other."""

from collections.abc import Iterable
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.filters import PageRankFilter
from asgat.graph import Graph
from asgat.kernels.elu import elu as elu_unit
from asgat.kernels.sparse_features import dropout, matmul
from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.attention import SparseAttention, filtered
from asgat.nn.attention_model import AttentionModel, check_nodes
from asgat.nn.operator_builder import Features, GraphLike
from asgat.nn.rows import linear
from asgat.spectral import SpectralOperator

Elu = Literal["every", "hidden", "last", "none"]


class ASGAT(AttentionModel):
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
        elu: where the ELU is applied: after ``"every"`` layer (the paper), after the ``"last"`` only (the authors'
            program), after the ``"hidden"`` ones (the usual way), or nowhere (``"none"``).
        linear: make the last layer a linear map of every node alone, :math:`h_v W + b`. With two layers a single
            attention layer remains, as in the paper's frequency ablation.
        jump: add :math:`x_v W_{jump}`, a map of the input, to the last layer's output (not in the paper).
        propagate: pass the output through one more learned response, :math:`U g(\Lambda) U^\top`, over the whole
            spectrum: a :class:`~asgat.filters.PageRankFilter`, linear in the number of edges (not in the paper).
        alpha: of that response at the start; 1 for one that changes nothing.
        num_nodes: number of further columns of x, the adjacency rows that :func:`with_adjacency` appends. Their
            weights belong to the nodes of one graph, so that another graph is refused (not in the paper).
        directed: use the direction of edges, by the double cover: see :class:`ASGATConv` (not in the paper).
        cached: keep the operator built from the first edges seen, for training on one graph.
        options: of every attention layer, see :class:`ASGATConv`: ``bias``, ``root``, ``mix``, ``gain``, ``filter``,
            ``operator``, ``order``, ``include_unreachable``.

    Shapes:
        x [N, in_channels] and a graph → logits [N, out_channels]

    Example:
        >>> import torch
        >>> model = ASGAT(8, 16, 3, heads=4, k=5)
        >>> model(torch.randn(5, 8), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
        torch.Size([5, 3])
    """

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
        linear: bool = False,
        jump: bool = False,
        propagate: bool = False,
        alpha: float = 0.1,
        num_nodes: int | None = None,
        directed: bool = False,
        cached: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if num_layers < 1 + linear:
            before = " before the linear one" if linear else ""
            raise AsgatError(f"num_layers must be at least {1 + linear}, but is {num_layers}: one attends{before}.")
        if elu not in ("every", "hidden", "last", "none"):
            raise AsgatError(f"elu must be every, hidden, last or none, not {elu!r}.")
        self.elu, self.num_nodes, self.dropout, self.directed = elu, num_nodes, dropout, directed
        self.layers = nn.ModuleList()
        copies = 2 if directed else 1
        width = in_channels + copies * (num_nodes or 0)
        self.jump_weight = nn.Parameter(torch.empty(width, out_channels)) if jump else None
        for index in range(num_layers):
            last = index == num_layers - 1
            if last and linear:
                self.layers.append(nn.Linear(width, out_channels))
                break
            conv = ASGATConv(
                width,
                out_channels if last else hidden_channels,
                out_heads if last else heads,
                concat=not last,
                k=k,
                dropout=dropout,
                directed=directed,
                cached=cached and index == 0,  # the other layers are given the first one's operator
                **options,
            )
            self.layers.append(conv)
            width = copies * heads * hidden_channels
        if self.jump_weight is not None:
            nn.init.xavier_uniform_(self.jump_weight)
        self.propagation = PageRankFilter(1, alpha=alpha) if propagate else None

    @property
    def convs(self) -> list[ASGATConv]:
        return [layer for layer in self.layers if isinstance(layer, ASGATConv)]

    def reset_parameters(self) -> None:
        for layer in cast(Iterable[ASGATConv | nn.Linear], self.layers):
            layer.reset_parameters()
        if self.jump_weight is not None:
            nn.init.xavier_uniform_(self.jump_weight)
        if self.propagation is not None:
            self.propagation.reset_parameters()

    def forward(
        self,
        x: Features,
        edge_index: GraphLike,
        edge_weight: Tensor | None = None,
        return_attention_weights: bool = False,
    ) -> Tensor | tuple[Tensor, list[SparseAttention]]:
        """Logits, or ``(logits, attentions)`` with the attention of every layer if ``return_attention_weights``.

        The other arguments are those of :meth:`ASGATConv.forward`; :meth:`certificates` bounds the attention's error.
        """
        operator = self.operator_for(x, edge_index, edge_weight)
        check_nodes(operator, self.directed, self.num_nodes)
        attentions = self.attentions(operator)
        hidden: Features = x
        for index in range(len(self.layers)):
            attention = attentions[index] if index < len(attentions) else None
            after = 0.0 if index == len(self.layers) - 1 else self.dropout
            out = hidden = self.apply_layer(
                index, hidden, operator, x, attention, input_dropped=index > 0, next_dropout=after
            )
        if self.propagation is not None:
            signal = out.repeat_interleave(2, dim=-2) if self.directed else out
            out = filtered(operator, self.propagation, signal)
            if self.directed:
                out = 0.5 * (out[0::2] + out[1::2])
        return (out, attentions) if return_attention_weights else out

    def apply_layer(
        self,
        index: int,
        hidden: Features,
        operator: SpectralOperator,
        x: Features | None = None,
        attention: SparseAttention | None = None,
        *,
        input_dropped: bool = False,
        next_dropout: float = 0.0,
    ) -> Tensor:
        """The output of one layer, its activation included, from that of the layer before it, or the features.

        ``x`` are the features, which a model with ``jump`` adds to the last layer. The other arguments are those of
        :meth:`ASGATConv.forward`.
        """
        layer, last = self.layers[index], index == len(self.layers) - 1
        elu, jump = self.elu in ("every", "last" if last else "hidden"), self.jump_weight if last else None
        if isinstance(layer, nn.Linear):
            kept = hidden if input_dropped else dropout(hidden, self.dropout, self.training)
            out = linear(kept, layer.weight.mT, layer.bias)
        else:
            then = {"elu": elu and jump is None, "next_dropout": next_dropout}
            out = layer(hidden, operator, attention=attention, input_dropped=input_dropped, **then)
            if jump is None:
                return cast(Tensor, out)
        if jump is not None:
            assert x is not None, "a jump needs the features"
            kept = dropout(x, self.dropout, self.training)
            out = out + matmul(kept, jump)
        return elu_unit(out) if elu else out


def with_adjacency(x: npt.NDArray[np.float32], graph: Graph) -> sp.csr_array:
    r"""Features [N, F + N]: after a node's own, its row of :math:`D^{-1/2} A D^{-1/2}`, as LINKX takes that of A.

    Of a directed graph [N, F + 2N]: at 2u + 1 the edge to u, at 2u that from u, both as in the double cover.
    """
    return append_adjacency(x, graph.spectral_graph.normalised_adjacency)


def append_adjacency(x: npt.NDArray[np.float32], rows: sp.csr_array) -> sp.csr_array:
    """Features [n, F] of some nodes followed by their rows of an adjacency matrix, two per node of a double cover."""
    if rows.shape[0] != len(x):
        rows = rows[0::2] + rows[1::2]
    return sp.csr_array(sp.hstack([sp.csr_array(x), rows], dtype=np.float32))
