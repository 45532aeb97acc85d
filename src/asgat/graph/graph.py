"""An undirected weighted graph and its normalised Laplacian."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from asgat.errors import AsgatError

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SelfLoops = Literal["keep", "add", "remove"]

LEAST_ENTRY = (
    1e-20  # of normalised edges: below rounding, but products of up to fifteen do not underflow and hide nodes
)


@dataclass(frozen=True, eq=False)
class Graph:
    r"""An undirected graph as a symmetric CSR adjacency matrix.

    Every constructor symmetrises its input and merges duplicates: the weight of :math:`\{u, v\}` is the largest weight
    of any :math:`(u, v)` or :math:`(v, u)`, so an edge list with each edge once, twice or in one direction gives the
    same graph. Isolated nodes and several components are allowed. An edge of weight zero is dropped.

    Args:
        adjacency: symmetric, with non-negative finite weights; the ``from_*`` constructors ensure that.

    Example:
        >>> graph = Graph.from_edges([[0, 1, 1], [1, 0, 2]], num_nodes=4)
        >>> graph.num_nodes, graph.num_entries, graph.isolated.tolist()
        (4, 4, [False, False, False, True])
    """

    adjacency: sp.csr_array

    @classmethod
    def from_edges(
        cls, edge_index: Any, num_nodes: int | None = None, edge_weight: Any = None, self_loops: SelfLoops = "keep"
    ) -> Graph:
        """From ``edge_index`` of shape [2, E] and optional weights [E]; arrays, lists or tensors."""
        ends, num_nodes = pairs(edge_index, num_nodes)
        weight = np.ones(ends.shape[1]) if edge_weight is None else _to_numpy(edge_weight).astype(np.float64)
        if weight.shape != (ends.shape[1],):
            raise AsgatError(
                f"edge_weight must hold one number per edge: {ends.shape[1]} edges, but shape {list(weight.shape)}."
            )
        check_weights(ends[0], ends[1], weight)
        ends, weight = ends[:, weight > 0], weight[weight > 0]
        row, col = np.concatenate([ends, ends[::-1]], axis=1)
        row, col, weight = merge_entries(row, col, np.tile(weight, 2), self_loops, range(num_nodes))
        matrix = sp.csr_array((weight, (row, col)), shape=(num_nodes, num_nodes))
        matrix.sort_indices()
        return cls(matrix)

    @classmethod
    def from_scipy(cls, matrix: Any, self_loops: SelfLoops = "keep") -> Graph:
        """From a square scipy sparse matrix or array."""
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise AsgatError(f"An adjacency matrix must be square, not {matrix.shape}.")
        coo = sp.coo_array(matrix)
        return cls.from_edges(np.stack(coo.coords), matrix.shape[0], coo.data, self_loops)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph[Any], weight: str = "weight", self_loops: SelfLoops = "keep") -> Graph:
        """From networkx; nodes are numbered in the order ``graph.nodes`` gives them, missing weights are 1."""
        number = {node: i for i, node in enumerate(graph.nodes)}
        edges = [(number[u], number[v], w) for u, v, w in graph.edges(data=weight, default=1.0)]
        ends = np.array([e[:2] for e in edges], dtype=np.int64).reshape(-1, 2).T
        return cls.from_edges(ends, len(number), np.array([e[2] for e in edges], dtype=np.float64), self_loops)

    @classmethod
    def from_pyg(cls, data: Data, self_loops: SelfLoops = "keep") -> Graph:
        """From a PyG ``Data`` or ``Batch``; ``edge_weight`` is used where present."""
        return cls.from_edges(data.edge_index, data.num_nodes, data.get("edge_weight"), self_loops)

    @classmethod
    def from_pandas(
        cls,
        edges: pandas.DataFrame,
        source: str = "source",
        target: str = "target",
        weight: str | None = None,
        nodes: Any = None,
        self_loops: SelfLoops = "keep",
    ) -> Graph:
        """From a data frame of edges, a row each, with a weight of 1 unless its column is named.

        Nodes are numbered in the order of ``nodes``, the ids of all nodes, or else of their first occurrence.
        """
        absent = [name for name in (source, target, weight) if name is not None and name not in edges.columns]
        if absent:
            raise AsgatError(f"The edges have no column {absent[0]!r}; they have {', '.join(map(str, edges.columns))}.")
        ends = list(zip(edges[source].tolist(), edges[target].tolist(), strict=True))
        ids = [end for pair in ends for end in pair] if nodes is None else nodes
        number = {node: i for i, node in enumerate(dict.fromkeys(ids))}
        try:
            index = np.array([(number[u], number[v]) for u, v in ends], dtype=np.int64).reshape(-1, 2).T
        except KeyError as error:
            raise AsgatError(
                f"An edge names the node {error.args[0]!r}, which is not among the nodes; add it or drop the edge."
            ) from None
        return cls.from_edges(index, len(number), None if weight is None else edges[weight].to_numpy(), self_loops)

    @property
    def num_nodes(self) -> int:
        return int(self.adjacency.shape[0])

    @property
    def num_entries(self) -> int:
        """Stored directed entries: two per edge between different nodes, one per self-loop."""
        return int(self.adjacency.nnz)

    @cached_property
    def degree(self) -> npt.NDArray[np.float64]:
        """Weighted degree; a self-loop counts once."""
        return np.asarray(self.adjacency.sum(axis=1), dtype=np.float64).reshape(-1)

    @property
    def isolated(self) -> npt.NDArray[np.bool_]:
        """Nodes without any edge, a self-loop included."""
        return np.asarray(np.diff(self.adjacency.indptr) == 0)

    @cached_property
    def components(self) -> npt.NDArray[np.int64]:
        """Component number of every node."""
        return connected_components(self.adjacency, directed=False)[1].astype(np.int64)

    @cached_property
    def normalised_adjacency(self) -> sp.csr_array:
        r""":math:`D^{-1/2} A D^{-1/2}`; rows and columns of isolated nodes are empty; an edge has at least 1e-20."""
        # Roots, and degrees relative to a row's largest weight, keep 1e308 and 1e-308 within the range of a float64;
        # one factor per end makes the matrix exactly symmetric.
        coo = self.adjacency.tocoo()
        row, col = coo.coords
        largest = np.zeros(self.num_nodes)
        np.maximum.at(largest, row, coo.data)
        relative_degree = np.bincount(row, coo.data / largest[row], minlength=self.num_nodes)
        root = np.sqrt(largest) * np.sqrt(relative_degree)
        weight = np.sqrt(coo.data)
        entry = np.maximum((weight / root[row]) * (weight / root[col]), LEAST_ENTRY)
        return sp.csr_array((entry, (row, col)), shape=coo.shape)

    @cached_property
    def laplacian(self) -> sp.csr_array:
        r"""The Laplacian :math:`L = I - D^{-1/2} A D^{-1/2}`; :math:`L_{vv} = 1` for a node without edges."""
        return sp.csr_array(sp.eye_array(self.num_nodes, format="csr") - self.normalised_adjacency)

    @cached_property
    def lambda_max(self) -> float:
        """Largest eigenvalue of the Laplacian by Lanczos iteration, times 1.01 and at most 2, the general bound."""
        from scipy.sparse.linalg import eigsh

        if self.num_nodes < 3 or not (np.abs(self.laplacian.data) > 1e-6).any():
            return 2.0  # too small, or too near to zero, for a Lanczos iteration
        start = np.random.default_rng(0).standard_normal(self.num_nodes)  # fixed, for the same value every time
        value = eigsh(self.laplacian, k=1, which="LA", return_eigenvectors=False, v0=start, tol=1e-4)
        return float(min(2.0, 1.01 * max(value[0], 1e-6)))

    def with_self_loops(self, self_loops: SelfLoops) -> Graph:
        """The same graph with its self-loops kept, removed, or added (weight 1) where a node has none."""
        if self_loops == "keep":
            return self
        return Graph.from_scipy(self.adjacency, self_loops)

    def edge_index(self) -> npt.NDArray[np.int64]:
        """Both directions of every edge as PyG's [2, E]."""
        return np.stack(self.adjacency.tocoo().coords).astype(np.int64)

    def edges_once(self) -> tuple[Ints, Floats]:
        """Every edge once, the lower node first, [2, E], and the weights [E]."""
        ends, weight = self.edge_index(), self.adjacency.tocoo().data
        once = ends[0] <= ends[1]
        return ends[:, once], weight[once]

    def __repr__(self) -> str:
        return f"Graph(num_nodes={self.num_nodes}, num_entries={self.num_entries})"


def pairs(edge_index: Any, num_nodes: int | None) -> tuple[Ints, int]:
    """Endpoints [2, E] and the number of nodes, by default the largest index plus one, checked."""
    ends = _to_numpy(edge_index)
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise AsgatError(f"edge_index must have shape [2, E], not {list(ends.shape)}; transpose a list of pairs.")
    if ends.size and not np.issubdtype(ends.dtype, np.integer):
        raise AsgatError(f"edge_index must hold integers, not {ends.dtype}.")
    ends = ends.astype(np.int64)
    if num_nodes is None:
        num_nodes = int(ends.max()) + 1 if ends.size else 0
    if num_nodes < 0:
        raise AsgatError(f"num_nodes must not be negative, but is {num_nodes}.")
    outside = ends[(ends < 0) | (ends >= num_nodes)]
    if outside.size:
        raise AsgatError(
            f"edge_index names node {outside[0]}, but the graph has nodes 0 to {num_nodes - 1}; "
            "correct the edge list or pass a larger num_nodes."
        )
    return ends, num_nodes


def _to_numpy(values: Any) -> npt.NDArray[Any]:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    return array.reshape(2, 0).astype(np.int64) if array.size == 0 and array.ndim != 1 else array


def check_weights(source: npt.NDArray[Any], target: npt.NDArray[Any], weight: npt.NDArray[np.float64]) -> None:
    """Refuses edges with a weight that is negative or not finite."""
    bad = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if bad.size:
        raise AsgatError(
            f"The edge ({source[bad[0]]}, {target[bad[0]]}) has weight {weight[bad[0]]}; weights must be finite and "
            "not negative. Drop such edges or shift the weights."
        )


def merge_entries(
    row: Ints, col: Ints, weight: Floats, self_loops: SelfLoops, nodes: range
) -> tuple[Ints, Ints, Floats]:
    """Entries of the rows ``nodes`` sorted by row and column, each pair once with its largest weight."""
    if self_loops == "add":
        without = np.setdiff1d(np.arange(nodes.start, nodes.stop), row[row == col])
        row, col = np.concatenate([row, without]), np.concatenate([col, without])
        weight = np.concatenate([weight, np.ones(len(without))])
    elif self_loops == "remove":
        kept = row != col
        row, col, weight = row[kept], col[kept], weight[kept]
    elif self_loops != "keep":
        raise AsgatError(f"self_loops must be keep, add or remove, not {self_loops!r}.")
    order = np.lexsort((-weight, col, row))  # the largest weight of a pair comes first
    row, col, weight = row[order], col[order], weight[order]
    first = np.ones(len(row), dtype=bool)
    first[1:] = (row[1:] != row[:-1]) | (col[1:] != col[:-1])
    return row[first], col[first], weight[first]
