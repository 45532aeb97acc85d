"""A weighted graph and its normalised Laplacian."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asgat.errors import AsgatError
from asgat.graph.graph_digest import graph_digest

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
SelfLoops = Literal["keep", "add", "remove"]

# The smallest normalised weight of an edge: below rounding, but products of fifteen of them do not underflow to zero,
# which would hide nodes.
LEAST_ENTRY = 1e-20


@dataclass(frozen=True, eq=False)
class Graph:
    r"""A graph as a CSR adjacency matrix: undirected, and then symmetric, unless ``directed``.

    Every constructor merges duplicates. An undirected graph is symmetrised: the weight of :math:`\{u, v\}` is the
    largest weight of any :math:`(u, v)` or :math:`(v, u)`, so an edge list with each edge once, twice or in one
    direction gives the same graph. Isolated nodes and several components are allowed; edges of weight zero are dropped.

    A directed graph has no symmetric Laplacian. Attention and filters use that of its :attr:`double_cover`.

    Args:
        adjacency: entry (v, u) is the weight of the edge from v to u: finite and not negative, and symmetric if not
            ``directed``; the ``from_*`` constructors ensure that.
        directed: whether the two directions of an edge are distinguished.

    Example:
        >>> graph = Graph.from_edges([[0, 1, 1], [1, 0, 2]], num_nodes=4)
        >>> graph.num_nodes, graph.num_entries, graph.isolated.tolist()
        (4, 4, [False, False, False, True])
        >>> Graph.from_edges([[0, 1, 1], [1, 0, 2]], num_nodes=4, directed=True).num_entries
        3
    """

    adjacency: sp.csr_array
    directed: bool = False

    @classmethod
    def from_edges(
        cls,
        edge_index: Any,
        num_nodes: int | None = None,
        edge_weight: Any = None,
        self_loops: SelfLoops = "keep",
        directed: bool = False,
    ) -> Graph:
        """From ``edge_index`` of shape [2, E], sources first, and optional weights [E]; arrays, lists or tensors."""
        ends, num_nodes = pairs(edge_index, num_nodes)
        weight = np.ones(ends.shape[1]) if edge_weight is None else _to_numpy(edge_weight).astype(np.float64)
        if weight.shape != (ends.shape[1],):
            raise AsgatError(
                f"edge_weight must hold one number per edge: {ends.shape[1]} edges, but shape {list(weight.shape)}."
            )
        check_weights(ends[0], ends[1], weight)
        ends, weight = ends[:, weight > 0], weight[weight > 0]
        if not directed:
            ends, weight = np.concatenate([ends, ends[::-1]], axis=1), np.tile(weight, 2)
        row, col, weight = merge_entries(ends[0], ends[1], weight, self_loops, range(num_nodes))
        matrix = sp.csr_array((weight, (row, col)), shape=(num_nodes, num_nodes))
        matrix.sort_indices()
        return cls(matrix, directed)

    @classmethod
    def from_scipy(cls, matrix: Any, self_loops: SelfLoops = "keep", directed: bool = False) -> Graph:
        """From a square scipy sparse matrix or array; entry (v, u) is the edge from v to u."""
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise AsgatError(
                f"A sparse matrix is read as an adjacency matrix, which must be square, not {matrix.shape}. Give "
                "features of nodes as x."
            )
        coo = sp.coo_array(matrix)
        return cls.from_edges(np.stack(coo.coords), matrix.shape[0], coo.data, self_loops, directed)

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph[Any],
        weight: str = "weight",
        self_loops: SelfLoops = "keep",
        directed: bool = False,
    ) -> Graph:
        """From networkx; nodes are numbered in the order ``graph.nodes`` gives them, missing weights are 1.

        Directions of a ``DiGraph`` are used if ``directed``; each edge of a ``Graph`` then has both.
        """
        number = {node: i for i, node in enumerate(graph.nodes)}
        edges = [(number[u], number[v], w) for u, v, w in graph.edges(data=weight, default=1.0)]
        ends = np.array([e[:2] for e in edges], dtype=np.int64).reshape(-1, 2).T
        weights = np.array([e[2] for e in edges], dtype=np.float64)
        if directed and not graph.is_directed():
            ends, weights = np.concatenate([ends, ends[::-1]], axis=1), np.tile(weights, 2)
        return cls.from_edges(ends, len(number), weights, self_loops, directed)

    @classmethod
    def from_pyg(cls, data: Data, self_loops: SelfLoops = "keep", directed: bool = False) -> Graph:
        """From a PyG ``Data`` or ``Batch``; ``edge_weight`` is used where present."""
        return cls.from_edges(data.edge_index, data.num_nodes, data.get("edge_weight"), self_loops, directed)

    @classmethod
    def from_adj_t(cls, adj_t: Any, self_loops: SelfLoops = "keep", directed: bool = False) -> Graph:
        """From PyG's transposed adjacency matrix, whose entry (v, u) is the edge from u to v.

        A sparse ``torch.Tensor`` of any layout or a ``torch_sparse.SparseTensor``; its values are the weights.
        """
        if hasattr(adj_t, "layout"):
            matrix = adj_t.detach().to_sparse_coo().coalesce()
            ends, weight, shape = matrix.indices(), matrix.values(), tuple(matrix.shape)
        else:
            target, source, weight = adj_t.coo()
            ends, shape = (target, source), tuple(adj_t.sizes())
        if len(shape) != 2 or shape[0] != shape[1]:
            raise AsgatError(f"adj_t must be square, not {list(shape)}: one row and one column per node.")
        target, source = (_to_numpy(end) for end in ends)
        return cls.from_edges(np.stack([source, target]), shape[0], weight, self_loops, directed)

    @classmethod
    def from_pandas(
        cls,
        edges: pandas.DataFrame,
        source: str = "source",
        target: str = "target",
        weight: str | None = None,
        nodes: Any = None,
        self_loops: SelfLoops = "keep",
        directed: bool = False,
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
        weights = None if weight is None else edges[weight].to_numpy()
        return cls.from_edges(index, len(number), weights, self_loops, directed)

    @property
    def num_nodes(self) -> int:
        return int(self.adjacency.shape[0])

    @property
    def num_entries(self) -> int:
        """Stored entries: two per undirected edge between different nodes, one per self-loop or directed edge."""
        return int(self.adjacency.nnz)

    @cached_property
    def degree(self) -> Floats:
        """Weighted degree, or out-degree; a self-loop counts once."""
        return np.asarray(self.adjacency.sum(axis=1), dtype=np.float64).reshape(-1)

    @property
    def isolated(self) -> Mask:
        """Nodes without any edge, a self-loop included."""
        alone = np.diff(self.adjacency.indptr) == 0
        if self.directed:
            alone[self.adjacency.indices] = False
        return np.asarray(alone)

    @cached_property
    def components(self) -> Ints:
        """Component number of every node, whatever the directions."""
        from scipy.sparse.csgraph import connected_components

        return connected_components(self.adjacency, directed=False)[1].astype(np.int64)

    @cached_property
    def undirected(self) -> Graph:
        """The same edges without directions."""
        return Graph.from_scipy(self.adjacency) if self.directed else self

    @cached_property
    def double_cover(self) -> Graph:
        r"""The undirected bipartite graph of 2N nodes with :math:`\{2v, 2u + 1\}` for every edge from v to u.

        Node 2v stands for v as a source, 2v + 1 for v as a target. With :math:`S = D_{out}^{-1/2} A D_{in}^{-1/2}` its
        normalised adjacency is :math:`S` between sources and targets, so that its Laplacian has the eigenvalues
        :math:`1 \pm \sigma` for the singular values :math:`\sigma` of S.
        """
        coo = self.adjacency.tocoo()
        source, target = coo.coords
        return Graph.from_edges(np.stack([2 * source, 2 * target + 1]), 2 * self.num_nodes, coo.data)

    @property
    def spectral_graph(self) -> Graph:
        """The undirected graph whose Laplacian operators use: this one, or the double cover of a directed one."""
        return self.double_cover if self.directed else self

    @cached_property
    def normalised_adjacency(self) -> sp.csr_array:
        r""":math:`D^{-1/2} A D^{-1/2}`; rows and columns of isolated nodes are empty; an edge has at least 1e-20."""
        if self.directed:
            raise AsgatError(
                "A directed graph has no symmetric Laplacian; use its double_cover, or undirected, which forgets the "
                "directions."
            )
        coo = self.adjacency.tocoo()
        row, col = coo.coords
        root = root_degrees(row, coo.data, self.num_nodes)
        return sp.csr_array((normalised_weights(coo.data, root[row], root[col]), (row, col)), shape=coo.shape)

    @property
    def mean_adjacency(self) -> sp.csr_array:
        r""":math:`D^{-1} A`, which takes the weighted mean over a node's neighbours; 0 for a node without any."""
        coo = self.adjacency.tocoo()
        row, col = coo.coords
        return sp.csr_array((coo.data / self.degree[row], (row, col)), shape=coo.shape)

    @cached_property
    def laplacian(self) -> sp.csr_array:
        r"""The Laplacian :math:`L = I - D^{-1/2} A D^{-1/2}`; :math:`L_{vv} = 1` for a node without edges."""
        return sp.csr_array(sp.eye_array(self.num_nodes, format="csr") - self.normalised_adjacency)

    @cached_property
    def shifted(self) -> Any:
        """X = L - I, in CSR form."""
        return sp.csr_array(self.laplacian - sp.eye_array(self.num_nodes, format="csr"))

    @cached_property
    def digest(self) -> str:
        """Identifies the graph by its content: two graphs with the same adjacency matrix have the same digest."""
        return graph_digest(*self.arrays)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """The adjacency matrix in CSR form: indptr, indices and weights."""
        return self.adjacency.indptr, self.adjacency.indices, self.adjacency.data

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
        return Graph.from_scipy(self.adjacency, self_loops, self.directed)

    def edge_index(self) -> Ints:
        """The edges as PyG's [2, E]; both directions of an undirected one."""
        return np.stack(self.adjacency.tocoo().coords).astype(np.int64)

    def edges_once(self) -> tuple[Ints, Floats]:
        """Every edge once, [2, E], and the weights [E]; of an undirected edge the lower node comes first."""
        ends, weight = self.edge_index(), self.adjacency.tocoo().data
        once = slice(None) if self.directed else ends[0] <= ends[1]
        return ends[:, once], weight[once]

    def __repr__(self) -> str:
        directed = ", directed=True" if self.directed else ""
        return f"Graph(num_nodes={self.num_nodes}, num_entries={self.num_entries}{directed})"


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


def check_weights(source: npt.NDArray[Any], target: npt.NDArray[Any], weight: Floats) -> None:
    """Refuses edges with a weight that is negative or not finite."""
    bad = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if bad.size:
        raise AsgatError(
            f"The edge ({source[bad[0]]}, {target[bad[0]]}) has weight {weight[bad[0]]}; weights must be finite and "
            "not negative. Drop such edges or shift the weights."
        )


def root_degrees(row: npt.NDArray[Any], weight: Floats, count: int) -> Floats:
    """The square roots of the weighted degrees of ``count`` rows.

    Degrees relative to a row's largest weight, and roots, keep 1e308 and 1e-308 within the range of a float64.
    """
    largest = np.zeros(count)
    np.maximum.at(largest, row, weight)
    relative = np.bincount(row, weight / largest[row], minlength=count)
    return np.asarray(np.sqrt(largest) * np.sqrt(relative))


def normalised_weights(weight: Floats | float, root_of_row: Floats, root_of_column: Floats) -> Floats:
    """Entries of the normalised adjacency; one factor per end makes the matrix exactly symmetric."""
    root = np.sqrt(weight)
    return np.maximum((root / root_of_row) * (root / root_of_column), LEAST_ENTRY)


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
