"""Texas, Cornell and Wisconsin, and the ten splits, as Geom-GCN publishes them (Pei et al., 2020).

The split files are named 0.6_0.2 but hold 48 % of the nodes to train, 32 % to validate and 20 % to test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Dataset, Split
from asgat.data.splits import split_from_masks
from asgat.files.npz import read_npz
from asgat.files.raw_file import RawFile
from asgat.graph import Graph

NUM_SPLITS = 10
MAX_TEXT_BYTES = 8 * 2**20  # a feature of two bytes becomes an object of 32 while it is read
MAX_DIGITS = 9  # node numbers and labels stay far inside int64


def split_files(name: str) -> tuple[str, ...]:
    """Names of the ten split files of a data set."""
    return tuple(f"geom-gcn/splits/{name}_split_0.6_0.2_{i}.npz" for i in range(NUM_SPLITS))


def webgraph_files(name: str, protocol: str) -> tuple[str, ...]:
    """Names of the files a data set needs; there is one protocol."""
    return (_file(name, "node_feature_label"), _file(name, "graph_edges"), *split_files(name))


def load_webgraph(name: str, protocol: str, files: Mapping[str, RawFile]) -> Dataset:
    """Nodes, edges and the ten splits of Texas, Cornell or Wisconsin."""
    nodes, edges = files[_file(name, "node_feature_label")], files[_file(name, "graph_edges")]
    x, y = parse_nodes(nodes)
    with edges.guard():
        graph = Graph.from_edges(parse_edges(edges), len(y))
    splits = read_splits(name, files, y)
    with nodes.guard():
        return Dataset(name, graph, x, y, splits, count_classes(nodes, y), protocol=protocol)


def read_splits(name: str, files: Mapping[str, RawFile], y: npt.NDArray[np.int64]) -> tuple[Split, ...]:
    """The ten splits of a data set, without nodes that have no label (CiteSeer's files name fifteen)."""
    return tuple(_read_split(files[file], y) for file in split_files(name))


def parse_nodes(raw: RawFile) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Features and labels of lines ``node <tab> f1,f2,... <tab> label`` below a header, in any order."""
    rows: dict[int, tuple[npt.NDArray[np.float32], int]] = {}
    width = None
    for number, fields in _lines(raw, ["node_id", "feature", "label"]):
        node, label = _integer(raw, number, fields[0]), _integer(raw, number, fields[2])
        features = _numbers(raw, number, fields[1])
        width = len(features) if width is None else width
        if node in rows:
            raise raw.failure(f"line {number} gives node {node} a second time")
        if len(features) != width:
            raise raw.failure(f"line {number} has {len(features)} features, but the lines before it have {width}")
        rows[node] = features, label
    if not rows or max(rows) != len(rows) - 1:
        raise raw.failure(f"its {len(rows)} nodes must be numbered from 0 without a gap")
    ordered = [rows[node] for node in range(len(rows))]
    return np.stack([features for features, _ in ordered]), np.array([label for _, label in ordered], dtype=np.int64)


def parse_edges(raw: RawFile) -> npt.NDArray[np.int64]:
    """Endpoints of shape [2, E] of lines ``node <tab> node`` below a header."""
    ends = [[_integer(raw, i, field) for field in fields] for i, fields in _lines(raw, ["node_id", "node_id"])]
    return np.array(ends, dtype=np.int64).reshape(-1, 2).T


def parse_index(raw: RawFile) -> npt.NDArray[np.int64]:
    """Node numbers, one a line, no header."""
    return np.array([_integer(raw, i, fields[0]) for i, fields in _lines(raw, None)], dtype=np.int64)


def count_classes(raw: RawFile, y: npt.NDArray[np.int64]) -> int:
    """The largest label plus one, refused where no label could be that large."""
    largest = int(y.max(initial=0))
    if largest >= len(y):
        raise raw.failure(f"label {largest} is out of range for {len(y)} nodes")
    return largest + 1


def _file(name: str, part: str) -> str:
    return f"geom-gcn/new_data/{name}/out1_{part}.txt"


def _read_split(raw: RawFile, y: npt.NDArray[np.int64]) -> Split:
    masks = read_npz(raw, ["train_mask", "val_mask", "test_mask"])
    for part, mask in masks.items():
        if mask.shape != y.shape or np.any((mask != 0) & (mask != 1)):
            raise raw.failure(f"{part} must be {len(y)} zeros and ones, not {mask.dtype} of shape {mask.shape}")
    train, val, test = (mask.astype(bool) for mask in masks.values())
    if np.any(train & val | train & test | val & test) or not np.any(train & (y >= 0)):
        raise raw.failure("its parts overlap, or there is nothing to train on")
    return split_from_masks(train, val, test, y)


def _lines(raw: RawFile, header: list[str] | None) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and tab-separated fields, as many as the header has; one without a header."""
    if len(raw.content) > MAX_TEXT_BYTES:
        raise raw.failure(f"it has {len(raw.content)} bytes, and at most {MAX_TEXT_BYTES} are allowed")
    try:
        lines = raw.content.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise raw.failure(f"byte {error.start} is not ASCII") from error
    if lines[-1] == "":
        lines.pop()
    if header is not None and (not lines or lines[0].split("\t") != header):
        raise raw.failure(f"line 1 must be {' <tab> '.join(header)}")
    expected = 1 if header is None else len(header)
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t")
        if len(fields) != expected:
            raise raw.failure(f"line {number} has {len(fields)} fields, but {expected} are expected")
        if header is None or number > 1:
            yield number, fields


def _integer(raw: RawFile, number: int, text: str) -> int:
    if not text.isdecimal() or len(text) > MAX_DIGITS:
        raise raw.failure(f"line {number} has {text[:40]!r} where a node number or a label is expected")
    return int(text)


def _numbers(raw: RawFile, number: int, text: str) -> npt.NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # the data set names the value that became infinite
            return np.array([float(value) for value in text.split(",")]).astype(np.float32)
    except ValueError as error:
        raise raw.failure(f"line {number} has a feature that is not a number ({str(error)[:80]})") from error
