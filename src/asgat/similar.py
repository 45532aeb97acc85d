"""Links between nodes whose features are alike, beside those of the graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asgat.errors import AsgatError
from asgat.graph import Graph

MOST_NODES = 50_000  # every pair of them is compared


def join_similar(graph: Graph, x: npt.NDArray[np.float32], number: int, weight: float) -> Graph:
    r"""The graph with every node joined to the nodes whose features are most like its own.

    Features are alike by the cosine between them, each column weighted by how rare it is (tf-idf: a word that few texts
    have says more than one that all have; columns without zeros are weighted alike). Nodes that share no feature are
    not joined, and links the graph has keep their weight where it is larger. So a node without links, or with few, can
    attend to others; what the new links are worth depends on how often nodes alike are of one class.

    O(N²) cosines, in blocks.

    Args:
        graph: the graph.
        x: features [N, F].
        number: how many nodes each node chooses; it may be chosen by more.
        weight: of the new links, where 1 is the mean weight of the graph's own.

    Example:
        >>> joined = join_similar(Graph.from_edges([[0], [1]], 3), np.array([[1, 0], [0, 1], [0, 1]], "f"), 1, 0.5)
        >>> joined.adjacency.toarray().tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.neighbors import NearestNeighbors

    nodes = graph.num_nodes
    if nodes > MOST_NODES:
        raise AsgatError(
            f"similar compares every pair of nodes, which is refused above {MOST_NODES:,} of them, and this graph has "
            f"{nodes:,}; set similar=0."
        )
    number = min(number, nodes - 1)
    if number < 1 or not x.any():
        return graph
    rarity = TfidfTransformer().fit_transform(sp.csr_matrix(x, dtype=np.float64))
    distance, chosen = NearestNeighbors(n_neighbors=number, metric="cosine", algorithm="brute").fit(rarity).kneighbors()
    alike = distance < 1.0 - 1e-9
    ends = np.repeat(np.arange(nodes), number)[alike.ravel()], chosen[alike]
    usual = float(graph.adjacency.data.mean()) if graph.num_entries else 1.0
    links = sp.csr_array((np.full(len(ends[0]), weight * usual), ends), shape=(nodes, nodes))
    return Graph.from_scipy(graph.adjacency.maximum(links))
