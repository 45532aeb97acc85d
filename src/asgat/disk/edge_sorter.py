"""Sorts edges into a CSR matrix on disk, in bounded memory."""

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.disk.journal import Journal
from asgat.errors import AsgatError
from asgat.graph.graph import SelfLoops, check_weights, merge_entries

Array = npt.NDArray[Any]

_EDGE = np.dtype([("source", np.int32), ("target", np.int32), ("weight", np.float64)])
_BYTES_PER_ENTRY = 64  # of one bucket while it is sorted
_MOST_NODES = 2**31 - 1  # their numbers are 32-bit integers


class EdgeSorter:
    r"""Collects edges on disk, sorts them bucket by bucket and writes the rows of their graph.

    The graph is that of :meth:`asgat.graph.Graph.from_edges`: both directions of every edge unless ``directed``, of
    several entries for a pair the one with the largest weight, and no entry for a weight of zero. Two passes over the
    edges, which are written to temporary files of the folder; 8 bytes per node and one bucket, of ``memory`` bytes, are
    in memory.

    With a journal, work that was killed resumes: once all edges were added they are not read again, and buckets that
    were sorted are not sorted again.
    """

    def __init__(
        self,
        folder: Path,
        num_nodes: int,
        memory: int = 512 << 20,
        directed: bool = False,
        journal: Journal | None = None,
    ) -> None:
        if num_nodes > _MOST_NODES:
            raise AsgatError(f"A graph on disk has at most {_MOST_NODES:,} nodes, not {num_nodes:,}.")
        self.folder, self.memory, self.directed = folder, memory, directed
        self.journal = Journal() if journal is None else journal
        self.count: npt.NDArray[np.int64] = np.zeros(num_nodes, dtype=np.int64)  # entries of each row, at most
        self.weighted, self.complete = False, bool(self.journal.get("edges"))
        self.spill = folder / "edges.bin"
        if self.complete:
            self.count, self.weighted = np.load(folder / "count.npy"), self.journal.get("weighted")
        else:
            self.spill.write_bytes(b"")

    def add(self, source: Array, target: Array, weight: Array | None = None) -> None:
        if not len(source):
            return
        ends = np.concatenate([source, target])
        low, high, last = int(ends.min()), int(ends.max()), len(self.count) - 1
        if low < 0 or high > last:
            outside = low if low < 0 else high
            raise AsgatError(f"An edge names node {outside}, but nodes run from 0 to {last}; correct the edge list.")
        if weight is not None:
            check_weights(source, target, weight)
            there = weight > 0
            source, target, weight = source[there], target[there], weight[there]
            self.weighted |= bool((weight != 1).any())
        rows = source if self.directed else np.concatenate([source, target])
        self.count += np.bincount(rows, minlength=len(self.count))
        edges = np.empty(len(source), dtype=_EDGE)
        edges["source"], edges["target"] = source, target
        edges["weight"] = 1.0 if weight is None else weight
        with self.spill.open("ab") as file:
            edges.tofile(file)

    def finish(self) -> None:
        """All edges were added."""
        np.save(self.folder / "count.npy", self.count)
        self.journal.set(edges=True, weighted=self.weighted)
        self.complete = True

    def write(self, self_loops: SelfLoops = "keep") -> tuple[npt.NDArray[np.int64], Array, Array | None]:
        """The rows: indptr, and indices and, unless all are 1, weights in memory-mapped files of the folder."""
        if not self.complete:
            self.finish()
        bounds = row_bounds(self.count + 1, self.memory // _BYTES_PER_ENTRY)  # a self-loop may be added
        files = [self.folder / f"bucket-{i}.bin" for i in range(len(bounds) - 1)]
        if not self.journal.get("distributed"):
            self._distribute(bounds, files)
            self.journal.set(distributed=True)
        self.spill.unlink(missing_ok=True)
        paths = [self.folder / f"{name}.bin" for name in ("indices", "weight", "degree")]
        done, sizes = self.journal.get("sorted", 0), self.journal.get("sizes", [0, 0, 0])
        for path, size in zip(paths, sizes, strict=True):
            path.touch()
            os.truncate(path, size)  # what was written after the last entry of the journal
        for number, (first, last) in list(enumerate(pairwise(bounds)))[done:]:
            edges = np.fromfile(files[number], dtype=_EDGE)
            ends = edges["source"].astype(np.int64), edges["target"].astype(np.int64)
            row, col, weight = merge_entries(*ends, edges["weight"], self_loops, range(first, last))
            degree = np.bincount(row - first, minlength=last - first).astype(np.int64)
            parts: tuple[Array, ...] = col.astype(np.int32), weight if self.weighted else weight[:0], degree
            for path, part in zip(paths, parts, strict=True):
                with path.open("ab") as file:
                    part.tofile(file)
            self.journal.set(sorted=number + 1, sizes=[path.stat().st_size for path in paths])
            files[number].unlink()
        indptr = np.concatenate([[0], np.cumsum(np.fromfile(paths[2], dtype=np.int64))])
        return indptr, _map(paths[0], np.int32), _map(paths[1], np.float64) if self.weighted else None

    def _distribute(self, bounds: list[int], files: list[Path]) -> None:
        for file in files:
            file.write_bytes(b"")
        step = max(1, self.memory // _BYTES_PER_ENTRY // 2)
        size = self.spill.stat().st_size // _EDGE.itemsize
        for start in range(0, size, step):
            edges = np.fromfile(self.spill, dtype=_EDGE, count=step, offset=start * _EDGE.itemsize)
            if not self.directed:
                back = edges.copy()
                back["source"], back["target"] = edges["target"], edges["source"]
                edges = np.concatenate([edges, back[edges["source"] != edges["target"]]])
            bucket = np.searchsorted(bounds, edges["source"], side="right") - 1
            order = np.argsort(bucket, kind="stable")
            places = np.searchsorted(bucket[order], np.arange(len(files) + 1))
            for i in np.flatnonzero(np.diff(places)):
                with files[i].open("ab") as target:
                    edges[order[places[i] : places[i + 1]]].tofile(target)


def row_bounds(size: npt.NDArray[np.int64], room: int) -> list[int]:
    """First rows of blocks, and the end: a block holds as many rows of these sizes as fit, at least one."""
    total, bounds = np.concatenate([[0], np.cumsum(size)]), [0]
    while bounds[-1] < len(size):
        fitting = int(np.searchsorted(total, total[bounds[-1]] + room, side="right")) - 1
        bounds.append(max(bounds[-1] + 1, fitting))
    return bounds


def _map(path: Path, dtype: type[np.generic]) -> Array:
    """The numbers of a file; an empty one cannot be mapped."""
    return np.memmap(path, dtype, mode="r") if path.stat().st_size else np.empty(0, dtype)
