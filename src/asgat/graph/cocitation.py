"""Directed graphs: nodes joined if they link to the same nodes, or are linked by the same nodes."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from asgat.errors import AsgatError
from asgat.graph.graph import Floats, Graph, pairs

MOST = 500_000_000  # products of two numbers


def cocitation_graph(edge_index: Any, num_nodes: int | None = None, direction: Literal["out", "in"] = "out") -> Graph:
    r"""An undirected graph from a directed one, on which spectral theory holds.

    Polynomials of the adjacency matrix A of a directed graph are unbounded. With
    :math:`\bar A = D_{out}^{-1/2} A D_{in}^{-1/2}`, those of :math:`\bar A \bar A^\top` (``"out"``) and
    :math:`\bar A^\top \bar A` (``"in"``) are not: both are symmetric, with eigenvalues in [0, 1]. They are the
    normalised adjacency matrices of

    .. math:: B_{out} = A D_{in}^{-1} A^\top, \qquad B_{in} = A^\top D_{out}^{-1} A,

    whose degrees are those of A, because :math:`B_{out} 1 = A D_{in}^{-1} d_{in} = d_{out}`. So this graph, with its
    weights and self-loops, can be used like any other: operators, tables, certificates. Two nodes are joined in
    :math:`B_{out}` if they link to the same node, with a larger weight the fewer others do; in :math:`B_{in}` if the
    same node links to both.

    O(Σ d²) time and memory at most, over the degrees in the middle.

    Args:
        edge_index: edges from u to v, [2, E]; arrays, lists or tensors. Several of one pair count once.
        num_nodes: number of nodes; by default the largest index plus one.
        direction: ``"out"``, by the nodes they link to, or ``"in"``, by the nodes that link to them.

    Example:
        >>> graph = cocitation_graph([[0, 1], [2, 2]], num_nodes=3)  # 0 → 2 ← 1
        >>> graph.edge_index().tolist()
        [[0, 0, 1, 1], [0, 1, 0, 1]]
    """
    if direction not in ("out", "in"):
        raise AsgatError(f"direction must be out or in, not {direction!r}.")
    ends, num_nodes = pairs(edge_index, num_nodes)
    start, end = ends if direction == "out" else ends[::-1]
    step = sp.csr_array((np.ones(len(start)), (start, end)), shape=(num_nodes, num_nodes))
    step.sum_duplicates()
    step.data[:] = 1.0
    middle = np.bincount(step.indices, minlength=num_nodes).astype(np.float64)
    walks = float((middle**2).sum())
    if walks > MOST:
        raise AsgatError(
            f"Joining nodes by their common neighbours takes {walks:,.0f} products, and at most {MOST:,} are allowed; "
            "leave out the nodes with the most edges."
        )
    share: Floats = np.divide(1.0, middle, out=np.zeros(num_nodes), where=middle > 0)
    joined = sp.csr_array(step @ sp.diags_array(share) @ step.T)
    joined = sp.csr_array((joined + joined.T) / 2)  # symmetric up to rounding
    joined.sort_indices()
    return Graph(joined)
