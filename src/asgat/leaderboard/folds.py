"""Other ways to divide the nodes that may be learned from: some to train on, the rest to choose by."""

from itertools import islice

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Split

SMALL = 200  # validation nodes below which a given validation part is too small to choose by
FEW = 500  # training and validation nodes below which they are cross-validated
PARTS = 5  # of a cross-validation


def is_few(split: Split) -> bool:
    """Whether there are so few nodes to learn from that a single division of them says little."""
    return len(split.train) + len(split.val) < FEW


def fold_splits(split: Split, y: npt.NDArray[np.int64], count: int, seed: int, given: bool = False) -> list[Split]:
    """The split itself, then ``count - 1`` others of its training and validation nodes; test nodes stay as they are.

    The validation parts are about as large as the split's, have the classes of the training nodes in proportion, and
    do not overlap until every training node was in one. If the split was ``given``, its validation part may be special,
    such as the newest nodes: the others are then the split itself again, unless that part is too small to choose by.

    Where there are few nodes, all of them are cross-validated: the other splits leave out a fifth each, so that
    networks learn from more nodes, and every node counts the same.
    """
    if given and len(split.val) >= SMALL:
        return [split] * count
    rng = np.random.default_rng([seed, len(split.train)])
    both = np.concatenate([split.train, split.val])
    pool, parts = split.train, max(2, round(len(split.train) / max(1, len(split.val))))
    if is_few(split):
        pool, parts = both, PARTS

    def others() -> list[Split]:
        shuffled = rng.permutation(pool)
        by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
        pieces = [np.sort(by_class[first::parts]) for first in range(parts)]
        return [Split(np.setdiff1d(both, piece), piece, split.test) for piece in pieces]

    found, least = [split], min(2, len(set(y[split.val])))  # roc_auc needs both classes
    while len(found) < count:
        usable = [one for one in others() if set(y[split.train]) <= set(y[one.train]) and len(set(y[one.val])) >= least]
        if not usable:  # too few nodes of a class
            return [split] * count
        found += islice(usable, count - len(found))
    return found
