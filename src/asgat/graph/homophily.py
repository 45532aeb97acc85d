r"""Homophily: the paper's :math:`\beta`, and two edge-wise measures.

All ignore weights and self-loops. Nodes with label -1 are unlabelled: they have no value and are not counted as
neighbours. In a directed graph both ends of an edge are neighbours, twice if there is an edge each way.
"""

import numpy as np

from asgat.graph.graph import Floats, Graph, Ints


def _labelled_pairs(graph: Graph, y: Ints) -> tuple[Ints, Ints]:
    row, col = graph.edge_index()
    if graph.directed:
        row, col = np.concatenate([row, col]), np.concatenate([col, row])
    kept = (row != col) & (y[row] >= 0) & (y[col] >= 0)
    return row[kept], col[kept]


def node_homophily(graph: Graph, y: Ints) -> Floats:
    r""":math:`\beta_v`, the share of v's neighbours with v's label; 0 for a node without neighbours."""
    row, col = _labelled_pairs(graph, y)
    same = np.bincount(row, weights=y[row] == y[col], minlength=graph.num_nodes)
    neighbours = np.bincount(row, minlength=graph.num_nodes)
    return np.asarray(same / np.maximum(neighbours, 1))


def beta(graph: Graph, y: Ints) -> float:
    r""":math:`\beta`, the mean of :math:`\beta_v` over the labelled nodes; NaN without any."""
    labelled = y >= 0
    return float(node_homophily(graph, y)[labelled].mean()) if labelled.any() else float("nan")


def edge_homophily(graph: Graph, y: Ints) -> float:
    """The share of edges that join equal labels; NaN without edges."""
    row, col = _labelled_pairs(graph, y)
    return float(np.mean(y[row] == y[col])) if len(row) else float("nan")


def adjusted_homophily(graph: Graph, y: Ints) -> float:
    r"""Edge homophily :math:`h` corrected for chance (Platonov et al., 2023).

    :math:`(h - \sum_c p_c^2) / (1 - \sum_c p_c^2)` with :math:`p_c` the share of edge ends in class c: 0 for labels
    drawn independently of the edges, 1 for perfect homophily, negative under heterophily. NaN without edges or with
    all edge ends in one class.
    """
    row, _ = _labelled_pairs(graph, y)
    if not len(row):
        return float("nan")
    share = np.bincount(y[row]) / len(row)
    chance = float(np.sum(share**2))
    return (edge_homophily(graph, y) - chance) / (1 - chance) if chance < 1 else float("nan")
