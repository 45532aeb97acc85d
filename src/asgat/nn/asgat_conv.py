"""The spectral attention layer, with PyG's arguments."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from asgat.errors import AsgatError, suggest
from asgat.filters import MLPFilter, SpectralFilter
from asgat.graph import Graph
from asgat.kernels.each_run import each_run
from asgat.kernels.sparse_features import SparseFeatures, dropout, matmul
from asgat.nn.attention import SparseAttention, attend
from asgat.nn.layer_cache import LayerCache
from asgat.spectral import ArmaOperator, ChebyshevOperator, ExactOperator, SpectralOperator
from asgat.spectral.spectral_operator import check_k

OperatorFactory = Callable[..., SpectralOperator]


class ASGATConv(nn.Module):
    r"""The adaptive spectral graph attention layer of `"Beyond Low-Pass Filters: Adaptive Feature Propagation on
    Graphs" <https://arxiv.org/abs/2103.14187>`_.

    .. math::
        h'_v = \Big\Vert_{m=1}^{heads} \sum_{u} a^{(m)}_{vu} \, x_u W, \qquad
        a^{(m)}_v = \mathrm{softmax}\big(\mathrm{topK}(\psi^{(m)}_v, k)\big), \qquad
        \psi^{(m)} = U g_m(\Lambda) U^\top

    Attention is computed from the graph's Laplacian and the learned responses :math:`g_m` alone, so a node attends to
    near and far nodes alike. W is shared by the heads. The graph is an argument of :meth:`forward`; nothing in the
    state dict depends on its size.

    Args:
        in_channels: size of each input feature row.
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
        cached: keep the operator built from the first edges seen, for training on one graph.

    Shapes:
        - **x**: [N, in_channels]
        - **edge_index**: [2, E], a :class:`~asgat.graph.Graph`, or an operator
        - **output**: [N, heads · out_channels], or [N, out_channels] if not ``concat``

    Cost in addition to the operator's scores: O(N · in · out + heads · N · k · out).

    Example:
        >>> conv = ASGATConv(8, 4, heads=2, k=3)
        >>> conv(torch.randn(5, 8), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
        torch.Size([5, 8])
    """

    stackable = True  # see asgat.nn.stacking

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
        self.include_unreachable, self.cached, self.gain = include_unreachable, cached, gain if root else 1.0
        self.filter = filter(heads)
        self.make_operator = operator_factory(operator, order)
        width = heads * out_channels if concat else out_channels
        # As [in, out], not as nn.Linear has it: a product with sparse features reads it row by row.
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.root_weight = nn.Parameter(torch.empty(in_channels, width)) if root else None
        self.mix = nn.Parameter(torch.empty(heads)) if mix else None
        self.bias = nn.Parameter(torch.empty(width)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self._cache = LayerCache()
        self.filter.reset_parameters()
        nn.init.xavier_uniform_(self.weight)
        if self.root_weight is not None:
            nn.init.xavier_uniform_(self.root_weight)
        for start_at_zero in (self.mix, self.bias):
            if start_at_zero is not None:
                nn.init.zeros_(start_at_zero)

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor | Graph | SpectralOperator,
        edge_weight: Tensor | None = None,
        return_attention_weights: bool = False,
    ) -> Tensor | tuple[Tensor, SparseAttention]:
        r"""Runs the layer.

        Args:
            x: node features, dense or sparse.
            edge_index: the graph, as edges [2, E] (read as undirected), a ``Graph``, or an operator built from one:
                build an operator once when the same graph is used several times.
            edge_weight: weights [E] of the edges.
            return_attention_weights: return ``(output, SparseAttention)``. The attended pairs are not the input edges,
                which is why this is not PyG's ``(edge_index, alpha)``. :meth:`attention` can also certify it.
        """
        operator = self.operator_for(x, edge_index, edge_weight)
        attention = self.attention(operator)
        one = self.runs == 1  # a stack of one is computed as a single layer

        def own(weight: Tensor) -> Tensor:
            return weight.squeeze(0) if one else weight

        if one and isinstance(x, Tensor) and x.dim() == 3:
            x = x.squeeze(0)
        x = dropout(x, self.dropout, self.training)
        kept = attention.dropout(self.dropout, self.training)
        if self.mix is not None:
            kept = kept.scale(self.heads * operator.shared(own(self.mix)).softmax(-1))
        mapped = product(x, own(self.weight), operator)
        gathered = operator.exchange(mapped if self.gain == 1.0 else self.gain * mapped)
        side_by_side = self.concat or self.heads == 1
        bias = operator.shared(own(self.bias)) if self.bias is not None else None
        of_heads = bias.view(*bias.shape[:-1], self.heads, -1) if bias is not None and side_by_side else None
        out = kept.aggregate(gathered, of_heads)  # [heads, N, out]
        out = out.transpose(-3, -2).flatten(-2) if side_by_side else each_run(3, lambda own: own.mean(dim=-3), out)
        if self.root_weight is not None:  # an operator's own nodes come first
            out = out + product(x, own(self.root_weight), operator)[..., : out.size(-2), :]
        if bias is not None and not side_by_side:
            out = add_bias(out, bias)
        if one:
            out, attention = out.unsqueeze(0), attention.unsqueeze()
        return (out, attention) if return_attention_weights else out

    def attention(self, operator: SpectralOperator, certified: bool = False) -> SparseAttention:
        """The attention on a graph, which does not depend on features.

        That of a filter that training does not change, such as a heat kernel, is computed once. If ``certified``, its
        ``certificate`` bounds how far the selection can be from the best of all nodes.
        """
        filter = self._cache.filter_of(self.filter, self.runs)
        if certified or not self.filter.fixed:
            return attend(operator, filter, self.k, self.include_unreachable, certified)
        versions = tuple(value._version for value in self.filter.buffers())
        key = (operator, filter, self.k, self.include_unreachable, versions)
        if self._cache.attention is None or self._cache.attention[0] != key:
            with torch.no_grad():
                self._cache.attention = key, attend(operator, filter, self.k, self.include_unreachable)
        return self._cache.attention[1]

    @property
    def runs(self) -> int | None:
        """Number of runs in a layer made by :func:`asgat.nn.stacking.stack`; None for a single one."""
        return self.weight.size(0) if self.weight.dim() == 3 else None

    def operator_for(
        self, x: Tensor | SparseFeatures, graph: Tensor | Graph | SpectralOperator, edge_weight: Tensor | None = None
    ) -> SpectralOperator:
        """The operator of a graph, built unless it already is one or is cached."""
        operator: SpectralOperator
        if isinstance(graph, SpectralOperator):
            operator = graph
        elif self._cache.operator is not None:
            operator = self._cache.operator
        else:
            if not isinstance(graph, Graph):
                graph = Graph.from_edges(graph, x.size(0), edge_weight)
            operator = self.make_operator(graph, dtype=x.dtype, device=x.device)
            if self.cached:
                self._cache.operator = operator
        if operator.num_inputs != x.size(-2):
            kept = " (kept from an earlier call, because cached=True)" if operator is self._cache.operator else ""
            raise AsgatError(f"x has {x.size(-2)} rows, but the graph{kept} has {operator.num_inputs} nodes.")
        return operator

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, heads={self.heads}, k={self.k})"


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """x [N, F] plus a bias [F]; of stacked runs [R, N, F] and [R, F]."""
    return each_run(2, lambda own, shift: own + shift.unsqueeze(-2), x, bias)


def product(x: Tensor | SparseFeatures, weight: Tensor, operator: SpectralOperator) -> Tensor:
    """x W, for a weight [in, out] that all rows of x share; see :meth:`SpectralOperator.shared`."""
    wide = x.to(dtype=torch.float64) if operator.exact_sums else x
    return matmul(wide, operator.shared(weight))


def operator_factory(operator: str | OperatorFactory, order: int) -> OperatorFactory:
    if not isinstance(operator, str):
        return operator
    chebyshev = partial(ChebyshevOperator, order=order)
    factories: dict[str, OperatorFactory] = {"chebyshev": chebyshev, "exact": ExactOperator, "arma": ArmaOperator}
    if operator not in factories:
        raise AsgatError(f"Unknown operator {operator!r}. {suggest(operator, list(factories))}")
    if order < 1:
        raise AsgatError(f"order must be at least 1, but is {order}.")
    return factories[operator]
