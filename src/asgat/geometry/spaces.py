"""The latent spaces by name, and the positions of a graph's nodes in them, cached once they are computed."""

import io
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asgat.errors import AsgatError
from asgat.files.atomic import write_atomic
from asgat.files.npz import read_npz
from asgat.files.raw_file import RawFile
from asgat.geometry.isomap import isomap
from asgat.geometry.poincare import poincare
from asgat.geometry.struc2vec import struc2vec
from asgat.graph.graph import Floats, Graph
from asgat.graph.graph_digest import graph_digest

CACHED_FROM = 500  # nodes; smaller graphs are placed quickly


@dataclass(frozen=True)
class Space:
    """How a graph is placed in a latent space, [N, 2], and the distances [A, B] of points [A, 2] and [B, 2]."""

    place: Callable[[Graph], Floats]
    distance: Callable[[Floats, Floats], Floats]


def euclidean(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.hypot(a[:, None, 0] - b[:, 0], a[:, None, 1] - b[:, 1]))


def hyperbolic(a: Floats, b: Floats) -> Floats:
    inside_a, inside_b = (1 - np.square(points).sum(axis=1) for points in (a, b))
    return np.asarray(np.arccosh(1 + 2 * np.square(euclidean(a, b)) / (inside_a[:, None] * inside_b)))


SPACES: dict[str, Space] = {
    "isomap": Space(isomap, euclidean),
    "poincare": Space(poincare, hyperbolic),
    "struc2vec": Space(struc2vec, euclidean),
}


def positions(graph: Graph, space: str) -> Floats:
    """Where a space places the nodes of a graph, [N, 2]; cached unless the graph is small."""
    if graph.num_nodes < CACHED_FROM:
        return SPACES[space].place(graph)
    path = _cache_file(graph, space)
    if path.is_file():
        return read_positions(path, graph.num_nodes)
    position = SPACES[space].place(graph)
    content = io.BytesIO()
    np.savez_compressed(content, position=position)
    with suppress(AsgatError):  # a cache that cannot be written is not an error: positions are computed again
        write_atomic(path, content.getvalue())
    return position


def read_positions(path: Path, num_nodes: int) -> Floats:
    """The positions [num_nodes, 2] in a file of the cache, checked."""
    raw = RawFile.read(path)
    position = read_npz(raw, ["position"])["position"]
    if position.shape != (num_nodes, 2) or position.dtype != np.float64 or not np.isfinite(position).all():
        raise raw.failure(f"it must hold {num_nodes} points of the plane")
    return position


def _cache_file(graph: Graph, space: str) -> Path:
    """Named by what the positions depend on: the space and the edges."""
    import pooch

    plain = graph.with_self_loops("remove").adjacency
    digest = graph_digest(plain.indptr, plain.indices)
    return Path(pooch.os_cache("asgat")) / "positions" / f"{space}-{digest}.npz"
