"""Splits drawn at random, and splits given as masks."""

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Split
from asgat.errors import AsgatError

Mask = npt.NDArray[np.bool_]


def stratified_splits(
    y: npt.NDArray[np.int64], num_splits: int = 10, seed: int = 0, train: float = 0.48, val: float = 0.32
) -> tuple[Split, ...]:
    """Seeded random splits with the same proportions of every class.

    The defaults are the proportions in the Geom-GCN split files. Every class has at least one training node; nodes
    without a label (-1) are in no part. Split i depends only on the seed and on i.

    Args:
        y: labels of shape [N].
        train, val: shares of each class to train and to validate on; what is left is the test part.
    """
    if num_splits < 1:
        raise AsgatError(f"num_splits must be at least 1, but is {num_splits}.")
    if not (train > 0 and val >= 0 and train + val <= 1):
        raise AsgatError(f"train must be positive and train + val at most 1, but they are {train} and {val}.")
    check_seed(seed)
    classes = np.unique(y[y >= 0])
    if not classes.size:
        raise AsgatError("There is no labelled node to draw a split from.")
    members = [np.flatnonzero(y == label) for label in classes]
    return tuple(_draw(members, np.random.default_rng([seed, i]), train, val) for i in range(num_splits))


def split_from_masks(train: Mask, val: Mask, test: Mask, y: npt.NDArray[np.int64]) -> Split:
    """The split given by three masks of shape [N], without the nodes that have no label."""
    return Split(*(np.flatnonzero(mask & (y >= 0)) for mask in (train, val, test)))


def check_seed(seed: int) -> None:
    """Refuses seeds that numpy does not accept."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise AsgatError(f"seed must be a non-negative integer, not {seed!r}.")


def _draw(members: list[npt.NDArray[np.int64]], rng: np.random.Generator, train: float, val: float) -> Split:
    parts: tuple[list[npt.NDArray[np.int64]], ...] = ([], [], [])
    for nodes in members:
        shuffled = rng.permutation(nodes)
        first = max(1, round(train * len(nodes)))
        second = max(first, round((train + val) * len(nodes)))
        for part, piece in zip(parts, np.split(shuffled, [first, second]), strict=True):
            part.append(piece)
    return Split(*(np.sort(np.concatenate(part)) for part in parts))
