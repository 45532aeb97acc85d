"""Filters on ranks: boundary rows exchanged for every order, or a halo of that many hops computed twice.

python benchmarks/halo.py --order 6 --ranks 2,8

Counts, for each of some graphs, what the rank with the largest boundary would receive and multiply. Of an exchange it
receives the q rows next to its own once per order. Of a halo it receives the rows within ``order`` hops once, and
multiplies those it does not own again: order i needs the rows within order - i hops.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from asgat.data import contextual_sbm, load_dataset
from asgat.distributed.exchange import block_bounds


def grid(side: int) -> sp.csr_array:
    """A square grid, row by row: as local as a graph in the plane can be."""
    path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(side, side))  # type: ignore[list-item]
    one = sp.eye_array(side)
    return sp.csr_array(sp.kron(path, one) + sp.kron(one, path))


def reordered(adjacency: sp.csr_array) -> sp.csr_array:
    order = reverse_cuthill_mckee(sp.csr_matrix(adjacency), symmetric_mode=True)
    return sp.csr_array(adjacency[order][:, order])


def counts(adjacency: sp.csr_array, ranks: int, order: int) -> tuple[int, int, float]:
    """Rows next to the rank's own, rows within ``order`` hops, and products with a halo in units of those without."""
    nodes = adjacency.shape[0]
    bounds, entries = block_bounds(nodes, ranks), np.diff(adjacency.indptr)
    worst = (0, 0, 1.0)
    for first, last in itertools.pairwise(bounds):
        reached = np.zeros(nodes, dtype=bool)
        reached[first:last] = True
        own, extra, sizes = int(entries[first:last].sum()), 0, []
        for hop in range(1, order + 1):
            if hop > 1:  # rows within hop - 1 hops are multiplied for one order or more
                extra += int(entries[reached].sum()) - own
            reached = reached | (adjacency @ reached.astype(np.float32) > 0)
            sizes.append(int(reached.sum()) - int(last - first))
        worst = max(worst, (sizes[0], sizes[-1], 1 + extra / max(1, own * order)))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--order", type=int, default=6)
    parser.add_argument("--ranks", default="2,8")
    options = parser.parse_args()
    pubmed = load_dataset("pubmed").graph.adjacency
    graphs = {
        "block model, 50,000 nodes": contextual_sbm(num_nodes=50_000, mean_degree=20.0, seed=0).graph.adjacency,
        "PubMed, reordered": reordered(pubmed),
        "grid, 300 × 300": grid(300),
    }
    print("graph | ranks | rows of a rank | exchange: rows received | halo: rows received | halo: products")
    for name, adjacency in graphs.items():
        for ranks in (int(part) for part in options.ranks.split(",")):
            boundary, halo, work = counts(adjacency, ranks, options.order)
            received = f"{options.order} · {boundary:,} = {options.order * boundary:,}"
            print(
                f"{name} | {ranks} | {adjacency.shape[0] // ranks:,} | {received} | {halo:,} | {work:.2f}", flush=True
            )


if __name__ == "__main__":
    main()
