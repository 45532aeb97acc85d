"""The deep model: residual blocks of spectral attention and spectral filters."""

from typing import Any, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.config import Channels
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures, dropout
from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.attention import SparseAttention
from asgat.nn.attention_model import AttentionModel, check_nodes
from asgat.nn.filter_conv import SpectralFilterConv
from asgat.nn.joined_linear import joined_linear
from asgat.nn.operator_builder import OperatorBuilder
from asgat.nn.rows import by_node, linear
from asgat.spectral import SpectralOperator
from asgat.spectral.signal_operator import as_signal_operator


class DeepBlock(nn.Module):
    r"""A residual block: a node's own features, attention, filters and neighbour means, and a two-layer network.

    .. math::
        z &= \mathrm{LayerNorm}(h) \\
        c &= [z, \mathrm{attention}(z), \mathrm{filters}(z), \mathrm{mean}(z)] \\
        h' &= h + W_2 \, \mathrm{GELU}(W_1 c)

    with biases and with dropout before :math:`W_2`.

    Args:
        hidden_channels: size of h; with filters a multiple of ``heads``.
        heads: of attention, each with rows as wide as h, and of filters, which share these channels.
        k: nodes each node attends to per head.
        dropout: inside the network.
        channels: what stands next to a node's own features: ``"attention"``, ``"filters"`` and ``"mean"``, joined by +.
        directed: use the direction of edges; attention, filters and means are then twice as wide.
        options: of the attention and filter layers: ``filter``, ``operator``, ``order``.

    Shapes:
        h [N, hidden_channels] and an operator → [N, hidden_channels]
    """

    def __init__(
        self,
        hidden_channels: int,
        heads: int = 8,
        k: int | None = 10,
        dropout: float = 0.0,
        channels: Channels = "attention+filters",
        directed: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if channels not in get_args(Channels):
            raise AsgatError(f"channels must be one of {', '.join(get_args(Channels))}, not {channels!r}.")
        if hidden_channels % heads and "filters" in channels:
            raise AsgatError(
                f"With filters the hidden size must be a multiple of the number of heads, but they are "
                f"{hidden_channels} and {heads}; {heads * -(-hidden_channels // heads)} would do."
            )
        kinds, d = channels.split("+"), hidden_channels
        self.dropout, self.directed, self.mean = dropout, directed, "mean" in kinds
        self.attention = self.filters = None
        if "attention" in kinds:
            self.attention = ASGATConv(d, d, heads, k=k, bias=False, directed=directed, **options)
        if "filters" in kinds:
            self.filters = SpectralFilterConv(d, d, heads, linear=directed, directed=directed, **options)
        width = d + (2 if directed else 1) * d * sum({"attention": heads}.get(kind, 1) for kind in kinds)
        self.norm_weight, self.norm_bias = (nn.Parameter(torch.empty(d)) for _ in range(2))
        self.weight1, self.bias1 = nn.Parameter(torch.empty(width, d)), nn.Parameter(torch.empty(d))
        self.weight2, self.bias2 = nn.Parameter(torch.empty(d, d)), nn.Parameter(torch.empty(d))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for layer in (self.attention, self.filters):
            if layer is not None:
                layer.reset_parameters()
        nn.init.ones_(self.norm_weight)
        for weight in (self.weight1, self.weight2):
            nn.init.xavier_uniform_(weight)
        for bias in (self.norm_bias, self.bias1, self.bias2):
            nn.init.zeros_(bias)

    def forward(self, h: Tensor, operator: SpectralOperator) -> Tensor:
        z = F.layer_norm(h, h.shape[-1:], self.norm_weight, self.norm_bias)
        others = [] if self.filters is None else [self.filters(z, operator)]
        if self.mean:
            mean = as_signal_operator(operator).neighbour_mean(z)
            others.append(by_node(mean) if self.directed else mean)
        hidden = F.gelu(joined_linear(z, self.attention, others, self.weight1, self.bias1, operator))
        return h + linear(dropout(hidden, self.dropout, self.training), self.weight2, self.bias2)


class ASGATDeep(AttentionModel):
    r"""Residual blocks of spectral attention and spectral filters, for graphs where a shallow model is not enough.

    .. math:: h = \mathrm{dropout}(\mathrm{GELU}(x W_{in})), \qquad h \leftarrow \mathrm{block}(h), \qquad
        \mathrm{logits} = \mathrm{LayerNorm}(h) W_{out}

    with :class:`DeepBlock` s. Nothing in the state dict depends on the size of the graph unless ``num_nodes`` is given.

    Args:
        in_channels: number of input features.
        hidden_channels: size of the hidden rows; with filters a multiple of ``heads``.
        out_channels: number of classes.
        num_layers: number of blocks, at least 1.
        heads, k, dropout, channels: see :class:`DeepBlock`.
        input_dropout: apply dropout to x, too.
        num_nodes: number of nodes, where adjacency rows follow the features in x, as
            :func:`~asgat.nn.asgat.with_adjacency` appends them: :math:`x W_{in}` then includes one learned row per
            neighbour, and another graph is refused.
        directed: use the direction of edges, by the double cover.
        cached: keep the operator built from the first edges seen, for training on one graph.
        options: ``filter``, ``operator``, ``order``, as for :class:`~asgat.nn.ASGATConv`.

    Shapes:
        x [N, in_channels] and a graph → logits [N, out_channels]

    Cost: O(N · in · hidden), and O(order · E · hidden + heads · N · (k + hidden) · hidden) per block: linear.

    Example:
        >>> model = ASGATDeep(8, 16, 3, num_layers=2, heads=4, k=5)
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
        k: int | None = 10,
        dropout: float = 0.0,
        *,
        input_dropout: bool = False,
        channels: Channels = "attention+filters",
        num_nodes: int | None = None,
        directed: bool = False,
        operator: Any = "chebyshev",
        order: int = 15,
        cached: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise AsgatError(f"num_layers must be at least 1, but is {num_layers}.")
        self.num_nodes, self.dropout, self.input_dropout = num_nodes, dropout, input_dropout
        self.operators = OperatorBuilder(operator, order, directed, cached)
        self.in_channels, d = in_channels, hidden_channels
        rows = in_channels + self.operators.copies * (num_nodes or 0)
        self.in_weight, self.in_bias = nn.Parameter(torch.empty(rows, d)), nn.Parameter(torch.empty(d))
        own: tuple[Any, ...] = d, heads, k, dropout, channels, directed
        options |= {"operator": operator, "order": order}
        self.blocks = nn.ModuleList(DeepBlock(*own, **options) for _ in range(num_layers))
        self.norm_weight, self.norm_bias = (nn.Parameter(torch.empty(d)) for _ in range(2))
        self.out_weight = nn.Parameter(torch.empty(d, out_channels))
        self.out_bias = nn.Parameter(torch.empty(out_channels))
        self._reset_own()

    def each_block(self) -> list[DeepBlock]:
        return cast(list[DeepBlock], list(self.blocks))

    @property
    def convs(self) -> list[ASGATConv]:
        return [block.attention for block in self.each_block() if block.attention is not None]

    @property
    def filter_convs(self) -> list[SpectralFilterConv]:
        return [block.filters for block in self.each_block() if block.filters is not None]

    @property
    def layer_name(self) -> str:
        return "block"

    def reset_parameters(self) -> None:
        for block in self.each_block():
            block.reset_parameters()
        self._reset_own()

    def _reset_own(self) -> None:
        self.operators.kept = None
        features, rows = self.in_weight[: self.in_channels], self.in_weight[self.in_channels :]
        for weight in (features, rows, self.out_weight):
            if weight.numel():
                nn.init.xavier_uniform_(weight)
        nn.init.ones_(self.norm_weight)
        for bias in (self.in_bias, self.norm_bias, self.out_bias):
            nn.init.zeros_(bias)

    def operator_for(
        self, x: Tensor | SparseFeatures, graph: Tensor | Graph | SpectralOperator, edge_weight: Tensor | None = None
    ) -> SpectralOperator:
        return self.operators(x, graph, edge_weight)

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor | Graph | SpectralOperator,
        edge_weight: Tensor | None = None,
        return_attention_weights: bool = False,
    ) -> Tensor | tuple[Tensor, list[SparseAttention]]:
        """Logits, or ``(logits, attentions)`` with the attention of every block; arguments as for ``ASGAT``."""
        operator = self.operator_for(x, edge_index, edge_weight)
        check_nodes(operator, self.operators.directed, self.num_nodes)
        x = dropout(x, self.dropout, self.training and self.input_dropout)
        h = F.gelu(linear(x, self.in_weight, self.in_bias))
        h = cast(Tensor, dropout(h, self.dropout, self.training))
        for block in self.blocks:
            h = block(h, operator)
        h = F.layer_norm(h, h.shape[-1:], self.norm_weight, self.norm_bias)
        out = linear(h, self.out_weight, self.out_bias)
        return (out, [conv.attention(operator) for conv in self.convs]) if return_attention_weights else out
