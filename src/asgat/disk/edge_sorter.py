"""Sorts edges into a symmetric CSR matrix on disk, in bounded memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError
from asgat.graph.graph import SelfLoops, check_weights, merge_entries

Array = npt.NDArray[Any]

_EDGE = np.dtype([("source", np.int32), ("target", np.int32), ("weight", np.float64)])
_BYTES_PER_ENTRY = 64  # of one bucket while it is sorted


class EdgeSorter:
    r"""Collects edges on disk, sorts them bucket by bucket and writes the rows of their graph.

    The graph is that of :meth:`asgat.graph.Graph.from_edges`: both directions of every edge, of several entries for a
    pair the one with the largest weight, and no entry for a weight of zero. Two passes over the spilled edges;
    8 bytes per node and one bucket are in memory.

    Args:
        folder: for temporary files.
        num_nodes: the number of nodes; None takes the largest in an edge.
        memory: bytes a bucket may take while it is sorted.
    """

    def __init__(self, folder: Path, num_nodes: int | None = None, memory: int = 512 << 20) -> None:
        self.folder, self.memory = folder, memory
        self.fixed = num_nodes
        self.count: npt.NDArray[np.int64] = np.zeros(num_nodes or 0, dtype=np.int64)  # entries of each row, at most
        self.weighted = False
        self.spill = folder / "edges.bin"
        self.spill.touch()

    def add(self, source: Array, target: Array, weight: Array | None = None) -> None:
        """Adds edges."""
        if not len(source):
            return
        ends = np.concatenate([source, target])
        largest = int(ends.max())
        if int(ends.min()) < 0 or (self.fixed is not None and largest >= self.fixed):
            outside = int(ends.min()) if int(ends.min()) < 0 else largest
            upper = "" if self.fixed is None else f" to {self.fixed - 1}"
            raise AsgatError(f"An edge names node {outside}, but nodes run from 0{upper}; correct the edge list.")
        if largest >= 2**31 - 1:
            raise AsgatError(f"An edge names node {largest}; nodes must be below {2**31 - 1}. Renumber them.")
        if weight is not None:
            check_weights(source, target, weight)
            there = weight > 0
            source, target, weight = source[there], target[there], weight[there]
            ends = np.concatenate([source, target])
            self.weighted |= bool((weight != 1).any())
        if largest >= len(self.count):
            self.count = np.concatenate([self.count, np.zeros(largest + 1 - len(self.count), dtype=np.int64)])
        self.count += np.bincount(ends, minlength=len(self.count))
        edges = np.empty(len(source), dtype=_EDGE)
        edges["source"], edges["target"] = source, target
        edges["weight"] = 1.0 if weight is None else weight
        with self.spill.open("ab") as file:
            edges.tofile(file)

    def write(self, self_loops: SelfLoops = "keep") -> tuple[Path, Path, Path | None]:
        """Writes indptr, indices and, unless all are 1, weights as .npy files into the folder; returns their paths."""
        if self_loops not in ("keep", "add", "remove"):
            raise AsgatError(f"self_loops must be keep, add or remove, not {self_loops!r}.")
        n = len(self.count)
        bounds = self._buckets()
        files = self._distribute(bounds)
        degree = np.zeros(n, dtype=np.int64)
        indices_raw, weight_raw = self.folder / "indices.bin", self.folder / "weight.bin"
        with indices_raw.open("wb") as indices, weight_raw.open("wb") as weights:
            for bucket, file in enumerate(files):
                first, last = int(bounds[bucket]), int(bounds[bucket + 1])
                edges = np.fromfile(file, dtype=_EDGE)
                ends = edges["source"].astype(np.int64), edges["target"].astype(np.int64)
                row, col, weight = merge_entries(*ends, edges["weight"], self_loops, range(first, last))
                file.unlink()
                degree[first:last] = np.bincount(row - first, minlength=last - first)
                col.astype(np.int32).tofile(indices)
                if self.weighted:
                    weight.tofile(weights)
        indptr = np.concatenate([[0], np.cumsum(degree)])
        indptr_file = self.folder / "indptr.npy"
        np.save(indptr_file, indptr.astype(np.int64))
        entries = (int(indptr[-1]),)
        indices_file = _as_npy(indices_raw, np.dtype(np.int32), entries)
        if not self.weighted:
            weight_raw.unlink()
            return indptr_file, indices_file, None
        return indptr_file, indices_file, _as_npy(weight_raw, np.dtype(np.float64), entries)

    def _buckets(self) -> Array:
        """First rows of the buckets, and the end: each holds as many entries as fit, at least one row."""
        n, room = len(self.count), max(1, self.memory // _BYTES_PER_ENTRY)
        total = np.cumsum(self.count + 1)  # a self-loop may be added
        bounds = [0]
        while bounds[-1] < n:
            before = int(total[bounds[-1] - 1]) if bounds[-1] else 0
            bounds.append(max(bounds[-1] + 1, int(np.searchsorted(total, before + room, side="right"))))
        return np.array(bounds, dtype=np.int64)

    def _distribute(self, bounds: Array) -> list[Path]:
        files = [self.folder / f"bucket-{i}.bin" for i in range(len(bounds) - 1)]
        for file in files:
            file.touch()
        spilled = self.spill
        step = max(1, self.memory // _BYTES_PER_ENTRY // 2)
        size = spilled.stat().st_size // _EDGE.itemsize
        for start in range(0, size, step):
            edges = np.fromfile(spilled, dtype=_EDGE, count=step, offset=start * _EDGE.itemsize)
            back = edges.copy()
            back["source"], back["target"] = edges["target"], edges["source"]
            both = np.concatenate([edges, back[edges["source"] != edges["target"]]])
            bucket = np.searchsorted(bounds, both["source"], side="right") - 1
            order = np.argsort(bucket, kind="stable")
            places = np.searchsorted(bucket[order], np.arange(len(files) + 1))
            for i in np.flatnonzero(np.diff(places)):
                with files[i].open("ab") as target:
                    both[order[places[i] : places[i + 1]]].tofile(target)
        spilled.unlink()
        return files


def _as_npy(raw: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Path:
    """A file of raw numbers with numpy's header added, copied a part at a time."""
    target = raw.with_suffix(".npy")
    with raw.open("rb") as source, target.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        shutil.copyfileobj(source, file, 16 << 20)
    raw.unlink()
    return target
