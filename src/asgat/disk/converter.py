"""Writes a graph on disk from an edge list, features and labels, its nodes reordered, in passes of bounded memory."""

import json
import secrets
import shutil
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from asgat.data.splits import stratified_splits
from asgat.disk.disk_graph import METRICS, PARTS, SOURCE, Header, OnDiskGraph, check_name
from asgat.disk.edge_reader import Chunk
from asgat.disk.edge_sorter import EdgeSorter, row_bounds
from asgat.disk.journal import Journal
from asgat.errors import AsgatError
from asgat.files.lock import LOCK_FILE, LockedError, locked
from asgat.graph.graph import SelfLoops, normalised_weights, root_degrees
from asgat.tables.sparse_rows import SparseRows
from asgat.tables.truncated_builder import node_records

Array = npt.NDArray[Any]
Order = Literal["none", "rcm"]
ORDERS: tuple[Order, ...] = ("none", "rcm")
_ENTRIES = 4 << 20  # entries and rows processed at once
_ROWS = 1 << 16  # feature rows copied at once


def locality_order(indptr: Any, indices: Any, order: Order, directed: bool = False) -> npt.NDArray[np.int64]:
    """The nodes in their new order: ``result[i]`` is the node that becomes number i.

    ``"rcm"`` is reverse Cuthill-McKee, O(E log degree) time and about 10 bytes per entry of memory; ``"none"``
    leaves them as they are. The adjacency matrix is in CSR form, and symmetric unless ``directed``; directions are
    ignored, which takes about 20 more bytes per entry.
    """
    n = len(indptr) - 1
    if order == "none" or n == 0 or not len(indices):
        return np.arange(n, dtype=np.int64)
    if directed:
        matrix = _pattern(indptr, indices, n)
        both = sp.csr_array(matrix + matrix.T)
        indptr, indices = both.indptr, both.indices
    if order == "rcm":
        matrix = _pattern(indptr, indices, n)
        return reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int64)
    raise AsgatError(f"order must be one of {', '.join(ORDERS)}, not {order!r}.")


def _pattern(indptr: Any, indices: Any, n: int) -> sp.csr_array:
    ones = np.ones(len(indices), dtype=np.int8)
    return sp.csr_array((ones, np.asarray(indices), np.asarray(indptr)), shape=(n, n))


def write_graph(
    out: Path | str,
    edges: Iterable[Chunk],
    features: Array,
    labels: Array,
    splits: Array | None = None,
    *,
    name: str | None = None,
    order: Order = "rcm",
    self_loops: SelfLoops = "keep",
    metric: str = "micro_f1",
    num_splits: int = 1,
    seed: int = 0,
    memory: int = 512 << 20,
    directed: bool = False,
    say: Callable[[str], None] | None = None,
    source: str | None = None,
) -> OnDiskGraph:
    """Writes a graph on disk, whole or not at all.

    Memory: ``memory`` bytes for sorting and about 100 bytes per node; orders other than ``"none"`` need more, see
    :func:`~asgat.disk.converter.locality_order`. Disk: about three times the result while it is written.

    Args:
        out: the folder; it must not exist.
        edges: parts of the edge list, as :func:`~asgat.disk.edge_reader.read_edges` yields them.
        features: numbers [N, F], which may be a memory map: they are copied a part at a time.
        labels: [N], classes from 0, -1 without one.
        splits: [N] or [N, S] with 0 in no part, 1 train, 2 validation, 3 test; None draws random ones, 48/32/20.
        name: of the graph, a plain file name; the folder's by default.
        order: order of the nodes, so that contiguous blocks have few edges between them.
        self_loops: keep, add or remove.
        metric: ``"micro_f1"`` or ``"roc_auc"``.
        num_splits, seed: of the splits drawn.
        directed: whether edges have a direction, from source to target.
        say: called with a description of the next step.
        source: identifies the edges, features, labels and splits. With it, a killed conversion resumes: the parts that
            are done stay in a hidden folder next to ``out`` until a call with the same ``source`` and the same other
            arguments finishes it.
    """
    out, say = Path(out), say or (lambda text: None)
    name = check_name(name or out.name or "graph")
    features, labels, part = _checked(features, labels, splits, metric, num_splits, seed)
    n = len(labels)
    if out.exists():
        raise AsgatError(f"{out} exists; choose another folder, or remove it.")
    asked = json.dumps([source, n, list(features.shape), name, order, self_loops, metric, num_splits, seed, directed])
    folder = out.parent / f".{out.name}.{secrets.token_hex(8) if source is None else 'converting'}"
    try:
        with locked(folder):
            journal = Journal(folder, asked)
            if journal.begun:
                say("going on with what was done before")
            else:
                _empty(folder)
                journal.set(begun=True)
            scratch = folder / "scratch"
            scratch.mkdir(exist_ok=True)
            sorter = EdgeSorter(scratch, n, memory, directed, journal)
            if not sorter.complete:
                say("reading edges")
                for ends in edges:
                    sorter.add(*ends)
                sorter.finish()
            say("sorting edges")
            indptr, indices, weights = sorter.write(self_loops)
            say(f"ordering nodes ({order})")
            if not journal.get("ordered"):
                np.save(scratch / "order.npy", locality_order(indptr, indices, order, directed=directed))
                journal.set(ordered=True)
            node = np.load(scratch / "order.npy")
            header = Header(
                name=name,
                num_nodes=n,
                num_entries=len(indices),
                num_features=features.shape[1],
                num_classes=int(labels.max(initial=0)) + 1,
                num_splits=part.shape[1],
                metric=metric,
                weighted=weights is not None,
                self_loops=self_loops,
                order=order,
                directed=directed,
            )
            if not journal.get("rows"):
                say("writing rows")
                _write_rows(folder, header, (indptr, indices, weights), labels, part, node)
                journal.set(rows=True)
            say("writing features")
            _write_features(folder, header, features, node)
            del indptr, indices, weights
            shutil.rmtree(scratch)
            journal.remove()
            if source is not None:
                (folder / SOURCE).write_text(source, encoding="ascii")
            (folder / "header.json").write_bytes(header.encode())
            folder.rename(out)
        (out / LOCK_FILE).unlink(missing_ok=True)
    except LockedError:
        raise AsgatError(f"Another process is converting to {out}; wait until it has ended.") from None
    except OSError as error:
        raise AsgatError(f"{out} cannot be written: {error.strerror or error}. Choose another place.") from error
    except BaseException as error:
        if source is None or not isinstance(error, KeyboardInterrupt):  # a bad input stays bad
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return OnDiskGraph(out)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK_FILE:
            path.unlink()


def _checked(
    features: Array, labels: Array, splits: Array | None, metric: str, num_splits: int, seed: int
) -> tuple[Array, Array, Array]:
    """Features, labels as int32 and splits as uint8 [N, S], checked."""
    if metric not in METRICS:
        raise AsgatError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}.")
    if features.ndim != 2 or features.dtype.kind not in "biuf":
        raise AsgatError(f"Features must be numbers [N, F], but are {features.dtype} {list(features.shape)}.")
    n = len(features)
    if labels.shape != (n,) or labels.dtype.kind not in "iu":
        raise AsgatError(f"Labels must be whole numbers [{n}], but are {labels.dtype} {list(labels.shape)}.")
    if n and (int(labels.min()) < -1 or int(labels.max()) >= 2**31 - 1 or int(labels.max()) < 0):
        low, high = int(labels.min()), int(labels.max())
        raise AsgatError(f"Labels must run from 0, with -1 for none, but run from {low} to {high}.")
    y = labels.astype(np.int32)
    if metric == "roc_auc" and int(y.max(initial=0)) != 1:
        raise AsgatError(f"roc_auc needs two classes, but there are {int(y.max(initial=0)) + 1}; use micro_f1.")
    if splits is None:
        part = np.zeros((n, num_splits), dtype=np.uint8)
        for i, split in enumerate(stratified_splits(y.astype(np.int64), num_splits, seed)):
            for name, nodes in split.parts().items():
                part[nodes, i] = PARTS.index(name)
        return features, y, part
    part = splits.reshape(n, -1) if splits.size and splits.shape[0] == n else splits
    if part.ndim != 2 or part.shape[0] != n or part.dtype.kind not in "iu" or not np.isin(part, range(4)).all():
        raise AsgatError(
            f"Splits must be [{n}] or [{n}, S] of 0 (none), 1 (train), 2 (validation) and 3 (test), "
            f"but are {splits.dtype} {list(splits.shape)}."
        )
    if not all((part == number).any(axis=0).all() for number in (1, 2, 3)):
        raise AsgatError("Every split needs nodes to train (1), to validate (2) and to test (3) on.")
    unlabelled = (part > 0) & (y < 0)[:, None]
    return features, y, np.where(unlabelled, 0, part).astype(np.uint8)


def _write_rows(
    folder: Path,
    header: Header,
    rows: tuple[Array, Array, Array | None],
    labels: Array,
    part: Array,
    node: npt.NDArray[np.int64],
) -> None:
    """All arrays but the features, nodes in their new order, from (indptr, indices, weights) in the old."""
    indptr, indices, weights = rows
    files = {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=dtype, shape=shape)
        for name, (dtype, shape) in header.files().items()
        if name != "features"
    }
    number = np.empty(len(node), dtype=np.int32)
    number[node] = np.arange(len(node), dtype=np.int32)
    new_indptr = np.concatenate([[0], np.cumsum(np.diff(indptr)[node])]).astype(np.int64)
    files["indptr"][:] = new_indptr
    root = np.empty(len(node))
    blocks = list(pairwise(row_bounds(np.diff(new_indptr) + 1, _ENTRIES)))
    for first, last in blocks:
        entries = slice(new_indptr[first], new_indptr[last])
        old = node[first:last]
        size = indptr[old + 1] - indptr[old]
        row = np.repeat(np.arange(last - first), size)
        entry = np.arange(entries.start, entries.stop) + np.repeat(indptr[old] - new_indptr[first:last], size)
        col = number[indices[entry]]
        order = np.lexsort((col, row))
        weight = np.ones(len(col)) if weights is None else weights[entry][order]
        files["indices"][entries] = col[order]
        if weights is not None:
            files["weight"][entries] = weight
        if header.directed:
            continue
        root[first:last] = root_degrees(row, weight, last - first)
    if not header.directed:
        for first, last in blocks:
            entries = slice(new_indptr[first], new_indptr[last])
            row = np.repeat(np.arange(first, last), np.diff(new_indptr[first : last + 1]))
            weight = 1.0 if weights is None else files["weight"][entries]
            files["shifted"][entries] = -normalised_weights(weight, root[row], root[files["indices"][entries]])
        files["records"][:] = node_records(SparseRows(new_indptr, files["indices"], files["shifted"]))
    files["labels"][:] = labels[node]
    files["node"][:] = node
    for i in range(header.num_splits):
        files[f"split-{i}"][:] = part[node, i]
    for array in files.values():
        array.flush()


def _write_features(folder: Path, header: Header, features: Array, node: npt.NDArray[np.int64]) -> None:
    """The features, nodes in their new order, a part at a time."""
    dtype, shape = header.files()["features"]
    out = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=dtype, shape=shape)
    for start in range(0, len(node), _ROWS):
        block = features[node[start : start + _ROWS]].astype(np.float32)
        if not np.isfinite(block).all():
            bad = int(node[start + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0])])
            raise AsgatError(f"Features of node {bad} hold NaN or infinity; fill in or drop such values first.")
        out[start : start + _ROWS] = block
    out.flush()
