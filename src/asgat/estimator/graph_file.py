"""A graph with features, labels, one split and ids as a single npz file, readable with numpy alone."""

import io
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Dataset
from asgat.data.splits import split_from_masks
from asgat.files.npz import read_npz
from asgat.files.raw_file import ANY_SIZE
from asgat.files.user_file import read_user_file
from asgat.graph import Graph
from asgat.memory import check_memory
from asgat.tabular.assembly import EDGE_BYTES, NODE_BYTES

NAMES = ("edges", "weight", "x", "y", "train", "val", "test", "num_classes", "ids", "id_ends")
PACKED_MOST = 192 * 2**20  # bytes of arrays above which packing them takes too long, up to ten seconds per 100 MiB


def encode_graph(dataset: Dataset, ids: Sequence[str]) -> bytes:
    """The file's bytes: ``edges`` [2, E], each edge once, ``weight``, ``x``, ``y``, masks ``train``, ``val`` and
    ``test``, and the UTF-8 bytes of all ``ids`` one after the other, each up to its place in ``id_ends``; ``directed``
    is there, and true, if the edges are directed."""
    edges, weight = dataset.graph.edges_once()
    texts = [name.encode("utf-8", "surrogatepass") for name in ids]
    arrays: dict[str, npt.NDArray[Any]] = {
        "edges": edges,
        "weight": weight.astype(np.float64),
        "x": dataset.x,
        "y": dataset.y,
        "num_classes": np.array([dataset.num_classes]),
        "ids": np.frombuffer(b"".join(texts), dtype=np.uint8),
        "id_ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
        **dataset.splits[0].masks(dataset.num_nodes),
    }
    if dataset.graph.directed:
        arrays["directed"] = np.array([True])
    stream = io.BytesIO()
    save = np.savez_compressed if sum(array.nbytes for array in arrays.values()) <= PACKED_MOST else np.savez
    save(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def decode_graph(path: Path | str, name: str) -> tuple[Dataset, list[str]]:
    """Reads such a file: a data set of that name with one split, and the ids of its nodes."""
    raw = read_user_file(path, ANY_SIZE)
    with raw.guard():
        held = read_npz(raw, NAMES, optional=("directed",))
        check_memory(NODE_BYTES * held["y"].size + EDGE_BYTES * held["weight"].size, str(raw.path))
        y = held["y"].astype(np.int64)
        directed = "directed" in held and bool(held["directed"].all())
        graph = Graph.from_edges(held["edges"].astype(np.int64), len(y), held["weight"], directed=directed)
        train, val, test = (held[part].astype(bool) for part in ("train", "val", "test"))
        split = split_from_masks(train, val, test, y)
        dataset = Dataset(name, graph, held["x"], y, (split,), int(held["num_classes"][0]), protocol="own")
        content, ends = held["ids"].astype(np.uint8).tobytes(), held["id_ends"].astype(np.int64).tolist()
        if len(ends) != len(y):
            raise raw.failure(f"it holds {len(ends)} ids for {len(y)} nodes")
        return dataset, [content[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends])]
