"""Which nodes a trained model attends to, how far away they are, and which frequencies contribute."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from asgat.errors import AsgatError
from asgat.estimator.trained_run import TrainedRun
from asgat.explain.copies import SIDES, operator_rows, split_copies
from asgat.explain.head_responses import head_responses
from asgat.explain.responses import BAND_NAMES, BLOCK, Bands
from asgat.graph.graph import Floats, Graph, Ints
from asgat.graph.hops import hop_distances
from asgat.kernels import row_softmax
from asgat.nn.attention_model import AttentionModel
from asgat.spectral import SpectralOperator
from asgat.spectral.top_k import row_blocks


@dataclass(frozen=True, eq=False)
class AttentionRows:
    """What some nodes v attend to in one layer: all are [heads, B, k] unless another shape is given.

    In a directed graph every node has two rows, one for each of its sides: as the source of its edges and as the
    target of edges. It attends to sides of nodes, see :mod:`asgat.explain.copies`.
    """

    nodes: Ints  # the nodes v, [B], twice each in a directed graph
    index: Ints  # the nodes u they attend to, best first
    weight: Floats  # attention weights; 0 where a row has fewer than k nodes
    score: Floats  # -∞ there
    hops: npt.NDArray[np.int32]  # edges between v and u, whatever their directions; -1 where no path joins them
    bands: Floats  # what each band of frequencies adds to the score, [heads, B, k, 4]; the four sum to the score
    side: Ints | None = None  # the side of v in each row, [B], as places in ``SIDES``; None if the graph is undirected
    index_side: Ints | None = None  # the same of u

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
        index, score = operator.select(conv.filter, conv.k, conv.include_unreachable)
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
    for rows in row_blocks(len(nodes), graph.num_nodes, BLOCK):
        hops[:, rows] = np.take_along_axis(hop_distances(graph, nodes[rows])[None], index[:, rows], axis=2)
    return hops


def explain(run: TrainedRun, node: int) -> list[dict[str, Any]]:
    """A row per layer, head and attended node: what ``asgat explain`` shows of the node with this number.

    A layer is a block in asgat-deep. There is no row if the model has filters alone, see :func:`explain_filters`.
    In a directed graph ``side`` is the side of the node that attends, ``node_side`` that of the attended node, see
    :mod:`asgat.explain.copies`.
    """
    check_attends(run)
    layers = attention_rows(cast(AttentionModel, run.model), run.inputs[1], run.attended_graph, np.array([node]))
    rows = []
    for layer, found in enumerate(layers, start=1):
        for head, row in np.ndindex(found.index.shape[:2]):
            for place in np.flatnonzero(np.isfinite(found.score[head, row])):
                at = head, row, int(place)
                other, band = int(found.index[at]), int(found.band[at])
                sides = {}
                if found.side is not None and found.index_side is not None:
                    sides = {"side": SIDES[found.side[row]], "node_side": SIDES[found.index_side[at]]}
                rows.append(
                    {
                        "layer": layer,
                        "head": head + 1,
                        **sides,
                        "node": run.ids[other],
                        "weight": float(found.weight[at]),
                        "score": float(found.score[at]),
                        "hops": int(found.hops[at]) if found.hops[at] >= 0 else None,
                        "class": run.class_names[run.y[other]] if run.y[other] >= 0 else None,
                        "band": BAND_NAMES[band] if band >= 0 else None,
                        "bands": found.bands[at].tolist(),
                    }
                )
    return rows


def explain_filters(run: TrainedRun) -> list[dict[str, Any]]:
    """A row per layer and filter head: the shape of its response, and the share of each band of frequencies in it.

    In a directed graph also the share that goes along edges.
    """
    check_attends(run)
    graph = run.attended_graph
    held = head_responses(cast(AttentionModel, run.model), graph)
    return [
        {
            "layer": layer,
            "head": head,
            "shape": held.shape(values, "filters"),
            "bands": held.band_shares(values).tolist(),
            **({"along_edges": held.along_edges(values)} if graph.directed else {}),
        }
        for layer, response in enumerate(held.filters, start=1)
        for head, values in enumerate(response.T, start=1)
    ]


def check_attends(run: TrainedRun) -> None:
    """Raises an error if the model has neither spectral attention nor filters."""
    if not isinstance(run.model, AttentionModel) or not (run.model.convs or run.model.filter_convs):
        raise AsgatError(
            f"{run.name} has no spectral attention to explain; name a run of an asgat model that has, such as "
            "asgat-cheb."
        )
