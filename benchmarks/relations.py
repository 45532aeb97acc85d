"""Do the published relations of Geom-GCN reveal classes? The share of pairs of one class in every group.

Counted between training nodes. If a space is computed from the graph alone, the four directions of a neighbour say
little about its class. The direction from v to u is opposite to that from u to v: directions 0 and 3, and 1 and 2, come
in pairs. The last column is the share of edges with the same direction from both ends, which is impossible for two
different points of a plane.

python benchmarks/relations.py --datasets cora,citeseer,pubmed
"""

from __future__ import annotations

import argparse

import numpy as np

from asgat.data import load_dataset
from asgat.geometry.relations import DIRECTIONS
from asgat.geometry.spaces import SPACES

SEVEN = "cora,citeseer,pubmed,chameleon,wisconsin,cornell,texas"  # data sets with published files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default=SEVEN)
    names = parser.parse_args().datasets.split(",")
    print("percent of edges within a class, by direction; percent of edges with one direction from both ends")
    for name in names:
        data = load_dataset(name)
        train = np.zeros(data.num_nodes, dtype=bool)
        train[data.splits[0].train] = True
        for space in SPACES:
            pairs = data.relations(space)
            graph = pairs.kind < DIRECTIONS
            node, neighbour, kind = pairs.node[graph], pairs.neighbour[graph], pairs.kind[graph]
            known = train[node] & train[neighbour]
            alike = data.y[node] == data.y[neighbour]
            shares = [100 * alike[known & (kind == direction)].mean() for direction in range(DIRECTIONS)]
            forth, back = (node * data.num_nodes + neighbour), (neighbour * data.num_nodes + node)
            same = np.isin(forth * DIRECTIONS + kind, back * DIRECTIONS + kind)
            figures = " ".join(f"{share:5.1f}" for share in shares)
            print(f"{name:10} {space:10} {figures}   {100 * same.mean():5.1f}", flush=True)


if __name__ == "__main__":
    main()
