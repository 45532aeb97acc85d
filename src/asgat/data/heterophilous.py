"""Graphs as the heterophilous-graphs collection publishes them (Platonov et al., 2023).

One npz archive each: features, labels, edges and ten splits as masks. Chameleon and Squirrel are the directed
graphs of the paper, symmetrised here, directed as published in those called ``-directed``, or co-citation graphs in
those called ``-out``; their masks are the Geom-GCN splits. The archive of Chameleon-filtered-directed has the nodes,
features and masks of Chameleon-filtered's, and the same links with directions and 50 self-loops.
"""

from collections.abc import Mapping

import numpy as np

from asgat.data.dataset import Dataset
from asgat.data.geom_gcn import count_classes
from asgat.data.splits import split_from_masks
from asgat.files.npz import read_npz
from asgat.files.raw_file import RawFile
from asgat.graph import Graph
from asgat.graph.cocitation import cocitation_graph

# Archives that are not called as the data set is.
_ARCHIVES = {"chameleon": "chameleon_directed", "squirrel": "squirrel_directed", "cornell-true": "cornell"}
MAX_SPLITS = 100
_MASKS = ("train_masks", "val_masks", "test_masks")


def heterophilous_files(name: str, protocol: str) -> tuple[str, ...]:
    """Name of the one archive a data set needs; it holds the splits too."""
    archive = _ARCHIVES.get(name.removesuffix("-out"), name.replace("-", "_"))
    return (f"heterophilous-graphs/data/{archive}.npz",)


def load_heterophilous(name: str, protocol: str, files: Mapping[str, RawFile]) -> Dataset:
    """Graph, features, labels and splits out of one archive."""
    raw = files[heterophilous_files(name, protocol)[0]]
    arrays = read_npz(raw, ["node_features", "node_labels", "edges", *_MASKS])
    x, y, edges = arrays["node_features"], arrays["node_labels"], arrays["edges"]
    masks = [arrays[part] for part in _MASKS]
    if x.ndim != 2 or y.shape != x.shape[:1] or y.dtype.kind != "i" or np.any(y < 0):
        raise raw.failure(f"features {x.shape} and labels {y.dtype} {y.shape} do not fit, or a label is negative")
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind != "i":
        raise raw.failure(f"edges must be integers of shape [E, 2], not {edges.dtype} of shape {edges.shape}")
    if any(m.dtype != bool or m.ndim != 2 or m.shape != (len(masks[0]), len(y)) for m in masks):
        raise raw.failure(f"masks must be true or false for each split and each of {len(y)} nodes")
    if len(masks[0]) > MAX_SPLITS:
        raise raw.failure(f"it has {len(masks[0])} splits, and at most {MAX_SPLITS} are allowed")
    with raw.guard():
        y = y.astype(np.int64)
        splits = tuple(split_from_masks(a, b, c, y) for a, b, c in zip(*masks, strict=True))
        if name.endswith("-out"):  # pages joined by the pages they link to
            graph = cocitation_graph(edges.T, len(y))
        else:
            graph = Graph.from_edges(edges.T, len(y), directed=name.endswith("-directed"))
        return Dataset(name, graph, x, y, splits, count_classes(raw, y), protocol=protocol)
