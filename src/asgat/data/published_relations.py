"""The relations in latent spaces that Geom-GCN publishes (Pei et al., 2020).

A line of the files, ``node1,node2 <tab> space <tab> relation_type``, joins two nodes in the graph or in the latent
space and gives the direction, one of four, in which one lies from the other. As in the authors' program, node1 is a
neighbour of node2, which sums over it. That matters for Poincaré only, whose files hold most pairs in one order: hubs
have many latent neighbours there and other nodes none. Isomap is called MDS. Of the paper's data sets only Squirrel has
no files. In the Isomap files of CiteSeer and Pubmed the direction of an edge nearly reveals whether its ends are of one
class, test nodes included (``benchmarks/relations.py``): scores obtained with them do not measure the model.
"""

from pathlib import Path

import numpy as np

from asgat.data.download import read_files
from asgat.data.geom_gcn import matched_lines
from asgat.files.raw_file import RawFile
from asgat.geometry.relations import DIRECTIONS, Relations

PUBLISHED = ("texas", "cornell", "wisconsin", "chameleon", "cora", "citeseer", "pubmed")

_FILE_NAMES = {"isomap": "MDS", "poincare": "poincare", "struc2vec": "struc2vec"}
_LINE, _HEADER = r"(\d{1,9}),(\d{1,9})\t(graph|latent_space)\t([0-3])", "node1,node2\tspace\trelation_type"


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
        rows = [
            (int(node), int(neighbour), int(towards) + (DIRECTIONS if space == "latent_space" else 0))
            for _, (neighbour, node, space, towards) in matched_lines(raw, _LINE, "a relation of two nodes", _HEADER)
        ]
        return Relations(num_nodes, *np.array(rows, dtype=np.int64).reshape(-1, 3).T)
