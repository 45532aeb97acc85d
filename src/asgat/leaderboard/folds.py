"""Other ways to divide the nodes that may be learned from: some to train on, the rest to choose by."""

from itertools import islice

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Split

SMALL = 200  # validation nodes below which a given validation part is too small to choose by


def fold_splits(split: Split, y: npt.NDArray[np.int64], count: int, seed: int, given: bool = False) -> list[Split]:
    """The split itself, then ``count - 1`` others of its training and validation nodes; test nodes stay as they are.

    The validation parts are about as large as the split's, have the classes of the training nodes in proportion, and
    do not overlap until every training node was in one. If the split was ``given``, its validation part may be special,
    such as the newest nodes: the others are then the split itself again, unless that part is too small to choose by.
    """
    if given and len(split.val) >= SMALL:
        return [split] * count
    rng = np.random.default_rng([seed, len(split.train)])
    both = np.concatenate([split.train, split.val])
    parts = max(2, round(len(split.train) / max(1, len(split.val))))

    def others() -> list[Split]:
        shuffled = rng.permutation(split.train)
        by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
        pieces = [np.sort(by_class[first::parts]) for first in range(parts)]
        return [Split(np.setdiff1d(both, piece), piece, split.test) for piece in pieces]

    found = [split]
    while len(found) < count:
        usable = [one for one in others() if len(one.val) and set(y[split.train]) <= set(y[one.train])]
        if not usable:  # too few nodes of a class
            return [split] * count
        found += islice(usable, count - len(found))
    return found
