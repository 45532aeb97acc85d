"""The two copies of a node of a directed graph, on which attention works: see :attr:`asgat.graph.Graph.double_cover`.

Node v is 2v as the source of its edges, its side ``"out"``, and 2v + 1 as the target of edges, its side ``"in"``.
"""

import numpy as np

from asgat.graph.graph import Graph, Ints

SIDES = ("out", "in")


def operator_rows(graph: Graph, nodes: Ints) -> Ints:
    """The rows of nodes [B] in an operator of the graph: [B], or [2B] if it is directed, both sides of a node."""
    return np.stack([2 * nodes, 2 * nodes + 1], axis=1).reshape(-1) if graph.directed else nodes


def split_copies(graph: Graph, rows: Ints) -> tuple[Ints, Ints | None]:
    """The nodes of rows of an operator and, if the graph is directed, their sides as places in ``SIDES``."""
    return (rows // 2, rows % 2) if graph.directed else (rows, None)
