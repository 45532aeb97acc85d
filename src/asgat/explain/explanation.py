"""The attention of one node of a trained run, and its filter heads, as rows of plain values."""

from typing import Any, cast

import numpy as np

from asgat.errors import AsgatError
from asgat.estimator.trained_run import TrainedRun
from asgat.explain.attention_rows import attention_rows
from asgat.explain.bands import BAND_NAMES
from asgat.explain.copies import SIDES
from asgat.explain.head_responses import head_responses
from asgat.nn.attention_model import AttentionModel


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
