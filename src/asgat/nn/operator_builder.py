"""The operator of the graph a layer is given."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from asgat.errors import AsgatError, suggest
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.spectral import ArmaOperator, ChebyshevOperator, ExactOperator, SpectralOperator

OperatorFactory = Callable[..., SpectralOperator]


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

    def __call__(
        self, x: Tensor | SparseFeatures, graph: Tensor | Graph | SpectralOperator, edge_weight: Tensor | None = None
    ) -> SpectralOperator:
        """The operator of a graph for features x, built unless it already is one or is kept."""
        operator: SpectralOperator
        if isinstance(graph, SpectralOperator):
            operator = graph
        elif self.kept is not None:
            operator = self.kept
        else:
            if not isinstance(graph, Graph):
                graph = Graph.from_edges(graph, x.size(0), edge_weight, directed=self.directed)
            if graph.directed and not self.directed:
                raise AsgatError(
                    "The graph is directed, and this layer reads edges as undirected; make the layer with "
                    "directed=True, or give it graph.undirected."
                )
            operator = self.make(graph.double_cover if self.directed else graph, dtype=x.dtype, device=x.device)
            if self.cached:
                self.kept = operator
        if operator.num_inputs != self.copies * x.size(-2):
            kept = " (kept from an earlier call, because cached=True)" if operator is self.kept else ""
            rows = ", two per node of a directed graph" if self.directed else ""
            raise AsgatError(f"x has {x.size(-2)} rows, but the graph{kept} has {operator.num_inputs} nodes{rows}.")
        return operator

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "kept": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> "OperatorBuilder":
        copied = object.__new__(OperatorBuilder)
        vars(copied).update(vars(self))
        return copied
