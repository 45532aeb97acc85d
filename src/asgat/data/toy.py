"""Two small real data sets that need no file."""

import numpy as np

from asgat.data.dataset import Dataset
from asgat.data.splits import stratified_splits
from asgat.errors import AsgatError
from asgat.graph import Graph

# Zachary (1977): a member and the higher-numbered members met outside the club, 78 ties in all.
_KARATE_TIES = """
0 1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31; 1 2 3 7 13 17 19 21 30; 2 3 7 8 9 13 27 28 32; 3 7 12 13; 4 6 10;
5 6 10 16; 6 16; 8 30 32 33; 9 33; 13 33; 14 32 33; 15 32 33; 18 32 33; 19 33; 20 32 33; 22 32 33;
23 25 27 29 32 33; 24 25 27 31; 25 31; 26 29 33; 27 33; 28 31 33; 29 32 33; 30 32 33; 31 32 33; 32 33
"""
_KARATE_OFFICERS = "0000000001000011001010111111111111"  # who went with the officers when the club split


def karate(seed: int = 0) -> Dataset:
    """Zachary's karate club: 34 members, the side each took when it split, with one-hot features."""
    lines = [[int(member) for member in line.split()] for line in _KARATE_TIES.split(";")]
    ends = np.array([(line[0], other) for line in lines for other in line[1:]], dtype=np.int64).T
    y = np.array([int(side) for side in _KARATE_OFFICERS], dtype=np.int64)
    x = np.eye(len(y), dtype=np.float32)
    return Dataset("karate", Graph.from_edges(ends, len(y)), x, y, stratified_splits(y, seed=seed), 2)


def digits(neighbours: int = 10, seed: int = 0) -> Dataset:
    """scikit-learn's 1,797 handwritten digits; two images are joined if either is among the other's nearest neighbours.

    The seed is of the splits.
    """
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    pixels, labels = load_digits(return_X_y=True)
    most = len(pixels) - 1
    if isinstance(neighbours, bool) or not isinstance(neighbours, (int, np.integer)) or not 1 <= neighbours <= most:
        raise AsgatError(f"neighbours must be an integer from 1 to {most}, not {neighbours!r}.")
    graph = Graph.from_scipy(kneighbors_graph(pixels, int(neighbours)))
    y = np.asarray(labels, dtype=np.int64)
    x = (pixels / 16).astype(np.float32)  # an ink level is 0 to 16
    return Dataset("digits", graph, x, y, stratified_splits(y, seed=seed), 10)
