"""Which nodes a trained model attends to, how far away they are, and which frequencies contribute."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from asgat.explain.bands import Bands, row_blocks
from asgat.explain.copies import operator_rows, split_copies
from asgat.explain.responses import Floats, Ints
from asgat.graph import Graph
from asgat.graph.hops import hop_distances
from asgat.kernels import row_softmax
from asgat.nn import ASGATConv
from asgat.nn.attention_model import AttentionModel
from asgat.spectral import SpectralOperator


@dataclass(frozen=True, eq=False)
class AttentionRows:
    r"""What some nodes v attend to in one layer.

    In a directed graph every node has two rows, one for each of its sides: as the source of its edges and as the
    target of edges. It attends to sides of nodes, see :mod:`asgat.explain.copies`.

    Args:
        nodes: the nodes v, [B], twice each in a directed graph.
        index: the nodes u they attend to, best first, [heads, B, k].
        weight: attention weights :math:`a_{vu}`; 0 where a row has fewer than k nodes.
        score: scores :math:`\psi_{vu}`; -∞ there.
        hops: edges between v and u, whatever their directions; -1 where no path joins them.
        bands: what each band of frequencies adds to the score, [heads, B, k, 4]; the four sum to the score.
        side: the side of v in each row, [B], as places in ``SIDES``; None if the graph is undirected.
        index_side: the same of u, [heads, B, k].
    """

    nodes: Ints
    index: Ints
    weight: Floats
    score: Floats
    hops: npt.NDArray[np.int32]
    bands: Floats
    side: Ints | None = None
    index_side: Ints | None = None

    @cached_property
    def band(self) -> Ints:
        """The band that adds most to the score, [heads, B, k]; -1 where no band adds anything."""
        return np.where(self.bands.max(axis=-1) > 0, self.bands.argmax(axis=-1), -1)


@torch.no_grad()
def attention_rows(
    model: AttentionModel, operator: SpectralOperator, graph: Graph, nodes: Ints, limit: int | None = None
) -> list[AttentionRows]:
    """What the given nodes attend to, layer by layer; with a limit, only the best of each row.

    The operator must be the one the model was trained with, and the graph the one the operator was built from, or from
    the double cover of which it was built.
    """
    if not model.convs:
        return []
    frequencies = Bands(graph.spectral_graph)
    rows = operator_rows(graph, nodes)
    own, side = split_copies(graph, rows)
    layers = []
    for conv in model.convs:
        index, score = select_nodes(operator, conv)
        weight = row_softmax(score)
        at = torch.from_numpy(rows)
        index, score, weight = (part[:, at].cpu() for part in (index, score, weight))
        order = score.argsort(dim=-1, descending=True, stable=True)[..., :limit]
        found, scores, weights = (part.gather(-1, order).numpy() for part in (index, score, weight))
        bands = frequencies.contributions(operator, conv.filter, rows, found)
        others, other_side = split_copies(graph, found)
        values = weights.astype(float), scores.astype(float), pair_hops(graph, own, others), bands
        layers.append(AttentionRows(own, others, *values, side, other_side))
    return layers


def pair_hops(graph: Graph, nodes: Ints, index: Ints) -> npt.NDArray[np.int32]:
    """Edges on the shortest path between nodes [B] and index [heads, B, k]; -1 where there is no path."""
    hops = np.empty(index.shape, dtype=np.int32)
    for rows in row_blocks(len(nodes), graph.num_nodes):
        hops[:, rows] = np.take_along_axis(hop_distances(graph, nodes[rows])[None], index[:, rows], axis=2)
    return hops


def select_nodes(operator: SpectralOperator, conv: ASGATConv) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of the operator a layer attends to, and their scores, both [heads, rows, k], as in
    :func:`asgat.nn.attention.attend`."""
    if conv.k is not None:
        return operator.top(conv.filter, conv.k, conv.include_unreachable)
    index, score = operator.scores(conv.filter, include_unreachable=conv.include_unreachable)
    return index.expand_as(score), score
