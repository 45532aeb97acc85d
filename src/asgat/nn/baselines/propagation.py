"""The sparse matrices by which baselines propagate, built once per graph."""

from collections.abc import Callable

import scipy.sparse as sp
from torch import Tensor

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures

Edges = Tensor | Graph | SparseFeatures


def propagation(
    x: Tensor | SparseFeatures,
    edges: Edges,
    edge_weight: Tensor | None,
    matrix: Callable[[Graph], sp.csr_array],
) -> SparseFeatures:
    """The matrix of a graph as sparse features, so that one product is a whole step of message passing.

    O(E · F) time for F channels, and no message is stored, where a gather and a scatter would store all E of them.

    Args:
        x: node features; the matrix takes their device and type.
        edges: the graph, as edges [2, E] (read as undirected), a ``Graph``, or such a matrix built before.
        matrix: one of the functions below.
    """
    if not isinstance(edges, SparseFeatures):
        graph = edges if isinstance(edges, Graph) else Graph.from_edges(edges, x.size(0), edge_weight)
        edges = SparseFeatures.from_dense(matrix(graph), x.device, x.dtype)
    if edges.size(1) != x.size(0):
        raise AsgatError(f"x has {x.size(0)} rows, but the graph has {edges.size(1)} nodes.")
    return edges


def adjacency(graph: Graph) -> sp.csr_array:
    """A."""
    return graph.adjacency


def symmetric(graph: Graph) -> sp.csr_array:
    r""":math:`D^{-1/2} A D^{-1/2}`."""
    return graph.normalised_adjacency


def renormalised(graph: Graph) -> sp.csr_array:
    r""":math:`\tilde D^{-1/2} \tilde A \tilde D^{-1/2}`, where every node without a self-loop gets one of weight 1."""
    return graph.with_self_loops("add").normalised_adjacency


def mean(graph: Graph) -> sp.csr_array:
    r""":math:`D^{-1} A`; rows of isolated nodes are empty."""
    return graph.mean_adjacency
