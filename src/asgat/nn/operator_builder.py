"""The operator of the graph a layer is given."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from asgat.errors import AsgatError, suggest
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.spectral import ArmaOperator, ChebyshevOperator, ExactOperator, SpectralOperator

OperatorFactory = Callable[..., SpectralOperator]
Features = Tensor | SparseFeatures
GraphLike = Tensor | Graph | SpectralOperator  # or a SparseTensor of torch_sparse, which need not be installed
HETERO = (
    "This layer attends within one graph with one kind of node: to_hetero and HeteroConv, which give it one kind of "
    "nodes as sources and another as targets, are not supported. Use to_homogeneous() of the data first."
)


class OperatorBuilder:
    """Builds the operator of a graph, and keeps the first one if ``cached``.

    A copy shares the operator, which never changes. A saved builder holds none.

    Args:
        operator: ``"chebyshev"``, ``"exact"``, ``"arma"``, or a function of a graph, dtype and device that returns an
            operator.
        order: polynomial order of ``"chebyshev"``.
        directed: whether operators are those of a graph's double cover, which has two rows per node.
        cached: keep the operator built from the first edges seen.
    """

    def __init__(self, operator: str | OperatorFactory, order: int, directed: bool = False, cached: bool = False):
        self.directed, self.cached = directed, cached
        self.kept: SpectralOperator | None = None
        if not isinstance(operator, str):
            self.make = operator
            return
        chebyshev = partial(ChebyshevOperator, order=order)
        factories: dict[str, OperatorFactory] = {"chebyshev": chebyshev, "exact": ExactOperator, "arma": ArmaOperator}
        if operator not in factories:
            raise AsgatError(f"Unknown operator {operator!r}. {suggest(operator, list(factories))}")
        if order < 1:
            raise AsgatError(f"order must be at least 1, but is {order}.")
        self.make = factories[operator]

    @property
    def copies(self) -> int:
        """Rows of an operator per node of the graph."""
        return 2 if self.directed else 1

    def __call__(self, x: Features, graph: GraphLike, edge_weight: Tensor | None = None) -> SpectralOperator:
        """The operator of a graph for features x, built unless it already is one or is kept."""
        if isinstance(x, tuple | torch.fx.Proxy) or isinstance(graph, tuple | dict):
            raise AsgatError(HETERO)
        _check_no_gradient(edge_weight)
        operator: SpectralOperator
        if isinstance(graph, SpectralOperator):
            operator = graph
        elif self.kept is not None:
            operator = self.kept
        else:
            if not isinstance(graph, Graph):
                graph = self._read(graph, x.size(0), edge_weight)
            if graph.directed and not self.directed:
                raise AsgatError(
                    "The graph is directed, and this layer reads edges as undirected; make the layer with "
                    "directed=True, or give it graph.undirected."
                )
            dtype = x.dtype if x.dtype == torch.float64 else torch.float32  # half is too coarse for a Laplacian
            operator = self.make(graph.double_cover if self.directed else graph, dtype=dtype, device=x.device)
            if self.cached:
                self.kept = operator
        if operator.num_nodes != self.copies * x.size(0):
            kept = " (kept from an earlier call, because cached=True)" if operator is self.kept else ""
            rows = ", two per node of a directed graph" if self.directed else ""
            raise AsgatError(f"x has {x.size(0)} rows, but the graph{kept} has {operator.num_nodes} nodes{rows}.")
        return operator

    def _read(self, graph: Any, num_nodes: int, edge_weight: Tensor | None) -> Graph:
        """The graph of edges [2, E], or of a sparse matrix ``adj_t``."""
        sparse_tensor = hasattr(graph, "coo")
        if not sparse_tensor and getattr(graph, "layout", torch.strided) == torch.strided:
            return Graph.from_edges(graph, num_nodes, edge_weight, directed=self.directed)
        if edge_weight is not None:
            raise AsgatError("adj_t holds the weights of edges as its values; leave out edge_weight.")
        _check_no_gradient(graph.coo()[2] if sparse_tensor else graph)
        return Graph.from_adj_t(graph, directed=self.directed)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "kept": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> "OperatorBuilder":
        copied = object.__new__(OperatorBuilder)
        vars(copied).update(vars(self))
        return copied


def _check_no_gradient(edge_weight: Tensor | None) -> None:
    if edge_weight is not None and edge_weight.requires_grad and torch.is_grad_enabled():
        raise AsgatError(
            "edge_weight requires a gradient, but operators of a graph give it none: pass edge_weight.detach(). "
            "Filters, features and the weights of the layer get theirs."
        )
