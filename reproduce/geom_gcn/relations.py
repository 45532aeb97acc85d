"""Neighbours in the graph and in a latent space, with their direction."""

from dataclasses import dataclass

import numpy as np

from asgat.errors import AsgatError
from asgat.graph.graph import Floats, Graph, Ints
from asgat.spectral.top_k import row_blocks

DIRECTIONS = 4  # lower left, upper left, lower right, upper right
KINDS = 2 * DIRECTIONS  # in the graph, then in the latent space
_BLOCK = 2**22  # distances held at a time


@dataclass(frozen=True, eq=False)
class Relations:
    """Pairs of a node and a neighbour of it, each with the kind of relation between them, [P].

    The kind is the :func:`direction` of the neighbour, 0 to 3 for those in the graph, 4 to 7 for those in the latent
    space. A neighbour in both counts in both.
    """

    num_nodes: int
    node: Ints
    neighbour: Ints
    kind: Ints

    def __post_init__(self) -> None:
        for name, below in (("node", self.num_nodes), ("neighbour", self.num_nodes), ("kind", KINDS)):
            values = getattr(self, name)
            outside = values[(values < 0) | (values >= below)]
            if outside.size:
                raise AsgatError(f"Relations name {name} {outside[0]}, but it must be from 0 to {below - 1}.")


def latent_relations(graph: Graph, position: Floats) -> Relations:
    """The relations of a graph whose nodes have the positions [N, 2] in a plane.

    Latent neighbours are nearer than a radius that gives nodes as many of them on average as they have in the graph
    (Pei et al., 2020): the closest pairs, as many as there are edges. Weights and self-loops are ignored.
    """
    node, neighbour = graph.with_self_loops("remove").edge_index()
    near = closest_pairs(position, len(node) // 2)
    pairs = np.concatenate([[node, neighbour], near, near[::-1]], axis=1)
    kind = direction(position[pairs[0]], position[pairs[1]])
    kind[len(node) :] += DIRECTIONS
    return Relations(graph.num_nodes, pairs[0], pairs[1], kind)


def direction(v: Floats, u: Floats) -> Ints:
    """Where points u [P, 2] lie from v: 0 lower left, 1 upper left, 2 lower right, 3 upper right, which has ties."""
    return 2 * (v[:, 0] <= u[:, 0]).astype(np.int64) + (v[:, 1] <= u[:, 1])


def closest_pairs(position: Floats, count: int) -> Ints:
    """The pairs i < j of the smallest distances, [2, count], nearest first; of equal ones those of lower numbers.

    Cost: O(N²) time, O(count) memory and a block of distances.
    """
    total = len(position)
    best, pairs = np.empty(0), np.empty((2, 0), dtype=np.int64)
    for rows in row_blocks(total, total, _BLOCK):
        gap = position[rows, None] - position[None, rows.start :]
        block = np.hypot(gap[..., 0], gap[..., 1])
        wanted = np.arange(rows.start, total) > np.arange(rows.start, rows.stop)[:, None]
        if len(best) == count:  # a pair of higher numbers must be nearer to replace one
            wanted &= block < best[-1] if count else False
        row, column = np.nonzero(wanted)
        best = np.concatenate([best, block[row, column]])
        pairs = np.concatenate([pairs, np.stack([row, column]) + rows.start], axis=1)
        order = np.argsort(best, kind="stable")[:count]
        best, pairs = best[order], pairs[:, order]
    return pairs
