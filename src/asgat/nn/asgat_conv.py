"""The spectral attention layer, with PyG's arguments."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from asgat.errors import AsgatError
from asgat.filters import MLPFilter, SpectralFilter
from asgat.filters.spectral_filter import build_filter
from asgat.kernels.dropout import dropout as dropout_dense
from asgat.kernels.elu import elu as elu_unit
from asgat.kernels.sparse_features import SparseFeatures, dropout, matmul
from asgat.nn.attention import SparseAttention, attend
from asgat.nn.layer_cache import LayerCache
from asgat.nn.operator_builder import GraphLike, OperatorBuilder, OperatorFactory
from asgat.nn.rows import by_copy, by_node
from asgat.spectral import SpectralOperator
from asgat.spectral.spectral_operator import check_k


class ASGATConv(nn.Module):
    r"""The adaptive spectral graph attention layer of `"Beyond Low-Pass Filters: Adaptive Feature Propagation on
    Graphs" <https://arxiv.org/abs/2103.14187>`_.

    .. math::
        h'_v &= \Big\Vert_{m=1}^{heads} \sum_{u} a^{(m)}_{vu} \, x_u W \\
        a^{(m)}_v &= \mathrm{softmax}\big(\mathrm{topK}(\psi^{(m)}_v, k)\big) \\
        \psi^{(m)} &= U g_m(\Lambda) U^\top

    Attention is computed from the graph's Laplacian and the learned responses :math:`g_m` alone, so a node attends to
    near and far nodes alike. W is shared by the heads. The graph is an argument of :meth:`forward`; nothing in the
    state dict depends on its size.

    Args:
        in_channels: size of each input feature row; -1 takes that of the first call, or of the state that is loaded.
        out_channels: size of each output feature row, per head.
        heads: number of filters, one attention head each.
        concat: concatenate the heads' outputs; otherwise average them.
        k: nodes each node attends to per head; None for all it reaches.
        dropout: on the input and on the attention weights.
        root: add :math:`x_v W_{self}` to the output (not in the paper).
        mix: learn the share of every head, :math:`heads \cdot \mathrm{softmax}(s)_m`, by which its output is scaled;
            1 at the start (not in the paper).
        gain: factor of the attended features relative to a root term; 1 without one. Adam moves all weights alike, so
            that with a small factor attention is learned more slowly than the node's own features (not in the paper).
        bias: add a learned bias.
        filter: called with ``heads``, returns the responses: a :class:`~asgat.filters.SpectralFilter` class or a
            ``functools.partial`` of one.
        operator: how the scores are computed where :meth:`forward` is given edges: ``"chebyshev"``, ``"exact"``,
            ``"arma"``, or a function of a graph, dtype and device that returns a
            :class:`~asgat.spectral.SpectralOperator`.
        order: polynomial order of ``"chebyshev"``.
        include_unreachable: let nodes of other components compete for attention, with score 0.
        directed: use the direction of edges. Attention is that of the graph's double cover, where every node is twice,
            as a source and as a target of edges; each copy has its own W and attends to copies of either kind, and a
            node's two outputs are concatenated, or averaged if not ``concat``. The state dict is another one.
        cached: keep the operator built from the first edges seen, for training on one graph.

    Shapes:
        - **x**: [N, in_channels]
        - **edge_index**: [2, E], ``adj_t`` [N, N], a :class:`~asgat.graph.Graph`, or an operator
        - **output**: [N, heads · out_channels], twice as wide if ``directed``; or [N, out_channels] if not ``concat``

    Cost in addition to the operator's scores: O(N · in · out + heads · N · k · out).

    Example:
        >>> conv = ASGATConv(8, 4, heads=2, k=3)
        >>> conv(torch.randn(5, 8), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
        torch.Size([5, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        k: int | None = 10,
        dropout: float = 0.0,
        *,
        root: bool = False,
        mix: bool = False,
        gain: float = 1.0,
        bias: bool = True,
        filter: Callable[[int], SpectralFilter] = MLPFilter,
        operator: str | OperatorFactory = "chebyshev",
        order: int = 15,
        include_unreachable: bool = False,
        directed: bool = False,
        cached: bool = False,
    ) -> None:
        super().__init__()
        check_k(k)
        if heads < 1:
            raise AsgatError(f"heads must be at least 1, but is {heads}.")
        if not 0.0 <= dropout < 1.0:
            raise AsgatError(f"dropout must be at least 0 and below 1, but is {dropout}.")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.heads, self.concat, self.k, self.dropout = heads, concat, k, dropout
        self.include_unreachable, self.gain = include_unreachable, gain if root else 1.0
        self.filter = build_filter(filter, heads)
        self.operators = OperatorBuilder(operator, order, directed, cached)
        width = self.operators.copies * heads * out_channels if concat else out_channels
        # As [in, out], not as nn.Linear has it: a product with sparse features reads it row by row.
        self._widths = {"weight": self.operators.copies * out_channels, **({"root_weight": width} if root else {})}
        self.weight = self._input_weight("weight")
        self.root_weight = self._input_weight("root_weight") if root else None
        self.mix = nn.Parameter(torch.empty(heads)) if mix else None
        self.bias = nn.Parameter(torch.empty(width)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self._cache, self.operators.kept = LayerCache(), None
        self.filter.reset_parameters()
        if self.in_channels != -1:
            self._reset_input_weights()
        for start_at_zero in (self.mix, self.bias):
            if start_at_zero is not None:
                nn.init.zeros_(start_at_zero)

    def _input_weight(self, name: str) -> nn.Parameter:
        if self.in_channels == -1:
            return cast(nn.Parameter, UninitializedParameter())
        return nn.Parameter(torch.empty(self.in_channels, self._widths[name]))

    def _reset_input_weights(self) -> None:
        for of_copy in self.weight.chunk(self.operators.copies, dim=1):
            nn.init.xavier_uniform_(of_copy)
        if self.root_weight is not None:
            nn.init.xavier_uniform_(self.root_weight)

    @torch.no_grad()
    def _set_in_channels(self, in_channels: int) -> None:
        """Makes the weights of a layer that did not know the size of its input."""
        self.in_channels = in_channels
        for name, width in self._widths.items():
            getattr(self, name).materialize((in_channels, width))
        self._reset_input_weights()

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        weight = state_dict.get(f"{prefix}weight")
        if self.in_channels == -1 and weight is not None:
            self._set_in_channels(weight.size(0))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: GraphLike,
        edge_weight: Tensor | None = None,
        return_attention_weights: bool = False,
        attention: SparseAttention | None = None,
        *,
        input_dropped: bool = False,
        elu: bool = False,
        next_dropout: float = 0.0,
    ) -> Tensor | tuple[Tensor, SparseAttention]:
        r"""Runs the layer.

        Args:
            x: node features, dense or sparse.
            edge_index: the graph, as edges [2, E] (read as undirected unless ``directed``), PyG's transposed adjacency
                matrix ``adj_t`` (a ``SparseTensor``, or a sparse tensor of torch), a ``Graph``, or an operator built
                from one, or from the double cover of a directed one: build an operator once when the same graph is
                used several times.
            edge_weight: weights [E] of the edges. They get no gradient: weights that require one are refused.
            return_attention_weights: return ``(output, SparseAttention)``. The attended pairs are not the input edges,
                which is why this is not PyG's ``(edge_index, alpha)``. :meth:`attention` can also certify it.
            attention: what :meth:`attention` gives, where it is known.
            input_dropped: ``x`` has been through dropout already.
            elu, next_dropout: apply an ELU to the output, and after it the dropout of the next layer's input. On CUDA
                they take little time within the sums over attended nodes.
        """
        operator = self.operator_for(x, edge_index, edge_weight)
        if self.in_channels == -1:
            self._set_in_channels(x.size(-1))
        attention = self.attention(operator) if attention is None else attention
        if not input_dropped:
            x = dropout(x, self.dropout, self.training)
        shares = None if self.mix is None else self.heads * self.mix.softmax(-1)
        mapped = by_copy(matmul(x, self.weight), self.operators.copies)
        gathered = operator.exchange(mapped if self.gain == 1.0 else self.gain * mapped)
        side_by_side, bias = self.concat or self.heads == 1, self.bias
        in_sums = self.concat or (self.heads == 1 and not self.directed)
        of_heads = bias.view(-1, self.out_channels) if bias is not None and in_sums else None
        in_order = side_by_side and not self.directed and (in_sums or bias is None) and self.root_weight is None
        fused = elu and in_order and gathered.is_cuda and not torch.compiler.is_compiling()
        after = next_dropout if fused else 0.0
        kept = self.dropout, self.training
        out = attention.aggregate(gathered, of_heads, *kept, shares, fused, after)  # [heads, N, out]
        out = out.transpose(0, 1).flatten(1) if side_by_side else out.mean(dim=0)
        if self.directed:
            out = by_node(out) if self.concat else 0.5 * (out[0::2] + out[1::2])
        if self.root_weight is not None:
            out = out + matmul(x, self.root_weight)
        if bias is not None and not in_sums:
            out = out + bias
        if not fused:
            out = dropout_dense(elu_unit(out) if elu else out, next_dropout, self.training)
        return (out, attention) if return_attention_weights else out

    def attention(self, operator: SpectralOperator, certified: bool = False) -> SparseAttention:
        """The attention on a graph, which does not depend on features.

        That of a filter that training does not change, such as a heat kernel, is computed once. If ``certified``, its
        ``certificate`` bounds how far the selection can be from the best of all nodes.
        """
        filter = self.filter
        if certified or not self.filter.fixed:
            return attend(operator, filter, self.k, self.include_unreachable, certified)
        versions = tuple(value._version for value in self.filter.buffers())
        key = (operator, filter, self.k, self.include_unreachable, versions)
        if self._cache.attention is None or self._cache.attention[0] != key:
            with torch.no_grad():
                self._cache.attention = key, attend(operator, filter, self.k, self.include_unreachable)
        return self._cache.attention[1]

    @property
    def directed(self) -> bool:
        return self.operators.directed

    def operator_for(
        self, x: Tensor | SparseFeatures, graph: GraphLike, edge_weight: Tensor | None = None
    ) -> SpectralOperator:
        """The operator of a graph, built unless it already is one or is cached."""
        return self.operators(x, graph, edge_weight)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, heads={self.heads}, k={self.k})"
