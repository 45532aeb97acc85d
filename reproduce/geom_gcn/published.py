"""The relations in latent spaces that Geom-GCN publishes, and those computed where it publishes none.

A line of the files, ``node1,node2 <tab> space <tab> relation_type``, joins two nodes in the graph or in the latent
space and gives the direction, one of four, in which one lies from the other. As in the authors' program, node1 is a
neighbour of node2, which sums over it. That matters for Poincaré only, whose files hold most pairs in one order: hubs
have many latent neighbours there and other nodes none. Isomap is called MDS. Of the paper's data sets only Squirrel has
no files. In the Isomap files of CiteSeer and Pubmed the direction of an edge nearly reveals whether its ends are of one
class, test nodes included: scores obtained with them do not measure the model.
"""

from importlib.resources import files
from pathlib import Path

import numpy as np

from asgat.data.download import parse_checksums, read_files
from asgat.data.geom_gcn import matched_lines
from asgat.errors import AsgatError
from asgat.files.raw_file import RawFile
from asgat.graph import Graph
from reproduce.geom_gcn.isomap import isomap
from reproduce.geom_gcn.relations import DIRECTIONS, Relations, latent_relations

PUBLISHED = ("texas", "cornell", "wisconsin", "chameleon", "cora", "citeseer", "pubmed")

_FILE_NAMES = {"isomap": "MDS", "poincare": "poincare", "struc2vec": "struc2vec"}
_LINE, _HEADER = r"(\d{1,9}),(\d{1,9})\t(graph|latent_space)\t([0-3])", "node1,node2\tspace\trelation_type"


def find_relations(graph: Graph, space: str, name: str, data_dir: Path | None) -> Relations:
    """The relations of a data set's graph in a latent space, downloaded first where the file is missing.

    Where none are published, those of Isomap are computed. ``data_dir`` is the folder of the files that the data set
    was read from; None for a graph of a user, whatever its name.
    """
    if data_dir is None or name not in PUBLISHED:
        if space != "isomap":
            raise AsgatError(
                f"No relations in {space} are published for {name}; set space to isomap, which is computed."
            )
        return latent_relations(graph, isomap(graph))
    file = f"geom-gcn/structural_neighborhood/outf_nodes_space_relation_{name}_{_FILE_NAMES[space]}.txt"
    known = parse_checksums((files(__package__) / "checksums.txt").read_text(encoding="ascii"))
    relations = parse_relations(read_files([file], data_dir, known)[file], graph.num_nodes)
    near = relations.kind < DIRECTIONS
    expected = np.sort(np.ravel_multi_index(graph.with_self_loops("remove").edge_index(), 2 * (graph.num_nodes,)))
    found = relations.node[near] * graph.num_nodes + relations.neighbour[near]
    if not np.array_equal(np.sort(found), expected):
        raise AsgatError(f"The published relations in {space} are those of another graph; load the data set unchanged.")
    return relations


def parse_relations(raw: RawFile, num_nodes: int) -> Relations:
    """The relations of a published file."""
    with raw.guard():
        rows = [
            (int(node), int(neighbour), int(towards) + (DIRECTIONS if space == "latent_space" else 0))
            for _, (neighbour, node, space, towards) in matched_lines(raw, _LINE, "a relation of two nodes", _HEADER)
        ]
        return Relations(num_nodes, *np.array(rows, dtype=np.int64).reshape(-1, 3).T)
