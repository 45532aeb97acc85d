"""A layer of learned spectral filters, with PyG's arguments."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.filters import MLPFilter, SpectralFilter
from asgat.filters.spectral_filter import build_filter
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures, matmul
from asgat.nn.operator_builder import OperatorBuilder, OperatorFactory
from asgat.nn.rows import by_copy, by_node
from asgat.spectral import SpectralOperator
from asgat.spectral.signal_operator import as_signal_operator


class SpectralFilterConv(nn.Module):
    r"""Learned filters over the whole spectrum, each on its own channels:

    .. math::
        h' = \Big\Vert_{m=1}^{heads} g_m(L) \, (x W)_m, \qquad g_m(L) = U g_m(\Lambda) U^\top

    where :math:`(x W)_m` is the m-th of ``heads`` equal slices of the channels. Unlike
    :class:`~asgat.nn.ASGATConv` it selects nothing and has no softmax: weights are signed and every node within the
    order counts, so that it can count neighbours or take differences.

    Args:
        in_channels: size of each input feature row.
        out_channels: size of each output feature row, a multiple of ``heads``.
        heads: number of responses :math:`g_m`.
        linear: learn W; otherwise it is the identity, and ``in_channels`` must equal ``out_channels``.
        filter, operator, order, cached: as for :class:`~asgat.nn.ASGATConv`.
        directed: use the direction of edges, by the graph's double cover: a node is filtered twice, as a source and as
            a target, each with its own W, and the two outputs are concatenated. Needs ``linear``.

    Shapes:
        - **x**: [N, in_channels]
        - **edge_index**: [2, E], a :class:`~asgat.graph.Graph`, or an operator of a whole graph
        - **output**: [N, out_channels], or [N, 2 · out_channels] if ``directed``

    Cost: O(N · in · out) for W, and O(order · E · out) for all heads together.

    Example:
        >>> conv = SpectralFilterConv(8, 6, heads=2)
        >>> conv(torch.randn(5, 8), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
        torch.Size([5, 6])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        *,
        linear: bool = True,
        filter: Callable[[int], SpectralFilter] = MLPFilter,
        operator: str | OperatorFactory = "chebyshev",
        order: int = 15,
        directed: bool = False,
        cached: bool = False,
    ) -> None:
        super().__init__()
        if heads < 1 or out_channels % heads:
            raise AsgatError(f"out_channels must be a multiple of heads, but they are {out_channels} and {heads}.")
        if not linear and (in_channels != out_channels or directed):
            raise AsgatError("Without a linear map in_channels must equal out_channels, and edges are undirected.")
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.filter = build_filter(filter, heads)
        self.operators = OperatorBuilder(operator, order, directed, cached)
        copies = self.operators.copies
        self.weight = nn.Parameter(torch.empty(in_channels, copies * out_channels)) if linear else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.operators.kept = None
        self.filter.reset_parameters()
        if self.weight is not None:
            for of_copy in self.weight.chunk(self.operators.copies, dim=1):
                nn.init.xavier_uniform_(of_copy)

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor | Graph | SpectralOperator,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Runs the layer; arguments are those of :meth:`ASGATConv.forward`."""
        operator = as_signal_operator(self.operators(x, edge_index, edge_weight))
        if self.weight is not None:
            signal = by_copy(matmul(x, self.weight), self.operators.copies)
        else:
            signal = x if isinstance(x, Tensor) else x.to_dense()
        out = operator.filter_channels(self.filter, signal)
        return by_node(out) if self.operators.directed else out

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, heads={self.heads})"
