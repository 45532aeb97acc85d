"""k-nearest-neighbour edges: edges between nodes with similar features, added to those of the graph."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asgat.errors import AsgatError
from asgat.graph.graph import Graph, Ints, Mask

MOST_NODES = 50_000  # every pair of them is compared
BLOCK = 8_000_000  # cosines at a time
DENSE = 0.2  # share of features that are not zero, from which a dense product is faster


def add_knn_edges(graph: Graph, x: npt.NDArray[np.float32], number: int, weight: float) -> Graph:
    r"""The graph with edges from every node to the nodes with the most similar features.

    Similarity is the cosine of tf-idf weighted features: rare columns count more, columns without zeros all the same.
    Nodes that share no feature are not joined, and existing edges keep their weight where it is larger. So a node with
    few edges can attend to others; whether that helps depends on how often similar nodes are of one class. A node
    selects ``number`` others and may be selected by more; ``weight`` is relative to the mean of the graph's edges.
    In a directed graph the added edges run both ways, and the others keep their direction.

    O(N²) cosines, in blocks.

    Example:
        >>> joined = add_knn_edges(Graph.from_edges([[0], [1]], 3), np.array([[1, 0], [0, 1], [0, 1]], "f"), 1, 0.5)
        >>> joined.adjacency.toarray().tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """
    nodes = graph.num_nodes
    if nodes > MOST_NODES:
        raise AsgatError(
            f"similar compares every pair of nodes, which is refused above {MOST_NODES:,} of them, and this graph has "
            f"{nodes:,}; a model with similar=0 takes graphs of any size."
        )
    number = min(number, nodes - 1)
    if number < 1 or not x.any():
        return graph
    chosen, alike = _most_alike(x, number)
    ends = np.repeat(np.arange(nodes), number)[alike.ravel()], chosen[alike]
    links = sp.csr_array((np.full(len(ends[0]), weight * _usual_weight(graph)), ends), shape=(nodes, nodes))
    return Graph.from_scipy(graph.adjacency.maximum(links).maximum(links.T), directed=graph.directed)


def _most_alike(x: npt.NDArray[np.float32], number: int) -> tuple[Ints, Mask]:
    """The nodes most similar to each node, [N, number], and whether they share any feature with it.

    Of equally similar nodes, to nine digits, those that follow the node in number come first: the same on every
    machine, and among many identical nodes no few are selected by all.
    """
    from sklearn.feature_extraction.text import TfidfTransformer

    nodes = len(x)
    rarity = TfidfTransformer().fit_transform(sp.csr_matrix(x, dtype=np.float64))
    if rarity.nnz > DENSE * x.size:
        rarity = rarity.toarray()
    column = np.arange(nodes)
    chosen, cosine = np.empty((nodes, number), dtype=np.int64), np.empty((nodes, number))
    size = max(1, BLOCK // nodes)
    for start in range(0, nodes, size):
        row = column[start : start + size, None]
        product: Any = rarity[start : start + size] @ rarity.T
        block = product if isinstance(product, np.ndarray) else product.toarray()
        rank = np.rint(1e9 * block).astype(np.int64) * nodes - (column - row) % nodes  # no two of a row are equal
        rank[row == column] = np.iinfo(np.int64).min
        best = np.argpartition(rank, nodes - number, axis=1)[:, nodes - number :]
        chosen[start : start + size], cosine[start : start + size] = best, np.take_along_axis(block, best, axis=1)
    return chosen, cosine > 1e-9


def _usual_weight(graph: Graph) -> float:
    """The mean weight of edges between different nodes; 1 without any."""
    link = graph.adjacency.tocoo()
    weight = link.data[link.coords[0] != link.coords[1]]
    largest = float(weight.max(initial=0.0))
    return largest * float((weight / largest).mean()) if largest else 1.0
