"""The nodes of a graph that is to be predicted, matched by their ids with those of the fitted graph."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from asgat.errors import counted, listed, shown
from asgat.graph.graph import Ints


def rows_of_fitted(fitted: Sequence[str], given: Sequence[str]) -> Ints | None:
    """The row that each fitted node has among the given; None unless both have the same ids, each once."""
    row = {name: number for number, name in enumerate(given)}
    rows = np.fromiter((row.get(name, -1) for name in fitted), np.int64, len(fitted))
    return rows if np.array_equal(np.sort(rows), np.arange(len(given))) else None


def difference(fitted: Sequence[str], given: Sequence[str]) -> str:
    """How ids differ, in words, with the first three: ``1 id is missing ('a'), 2 ids are new ('x', 'y')``."""
    before, now = Counter(fitted), Counter(given)
    groups = {
        "missing": [name for name in before if name not in now],
        "new": [name for name in now if name not in before],
        "given more than once": [name for name, times in (now | before).items() if times > 1],
    }
    return ", ".join(
        f"{counted(len(names), 'id is', 'ids are')} {what} ({listed([shown(name) for name in names], 3)})"
        for what, names in groups.items()
        if names
    )
