"""Relations in latent spaces: those Geom-GCN publishes, and positions kept once they are computed (Pei et al., 2020).

A line of the published files, ``node1,node2 <tab> space <tab> relation_type``, joins two nodes in the graph or in the
latent space and tells in which of four directions one lies from the other. As in the authors' program, node1 is a
neighbour of node2, which sums over it. That matters for Poincaré alone, whose files hold most pairs in one order: hubs
have many latent neighbours there and other nodes none. Isomap is called MDS. Of the paper's data sets Squirrel alone
has no files. In the Isomap files of CiteSeer and Pubmed the direction of an edge nearly tells whether its ends are of
one class, test nodes included (``benchmarks/relations.py``): scores made with them are no measure of the model.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asgat.data.download import read_files
from asgat.errors import AsgatError
from asgat.files.npz import MAX_PACKED_BYTES, read_npz
from asgat.files.raw_file import RawFile
from asgat.geometry.relations import DIRECTIONS, Relations, latent_relations
from asgat.graph import Graph

PUBLISHED = ("texas", "cornell", "wisconsin", "chameleon", "cora", "citeseer", "pubmed")
CACHED_FROM = 500  # nodes; smaller graphs are placed in no time

_FILE_NAMES = {"isomap": "MDS", "poincare": "poincare", "struc2vec": "struc2vec"}
_LINE = re.compile(r"(\d{1,9}),(\d{1,9})\t(graph|latent_space)\t([0-3])")
_HEADER = "node1,node2\tspace\trelation_type"

Reader = Callable[[str], Relations]


def relations_file(name: str, space: str) -> str:
    """Name of the published file of a data set and a space, below the data directory."""
    return f"geom-gcn/structural_neighborhood/outf_nodes_space_relation_{name}_{_FILE_NAMES[space]}.txt"


def read_relations(name: str, num_nodes: int, data_dir: Path | str | None, space: str) -> Relations:
    """The published relations of a data set in a latent space, downloaded first where the file is missing."""
    file = relations_file(name, space)
    return parse_relations(read_files([file], data_dir)[file], num_nodes)


def parse_relations(raw: RawFile, num_nodes: int) -> Relations:
    """The relations of a published file."""
    with raw.guard():
        header, *lines = raw.content.decode("ascii").splitlines()
        if header != _HEADER:
            raise raw.failure("line 1 must be node1,node2 <tab> space <tab> relation_type")
        rows = []
        for number, line in enumerate(lines, start=2):
            match = _LINE.fullmatch(line)
            if match is None:
                raise raw.failure(f"line {number} is {line[:40]!r}, which is no relation of two nodes")
            neighbour, node, space, towards = match.groups()
            rows.append((int(node), int(neighbour), int(towards) + (DIRECTIONS if space == "latent_space" else 0)))
        return Relations(num_nodes, *np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def find_relations(graph: Graph, space: str, published: Reader | None = None) -> Relations:
    """The relations of a graph in a latent space: the published ones, or else computed ones.

    Args:
        graph: the graph.
        space: one of ``asgat.geometry.spaces.SPACES``.
        published: reads the published relations of a space, as a data set carries it; None where there are none.
    """
    if published is None:
        from asgat.geometry.spaces import SPACES

        return latent_relations(graph, positions(graph, space), SPACES[space].distance)
    relations = published(space)
    near = relations.kind < DIRECTIONS
    expected = np.sort(np.ravel_multi_index(graph.with_self_loops("remove").edge_index(), 2 * (graph.num_nodes,)))
    found = relations.node[near] * graph.num_nodes + relations.neighbour[near]
    if relations.num_nodes != graph.num_nodes or not np.array_equal(np.sort(found), expected):
        raise AsgatError(f"The published relations in {space} are those of another graph; load the data set unchanged.")
    return relations


def positions(graph: Graph, space: str) -> npt.NDArray[np.float64]:
    """Where a space places the nodes of a graph, [N, 2]; kept in the per-user cache unless the graph is small."""
    from asgat.geometry.spaces import SPACES  # compiles; the published relations need none of it

    if graph.num_nodes < CACHED_FROM:
        return SPACES[space].place(graph)
    path = _cache_file(graph, space)
    if path.is_file():
        return _read_positions(path, graph.num_nodes)
    position = SPACES[space].place(graph)
    content = io.BytesIO()
    np.savez_compressed(content, position=position)
    if content.tell() <= MAX_PACKED_BYTES:
        _keep(path, content.getvalue())
    return position


def _cache_file(graph: Graph, space: str) -> Path:
    """Named by what the positions depend on: the space and who is joined to whom."""
    import pooch

    plain = graph.with_self_loops("remove").adjacency
    digest = hashlib.sha256(f"1 {space} {graph.num_nodes} ".encode())
    for array in (plain.indptr, plain.indices):
        digest.update(array.astype("<i8").tobytes())
    return Path(pooch.os_cache("asgat")) / "positions" / f"{digest.hexdigest()}.npz"


def _read_positions(path: Path, num_nodes: int) -> npt.NDArray[np.float64]:
    try:
        with path.open("rb") as stream:
            raw = RawFile(path, stream.read(MAX_PACKED_BYTES + 1))
    except OSError as error:
        raise AsgatError(f"{path} cannot be read ({error.strerror}); check its permissions or delete it.") from error
    position = read_npz(raw, ["position"])["position"]
    if position.shape != (num_nodes, 2) or position.dtype != np.float64 or not np.isfinite(position).all():
        raise raw.failure(f"it must hold {num_nodes} points of the plane")
    return position


def _keep(path: Path, content: bytes) -> None:
    from asgat.files.atomic import write_atomic  # training is built on data; at the top this would be a circle

    with suppress(AsgatError):  # without a place to keep them positions are computed again, which is no error
        write_atomic(path, content)
