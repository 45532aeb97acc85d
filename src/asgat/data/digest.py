"""A fingerprint of a data set, by which a run directory or a checkpoint recognises the data it was made from."""

import hashlib
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Dataset, Split

Array = npt.NDArray[Any]

ELEMENTS_AT_ONCE = 1 << 20


def dataset_digest(dataset: Dataset) -> str:
    """SHA-256 in hexadecimal of everything a data set trains and tests on; its name and protocol are not part of it.

    The same on every machine and with every version of numpy. O(bytes) time, constant memory.
    """
    return arrays_digest(
        dataset.graph.arrays,
        (dataset.x, dataset.y),
        dataset.splits,
        dataset.num_classes,
        dataset.metric,
        dataset.graph.directed,
    )


def arrays_digest(
    graph: tuple[Array, Array, Array],
    nodes: tuple[Array, Array],
    splits: Iterable[Split],
    num_classes: int,
    metric: str,
    directed: bool = False,
) -> str:
    """The digest of a data set given as arrays: (indptr, indices, data) of the graph, (features, labels) and splits."""
    kind = ", directed" if directed else ""
    digest = hashlib.sha256(f"asgat data set 1: {num_classes} classes, {metric}{kind}".encode())
    whole = zip(
        ("indptr", "indices", "data", "features", "labels"),
        (*graph, *nodes),
        ("<i8", "<i8", "<f8", "<f4", "<i8"),  # the byte order and integer width of every machine
        strict=True,
    )
    parts = ((part, members, "<i8") for split in splits for part, members in split.parts().items())
    for name, array, dtype in chain(whole, parts):
        digest.update(f"\n{name} {dtype} {list(array.shape)}\n".encode())
        rows = max(1, ELEMENTS_AT_ONCE // max(1, int(np.prod(array.shape[1:]))))
        for first in range(0, len(array), rows):
            digest.update(array[first : first + rows].astype(dtype).tobytes())
    return digest.hexdigest()
