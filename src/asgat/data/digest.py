"""A fingerprint of a data set, by which a run directory or a checkpoint recognises the data it was made from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Dataset, Split

ELEMENTS_AT_ONCE = 1 << 20


def dataset_digest(dataset: Dataset) -> str:
    """SHA-256 in hexadecimal of everything a data set trains and tests on; its name and protocol are not part of it.

    The same on every machine and with every version of numpy. O(bytes) time, constant memory.
    """
    graph = dataset.graph.adjacency
    return arrays_digest(
        (graph.indptr, graph.indices, graph.data),
        (dataset.x, dataset.y),
        dataset.splits,
        dataset.num_classes,
        dataset.metric,
    )


def arrays_digest(
    graph: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]],
    nodes: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    splits: Iterable[Split],
    num_classes: int,
    metric: str,
) -> str:
    """The digest of a data set given as arrays: (indptr, indices, data) of the graph, (features, labels) and splits."""
    digest = hashlib.sha256(f"asgat data set 1: {num_classes} classes, {metric}".encode())

    def add(name: str, array: npt.NDArray[Any], dtype: str) -> None:
        """One array, in the byte order and integer width of every machine."""
        digest.update(f"\n{name} {dtype} {list(array.shape)}\n".encode())
        rows = max(1, ELEMENTS_AT_ONCE // max(1, int(np.prod(array.shape[1:]))))
        for first in range(0, len(array), rows):
            digest.update(array[first : first + rows].astype(dtype).tobytes())

    for name, array, dtype in zip(("indptr", "indices", "data"), graph, ("<i8", "<i8", "<f8"), strict=True):
        add(name, array, dtype)
    add("features", nodes[0], "<f4")
    add("labels", nodes[1], "<i8")
    for split in splits:
        for part, members in split.parts().items():
            add(part, members, "<i8")
    return digest.hexdigest()
