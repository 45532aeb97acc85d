"""Whether the edges of a user's graph seem to have a direction."""

import numpy as np
import numpy.typing as npt

MOST_ONE_WAY = 0.2  # share of edges that also run the other way, below which they seem to have a direction
FEWEST = 10  # edges from which a share says something


def reciprocal_share(ends: npt.NDArray[np.int64], num_nodes: int, listed_once: bool = False) -> float | None:
    """The share of the edges [2, E] between different nodes that also run the other way; None if there are few edges.

    ``listed_once``: whether a list of undirected edges may name each pair once. Then the share is None, too, where the
    lower node always comes first, as such lists often have it.
    """
    source, target = ends[:, ends[0] != ends[1]]
    edges = np.unique(source * num_nodes + target)
    if len(edges) < FEWEST or (listed_once and bool((source < target).all())):
        return None
    back = edges % num_nodes * num_nodes + edges // num_nodes
    return float(np.isin(back, edges).mean())
