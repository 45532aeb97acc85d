"""Texas, Cornell and Wisconsin, and the ten splits, as Geom-GCN publishes them (Pei et al., 2020).

The split files are named 0.6_0.2 but hold 48 % of the nodes to train, 32 % to validate and 20 % to test.
"""

import re
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Dataset, Split
from asgat.data.splits import split_from_masks
from asgat.files.npz import read_npz
from asgat.files.raw_file import RawFile
from asgat.graph.graph import Graph, Ints

NUM_SPLITS = 10
MAX_TEXT_BYTES = 8 * 2**20  # a feature of two bytes becomes an object of 32 while it is read


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


def read_splits(name: str, files: Mapping[str, RawFile], y: Ints) -> tuple[Split, ...]:
    """The ten splits of a data set, without nodes that have no label (CiteSeer's files name fifteen)."""
    return tuple(_read_split(files[file], y) for file in split_files(name))


def parse_nodes(raw: RawFile) -> tuple[npt.NDArray[np.float32], Ints]:
    """Features and labels of lines ``node <tab> f1,f2,... <tab> label`` below a header, in any order."""
    rows: dict[int, tuple[npt.NDArray[np.float32], int]] = {}
    width = 0
    form, what = r"(\d{1,9})\t([^\t]*)\t(\d{1,9})", "a node with features and a label"
    for number, (node, text, label) in matched_lines(raw, form, what, "node_id\tfeature\tlabel"):
        try:
            with np.errstate(over="ignore"):  # the data set names the value that became infinite
                features = np.array([float(value) for value in text.split(",")]).astype(np.float32)
        except ValueError as error:
            raise raw.failure(f"line {number} has a feature that is not a number ({str(error)[:80]})") from error
        width = width or len(features)
        if int(node) in rows:
            raise raw.failure(f"line {number} gives node {node} a second time")
        if len(features) != width:
            raise raw.failure(f"line {number} has {len(features)} features, but the lines before it have {width}")
        rows[int(node)] = features, int(label)
    if not rows or max(rows) != len(rows) - 1:
        raise raw.failure(f"its {len(rows)} nodes must be numbered from 0 without a gap")
    x, y = zip(*(rows[node] for node in range(len(rows))), strict=True)
    return np.stack(x), np.array(y, dtype=np.int64)


def parse_edges(raw: RawFile) -> Ints:
    """Endpoints of shape [2, E] of lines ``node <tab> node`` below a header."""
    lines = matched_lines(raw, r"(\d{1,9})\t(\d{1,9})", "an edge of two nodes", "node_id\tnode_id")
    return np.array([ends for _, ends in lines], dtype=np.int64).reshape(-1, 2).T


def parse_index(raw: RawFile) -> Ints:
    """Node numbers, one a line, no header."""
    return np.array([node for _, (node,) in matched_lines(raw, r"(\d{1,9})", "a node number")], dtype=np.int64)


def matched_lines(
    raw: RawFile, form: str, what: str, header: str | None = None
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Numbers of the lines below a header, and the groups of the form that each of them must have.

    Nine digits for a node number or a label keep it far inside int64.
    """
    if len(raw.content) > MAX_TEXT_BYTES:
        raise raw.failure(f"it has {len(raw.content)} bytes, and at most {MAX_TEXT_BYTES} are allowed")
    try:
        lines = raw.content.decode("ascii").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise raw.failure(f"byte {error.start} is not ASCII") from error
    if header is not None and lines[0] != header:
        raise raw.failure(f"line 1 must be {' <tab> '.join(header.split(chr(9)))}")
    first = 0 if header is None else 1
    for number, line in enumerate(lines[first:], first + 1):
        match = re.fullmatch(form, line)
        if match is None:
            raise raw.failure(f"line {number} is {line[:40]!r}, which is not {what}")
        yield number, match.groups()


def count_classes(raw: RawFile, y: Ints) -> int:
    """The largest label plus one, refused where no label could be that large."""
    largest = int(y.max(initial=0))
    if largest >= len(y):
        raise raw.failure(f"label {largest} is out of range for {len(y)} nodes")
    return largest + 1


def _file(name: str, part: str) -> str:
    return f"geom-gcn/new_data/{name}/out1_{part}.txt"


def _read_split(raw: RawFile, y: Ints) -> Split:
    masks = read_npz(raw, ["train_mask", "val_mask", "test_mask"])
    for part, mask in masks.items():
        if mask.shape != y.shape or np.any((mask != 0) & (mask != 1)):
            raise raw.failure(f"{part} must be {len(y)} zeros and ones, not {mask.dtype} of shape {mask.shape}")
    train, val, test = (mask.astype(bool) for mask in masks.values())
    if np.any(train & val | train & test | val & test) or not np.any(train & (y >= 0)):
        raise raw.failure("its parts overlap, or there is nothing to train on")
    return split_from_masks(train, val, test, y)
