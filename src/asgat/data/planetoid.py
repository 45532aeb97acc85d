"""Cora, CiteSeer and Pubmed as Planetoid publishes them (Yang et al., 2016).

The files hold the training nodes (``y``), all nodes but the test nodes (``allx``, ``ally``), the test nodes
in the order of ``test.index`` (``tx``, ``ty``) and the neighbours of every node (``graph``). Fifteen nodes of
CiteSeer are in the graph only: they have no features and no label here.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Dataset, Split
from asgat.data.geom_gcn import parse_index, read_splits, split_files
from asgat.data.legacy_pickle import unpickle_array, unpickle_csr, unpickle_neighbours
from asgat.files.raw_file import RawFile
from asgat.graph.graph import Graph, Ints

NUM_VALIDATION = 500
MAX_FEATURE_ENTRIES = 2**26  # as dense float32, 256 MiB; Pubmed has a seventh of it

_PARTS = ("allx", "tx", "ally", "ty", "y", "graph", "test.index")


def planetoid_files(name: str, protocol: str) -> tuple[str, ...]:
    """Names of the files a protocol needs."""
    own = tuple(_file(name, part) for part in _PARTS)
    return own + split_files(name) if protocol == "geom-gcn" else own


def load_planetoid(name: str, protocol: str, files: Mapping[str, RawFile]) -> Dataset:
    """Loads the parts and splits them by a protocol.

    ``"public"``: 20 training nodes per class, 500 to validate, 1000 to test. ``"full"``: the same validation and test
    nodes, all other labelled nodes to train. ``"geom-gcn"``: ten splits 48/32/20.
    """
    part = {key: files[_file(name, key)] for key in _PARTS}
    ends, num_nodes = unpickle_neighbours(part["graph"])
    x, y, test, num_classes = _nodes(part, num_nodes)
    published = protocol == "geom-gcn"
    splits = read_splits(name, files, y) if published else (_fixed_split(protocol, part["y"], y, test),)
    with part["graph"].guard():
        graph = Graph.from_edges(ends, num_nodes)
    with part["allx"].guard():
        return Dataset(name, graph, x, y, splits, num_classes, protocol=protocol)


def _file(name: str, part: str) -> str:
    return f"planetoid/ind.{name}.{part}"


def _nodes(part: Mapping[str, RawFile], num_nodes: int) -> tuple[npt.NDArray[np.float32], Ints, Ints, int]:
    """Features, labels, test nodes and number of classes, in the order of the graph."""
    known, tested = unpickle_csr(part["allx"]), unpickle_csr(part["tx"])
    known_y, num_classes = _labels(part["ally"])
    tested_y, test_classes = _labels(part["ty"])
    test = parse_index(part["test.index"])
    num_known, num_features = known.shape
    if len(known_y) != num_known:
        raise part["ally"].failure(f"it labels {len(known_y)} nodes, but allx has {num_known}")
    if tested.shape != (len(test), num_features):
        raise part["tx"].failure(f"its shape is {tested.shape}, but ({len(test)}, {num_features}) is expected")
    if (len(tested_y), test_classes) != (len(test), num_classes):
        raise part["ty"].failure(
            f"its shape is ({len(tested_y)}, {test_classes}), but ({len(test)}, {num_classes}) is expected"
        )
    if len(np.unique(test)) != len(test) or np.any((test < num_known) | (test >= num_nodes)):
        raise part["test.index"].failure(f"test nodes must be distinct and from {num_known} to {num_nodes - 1}")
    if num_known > num_nodes or num_nodes * num_features > MAX_FEATURE_ENTRIES:
        raise part["allx"].failure(f"{num_known} x {num_features} features do not fit {num_nodes} nodes")
    x = np.zeros((num_nodes, num_features), dtype=np.float32)
    y = np.full(num_nodes, -1, dtype=np.int64)
    with np.errstate(over="ignore"):  # the data set names the value that became infinite
        x[:num_known], x[test] = known.toarray(), tested.toarray()
    y[:num_known], y[test] = known_y, tested_y
    return x, y, test, num_classes


def _labels(raw: RawFile) -> tuple[Ints, int]:
    """Labels and number of classes of a one-hot matrix; an empty row is no label."""
    one_hot = unpickle_array(raw)
    if one_hot.ndim != 2 or not one_hot.shape[1] or np.any((one_hot != 0) & (one_hot != 1)):
        raise raw.failure("labels must be a matrix of zeros and ones")
    marks = one_hot.sum(axis=1)
    if np.any(marks > 1):
        raise raw.failure(f"row {np.flatnonzero(marks > 1)[0]} has two labels")
    return np.where(marks == 1, one_hot.argmax(axis=1), -1).astype(np.int64), one_hot.shape[1]


def _fixed_split(protocol: str, raw: RawFile, y: Ints, test: Ints) -> Split:
    """The one split of the files; unlike the authors' loader, without the nodes that have no label."""
    num_train = len(_labels(raw)[0])
    val = np.arange(num_train, num_train + NUM_VALIDATION)
    if not num_train or val[-1] >= min(test.min(initial=len(y)), len(y)):
        raise raw.failure(f"{num_train} training and {NUM_VALIDATION} validation nodes do not fit {len(y)} nodes")
    train = np.arange(num_train)
    if protocol == "full":
        train = np.setdiff1d(np.arange(len(y)), np.concatenate([val, test]))
    return Split(*(nodes[y[nodes] >= 0] for nodes in (train, val, np.sort(test))))
