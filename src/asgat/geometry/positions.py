"""Positions of a graph's nodes in a latent space, kept in the per-user cache once they are computed."""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError
from asgat.files.atomic import write_atomic
from asgat.files.npz import MAX_PACKED_BYTES, read_npz
from asgat.files.raw_file import RawFile, read_bounded
from asgat.geometry.spaces import SPACES
from asgat.graph import Graph

CACHED_FROM = 500  # nodes; smaller graphs are placed quickly


def positions(graph: Graph, space: str) -> npt.NDArray[np.float64]:
    """Where a space places the nodes of a graph, [N, 2]; cached unless the graph is small."""
    if graph.num_nodes < CACHED_FROM:
        return SPACES[space].place(graph)
    path = _cache_file(graph, space)
    if path.is_file():
        return read_positions(path, graph.num_nodes)
    position = SPACES[space].place(graph)
    content = io.BytesIO()
    np.savez_compressed(content, position=position)
    if content.tell() <= MAX_PACKED_BYTES:
        with suppress(AsgatError):  # a cache that cannot be written is not an error: positions are computed again
            write_atomic(path, content.getvalue())
    return position


def read_positions(path: Path, num_nodes: int) -> npt.NDArray[np.float64]:
    """The positions [num_nodes, 2] in a file of the cache, checked."""
    try:
        raw = RawFile(path, read_bounded(path, MAX_PACKED_BYTES))
    except OSError as error:
        raise AsgatError(f"{path} cannot be read ({error.strerror}); check its permissions or delete it.") from error
    position = read_npz(raw, ["position"])["position"]
    if position.shape != (num_nodes, 2) or position.dtype != np.float64 or not np.isfinite(position).all():
        raise raw.failure(f"it must hold {num_nodes} points of the plane")
    return position


def _cache_file(graph: Graph, space: str) -> Path:
    """Named by what the positions depend on: the space and the edges."""
    import pooch

    plain = graph.with_self_loops("remove").adjacency
    digest = hashlib.sha256(f"1 {space} {graph.num_nodes} ".encode())
    for array in (plain.indptr, plain.indices):
        digest.update(array.astype("<i8").tobytes())
    return Path(pooch.os_cache("asgat")) / "positions" / f"{digest.hexdigest()}.npz"
