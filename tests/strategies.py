"""Random graphs as hypothesis strategies, and a fixed zoo of the shapes that break things."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from asgat.graph import Graph


@dataclass(frozen=True)
class EdgeList:
    """A graph as a user might hold it: directed, with duplicates, zero weights and self-loops."""

    num_nodes: int
    ends: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]

    def graph(self, self_loops: Any = "keep", directed: bool = False) -> Graph:
        return Graph.from_edges(self.ends, self.num_nodes, self.weight, self_loops, directed)


WEIGHTS = st.floats(0.05, 8.0, allow_nan=False).map(lambda w: round(w, 3))


@st.composite
def edge_lists(draw: Any, min_nodes: int = 1, max_nodes: int = 10, zero_weights: bool = True) -> EdgeList:
    """Isolated nodes, several components, self-loops, weights and bipartite graphs all come up often."""
    num_nodes = draw(st.integers(min_nodes, max_nodes))
    if num_nodes == 0:
        return EdgeList(0, np.empty((2, 0), dtype=np.int64), np.empty(0))
    linked = draw(st.integers(1, num_nodes))  # the nodes beyond have no edge
    node = st.integers(0, linked - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=2 * num_nodes))
    if draw(st.booleans()) and linked > 1:  # bipartite: one end even, the other odd
        pairs = [(u - u % 2, v | 1) for u, v in pairs if v | 1 < linked]
    size = len(pairs)
    weights = [1.0] * size
    if draw(st.booleans()):
        choice = st.one_of(WEIGHTS, st.just(0.0)) if zero_weights else WEIGHTS
        weights = draw(st.lists(choice, min_size=size, max_size=size))
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return EdgeList(num_nodes, ends, np.array(weights, dtype=np.float64))


def graphs(min_nodes: int = 1, max_nodes: int = 10) -> st.SearchStrategy[Graph]:
    return edge_lists(min_nodes, max_nodes).map(EdgeList.graph)


def directed_graphs(min_nodes: int = 1, max_nodes: int = 10) -> st.SearchStrategy[Graph]:
    """With edges one way and both ways."""
    return edge_lists(min_nodes, max_nodes).map(lambda edges: edges.graph(directed=True))


def generic_graph(seed: int, num_nodes: int = 14) -> Graph:
    """Three weighted components (one of them bipartite), self-loops and two isolated nodes; no scores tie."""
    rng = np.random.default_rng(seed)
    third = (num_nodes - 2) // 3
    edges = []
    for part in range(2):
        nodes = np.arange(part * third, (part + 1) * third)
        edges += list(pairwise(nodes))  # connected
        edges += [tuple(rng.choice(nodes, 2)) for _ in range(third)]  # self-loops among them
    rest = np.arange(2 * third, num_nodes - 2)
    edges += [(u, v) for u in rest[::2] for v in rest[1::2]]
    ends = np.array(edges).T
    shuffle = rng.permutation(num_nodes)  # so that components are not runs of numbers
    return Graph.from_edges(shuffle[ends], num_nodes, rng.uniform(0.2, 3.0, ends.shape[1]))


def permuted(graph: Graph, order: npt.NDArray[np.int64]) -> Graph:
    """The graph in which node ``order[i]`` is called i."""
    return Graph.from_scipy(graph.adjacency[order][:, order])


ZOO: dict[str, Graph] = {
    "no nodes": Graph.from_edges([[], []], 0),
    "one node": Graph.from_edges([[], []], 1),
    "one loop": Graph.from_edges([[0], [0]], 1),
    "no edges": Graph.from_edges([[], []], 5),
    "loops only": Graph.from_edges([[0, 1, 2], [0, 1, 2]], 4, [1.0, 0.3, 7.0]),
    "one edge": Graph.from_edges([[0], [1]], 2),
    "path": Graph.from_edges([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]),
    "star": Graph.from_edges([[0, 0, 0, 0, 0], [1, 2, 3, 4, 5]], 7),
    "even cycle": Graph.from_edges([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]),
    "bipartite": Graph.from_edges([[0, 0, 0, 1, 1, 1], [2, 3, 4, 2, 3, 4]]),
    "complete": Graph.from_edges(np.argwhere(np.ones((5, 5)) - np.eye(5)).T),
    "generic": generic_graph(0),
    "generic too": generic_graph(1, 20),
}
