"""A graph too large to be read whole: a folder of memory-mapped .npy files and a JSON header."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asgat.data.dataset import Dataset, Split
from asgat.data.digest import arrays_digest
from asgat.errors import AsgatError, brief, shown
from asgat.files.npz import open_npy
from asgat.files.user_file import read_user_file
from asgat.graph import Graph
from asgat.graph.graph_digest import graph_digest
from asgat.tables.sparse_rows import SparseRows
from asgat.tables.truncated_builder import RECORD

Array = npt.NDArray[Any]

FORMAT, VERSION = "asgat-graph", 1
MANY = 10_000  # splits
MAX_HEADER_BYTES = 2**20
SOURCE = ".source"
ENTRIES_AT_ONCE = 1 << 22
METRICS = ("micro_f1", "roc_auc")  # which ranks can compute from their parts
PARTS = ("none", "train", "val", "test")  # of a split, by number


@dataclass(frozen=True, kw_only=True)
class Header:
    """``header.json``: the sizes, and how the folder was made."""

    name: str
    num_nodes: int
    num_entries: int
    num_features: int
    num_classes: int
    num_splits: int
    metric: str = "micro_f1"
    protocol: str = "own"
    weighted: bool = False
    self_loops: str = "keep"
    order: str = "none"
    directed: bool = False

    def encode(self) -> bytes:
        return (json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2) + "\n").encode()

    def files(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Every array of the folder, a ``.npy`` file each: type and shape."""
        n, entries = self.num_nodes, self.num_entries
        arrays: dict[str, tuple[Any, tuple[int, ...]]] = {
            "indptr": (np.int64, (n + 1,)),  # of the adjacency in CSR form, symmetric unless directed
            "indices": (np.int32, (entries,)),  # its columns, ascending
            "features": (np.float32, (n, self.num_features)),
            "labels": (np.int32, (n,)),  # -1 without one
            "node": (np.int64, (n,)),  # the number each node had before reordering
        }
        if not self.directed:
            arrays["shifted"] = (np.float64, (entries,))  # the entries of X = L - I = -D^(-1/2) A D^(-1/2)
            arrays["records"] = (RECORD, (n,))  # per node its row and neighbours' sums, for the truncated builder
        if self.weighted:  # unless all weights are 1
            arrays["weight"] = (np.float64, (entries,))
        return arrays | {f"split-{i}": (np.uint8, (n,)) for i in range(self.num_splits)}


class OnDiskGraph:
    """A graph with features, labels and splits in a folder, of which only the parts in use are read.

    The folder holds ``header.json`` (:class:`Header`) and the arrays of :meth:`Header.files`. ``asgat convert`` writes
    it (:mod:`asgat.disk.converter`). Missing or damaged files and files of another size are refused.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.header = header = _read_header(self.path)
        self.name, self.metric, self.protocol = header.name, header.metric, header.protocol
        self.num_nodes, self.num_entries, self.num_features = header.num_nodes, header.num_entries, header.num_features
        self.num_classes, self.num_splits, self.directed = header.num_classes, header.num_splits, header.directed
        for name, (dtype, shape) in self.header.files().items():
            array = self._map(name)
            if array.dtype != np.dtype(dtype) or array.shape != shape:
                raise AsgatError(
                    f"{self.path / name}.npy should hold {np.dtype(dtype).name} {list(shape)}, but holds "
                    f"{array.dtype.name} {list(array.shape)}; convert the graph again."
                )

    def matrix(self) -> SparseRows:
        """X for the builders of tables, checked once; O(E) time and a byte per entry. A directed graph has none."""
        if self.directed:
            raise AsgatError(f"{self.path} is directed and can be trained on only in memory: use to_dataset().")
        self._check_rows()
        return SparseRows(*(self._map(name) for name in ("indptr", "indices", "shifted", "records")))

    def entries_before(self) -> Array:
        """The number of entries in the rows before each row, and of all, [N + 1]."""
        return self._map("indptr")

    def mean_rows(self, first: int, last: int) -> sp.csr_array:
        """Rows ``first`` to ``last - 1`` of the matrix that takes the mean over neighbours, weighted as the edges."""
        bounds = self._map("indptr")[first : last + 1]
        entries = slice(int(bounds[0]), int(bounds[-1]))
        column = np.array(self._map("indices")[entries])
        weight = np.array(self._map("weight")[entries]) if self.header.weighted else np.ones(len(column))
        self._checked("weight", weight, _are_weights(weight))
        rows = sp.csr_array((weight, column, bounds - bounds[0]), shape=(last - first, self.num_nodes))
        rows.data /= np.repeat(rows.sum(axis=1), np.diff(rows.indptr))
        return rows

    def features(self, first: int, last: int) -> npt.NDArray[np.float32]:
        """Feature rows of the nodes ``first`` to ``last - 1``."""
        rows = np.array(self._map("features")[first:last])
        return self._checked("features", rows, np.isfinite(rows).all())

    def labels(self, first: int, last: int) -> npt.NDArray[np.int64]:
        rows = self._map("labels")[first:last].astype(np.int64)
        return self._checked("labels", rows, ((rows >= -1) & (rows < self.num_classes)).all())

    def split(self, number: int, first: int, last: int) -> Split:
        """A split, restricted to the nodes ``first`` to ``last - 1`` and numbered from 0."""
        part = self._map(f"split-{number}")[first:last]
        self._checked(f"split-{number}", part, (part < len(PARTS)).all())
        return Split(*(np.flatnonzero(part == PARTS.index(name)) for name in ("train", "val", "test")))

    def adjacency(self) -> tuple[Array, Array, Array | None]:
        """The adjacency matrix as maps of indptr, indices and, unless all are 1, weights; checked."""
        self._check_rows()
        weight = self._map("weight") if self.header.weighted else None
        if weight is not None:
            self._checked("weight", weight, _are_weights(weight))
        return self._map("indptr"), self._map("indices"), weight

    def to_dataset(self) -> Dataset:
        """As a data set, whose graph is read into memory."""
        n = self.num_nodes
        splits = tuple(self.split(i, 0, n) for i in range(self.num_splits))
        x = open_npy(self.path / "features.npy", "convert the graph again")
        indptr, indices, weight = self.adjacency()
        weight = np.ones(self.num_entries) if weight is None else np.array(weight)
        graph = Graph(sp.csr_array((weight, np.array(indices), np.array(indptr)), shape=(n, n)), self.directed)
        return Dataset(self.name, graph, x, self.labels(0, n), splits, self.num_classes, self.metric, self.protocol)

    def digest(self) -> str:
        """The :func:`~asgat.data.digest.dataset_digest` of :meth:`to_dataset`, without reading the graph whole."""
        indptr, indices, x, y = (self._map(name) for name in ("indptr", "indices", "features", "labels"))
        weight = self._map("weight") if self.header.weighted else np.broadcast_to(1.0, self.num_entries)
        splits = (self.split(i, 0, self.num_nodes) for i in range(self.num_splits))
        return arrays_digest((indptr, indices, weight), (x, y), splits, self.num_classes, self.metric, self.directed)

    def graph_digest(self) -> str:
        """The digest of the graph alone, by which its tables are found."""
        weight = self._map("weight") if self.header.weighted else None
        return graph_digest(self._map("indptr"), self._map("indices"), weight)

    @property
    def folder(self) -> Path:
        return self.path

    def source(self) -> str | None:
        """Identifies the files it was converted from, where that is known."""
        try:
            return (self.path / SOURCE).read_text(encoding="ascii")
        except (OSError, ValueError):
            return None

    def original_nodes(self) -> npt.NDArray[np.int64]:
        """The number each node had in the files it was converted from."""
        return np.array(self._map("node"))

    def _map(self, name: str) -> Array:
        # Copy on write: changes stay in this process, pages that are only read are shared with others.
        return open_npy(self.path / f"{name}.npy", "convert the graph again", "c")

    def _checked(self, name: str, part: Array, sound: bool | np.bool_) -> Array:
        if not sound:
            raise AsgatError(f"{self.path / name}.npy holds invalid numbers; convert the graph again.")
        return part

    def _check_rows(self) -> None:
        """Compiled code does not check these arrays, so they are checked first, a part at a time."""
        n, entries = self.num_nodes, self.num_entries
        indptr, indices = self._map("indptr"), self._map("indices")
        shifted = None if self.directed else self._map("shifted")
        self._checked("indptr", indptr, indptr[0] == 0 and indptr[-1] == entries and (np.diff(indptr) >= 0).all())
        if not self.directed:
            records = self._map("records")
            same = np.array_equal(records["start"], indptr[:-1]) and np.array_equal(records["degree"], np.diff(indptr))
            sums = [np.isfinite(records[name]).all() for name in ("diagonal", "square", "middle", "onward")]
            self._checked("records", records, same and all(sums))
        first = np.zeros(entries + 1, dtype=bool)  # where a row begins
        first[indptr[:-1]] = True
        for start in range(0, entries, ENTRIES_AT_ONCE):
            part = slice(start, min(entries, start + ENTRIES_AT_ONCE))
            column = indices[part]
            before = np.concatenate([[-1], column[:-1]]) if not start else indices[start - 1 : part.stop - 1]
            ascending = ((column > before) | first[part]).all()
            self._checked("indices", column, column.min() >= 0 and column.max() < n and ascending)
            if shifted is not None:
                self._checked("shifted", shifted, bool((np.abs(shifted[part]) <= 1.0 + 1e-9).all()))

    def __repr__(self) -> str:
        return (
            f"OnDiskGraph({self.name!r}, nodes={self.num_nodes}, entries={self.num_entries}, "
            f"features={self.num_features}, classes={self.num_classes}, splits={self.num_splits})"
        )


def open_if_folder(name: str) -> OnDiskGraph | None:
    """The graph in a folder of that name; None where there is no such folder and the name is that of a data set."""
    try:
        is_folder = (Path(name) / "header.json").is_file() or ("/" in name and Path(name).is_dir())
    except (OSError, ValueError):
        is_folder = False
    return OnDiskGraph(name) if is_folder else None


def check_name(name: str) -> str:
    """The name of a graph, which names its run directories too: it must be a plain file name."""
    if name in ("", ".", "..") or len(name) > 200 or not name.isprintable() or "/" in name or "\\" in name:
        raise AsgatError(f"The name of a graph must be a plain file name without / or \\, not {shown(name)}.")
    return name


def _read_header(path: Path) -> Header:
    file = path / "header.json"
    if not path.is_dir() or not file.exists():
        raise AsgatError(f"{path} is not a graph folder: {file} does not exist.")
    raw = read_user_file(file, MAX_HEADER_BYTES)
    values = raw.json_object()
    if values.pop("format", None) != FORMAT:
        raise AsgatError(f"{file} does not describe a graph of this package; `asgat convert` writes such a folder.")
    if (version := values.pop("version", None)) != VERSION:
        raise AsgatError(
            f"{file} is of version {shown(version)}, and this package reads {VERSION}; convert the graph again."
        )
    try:
        header = Header(**values)
    except TypeError as error:
        raise AsgatError(f"{file} does not fit this package: {brief(error)}.") from error
    sound = all(type(getattr(header, field.name)) is field.type for field in fields(header))
    counts = [getattr(header, field.name) for field in fields(header) if field.type is int] if sound else []
    if not sound or not all(0 <= n < 2**48 for n in counts) or header.metric not in METRICS or header.num_splits > MANY:
        raise AsgatError(f"{file} holds invalid sizes or an invalid metric; convert the graph again.")
    with raw.guard():
        check_name(header.name)
    return header


def _are_weights(weight: Array) -> bool:
    return bool((np.isfinite(weight) & (weight > 0)).all())
