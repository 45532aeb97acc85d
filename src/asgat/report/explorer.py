"""The part of a report in which a user picks nodes: their neighbourhoods and what they attend to, in compact form."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.estimator.trained_run import TrainedRun, read_encoder
from asgat.explain import AttentionRows, attention_rows
from asgat.explain.copies import SIDES
from asgat.graph.graph import Floats, Graph, Ints, Mask
from asgat.graph.homophily import node_homophily
from asgat.nn.attention_model import AttentionModel
from asgat.tabular.encoder import FeatureEncoder, Value
from asgat.training.metrics import Probabilities

MOST_NODES = 400  # sampled from a graph of more than 1000 nodes
BUDGET = 3_500_000  # approximate number of characters of the explorer in the page
PER_HEAD = 20  # attended nodes shown per head, and side of a node
LIKELIEST = 5  # classes whose probability is shown
WIDTH = 5  # numbers per attended node
NEAR, SECOND, LINES = 30, 40, 300  # neighbours, their neighbours, and edges shown of a neighbourhood
FEW = 12  # columns up to which all of a node are shown
MOST = 8  # of more columns, those that stand out
LONGEST = 60  # characters of a name or a value


def sample_nodes(y: Ints, wrong: Mask, size: int, seed: int = 0) -> Ints:
    """At most ``size`` nodes: all if they fit, else a quarter by class in turn, a quarter wrong, the rest at random."""
    if len(y) <= size:
        return np.arange(len(y))
    shuffled = np.random.default_rng(seed).permutation(len(y))
    place = np.empty(len(y), dtype=np.int64)  # number of nodes of the same class before it
    for name in np.unique(y):
        mine = shuffled[y[shuffled] == name]
        place[mine] = np.arange(len(mine))
    in_turn = shuffled[np.argsort(place[shuffled], kind="stable")]
    several = max(size // 4, len(np.unique(y)))
    ordered = np.concatenate([in_turn[:several], shuffled[wrong[shuffled]][: size // 4], shuffled])
    _, first = np.unique(ordered, return_index=True)
    return np.sort(ordered[np.sort(first)][:size])


def neighbourhood(graph: Graph, node: int, attended: Ints) -> dict[str, Any]:
    """The nodes within two hops of a node, attended ones first, and the edges between them; both bounded.

    Directed edges are from the first node to the second.
    """
    near = np.setdiff1d(_neighbours(graph, np.array([node])), [node])
    second = np.setdiff1d(_neighbours(graph, near), [node, *near])
    shown_near = _first(near, attended, NEAR)
    shown_second = _first(np.intersect1d(second, _neighbours(graph, shown_near)), attended, SECOND)
    shown = np.concatenate([[node], shown_near, shown_second]).astype(np.int64)
    ring = np.repeat([0, 1, 2], [1, len(shown_near), len(shown_second)])
    one, other = graph.adjacency[shown][:, shown].nonzero()
    kept = one != other if graph.directed else one < other
    one, other = one[kept], other[kept]
    # Edges between rings come first: they hold the picture together.
    order = np.argsort(np.where(ring[one] == ring[other], 9, ring[one] + ring[other]), kind="stable")
    edges = np.stack([shown[one], shown[other]], axis=1)[order]
    return {
        "near": shown_near.tolist(),
        "second": shown_second.tolist(),
        "edges": edges[:LINES].tolist(),
        "totals": [len(near), len(second), len(edges)],
    }


def _neighbours(graph: Graph, nodes: Ints) -> Ints:
    """The nodes next to any of the given ones, whatever the directions, ascending."""
    return np.unique(graph.undirected.adjacency[nodes].indices).astype(np.int64)


def _first(nodes: npt.NDArray[Any], wanted: Ints, most: int) -> Ints:
    """At most ``most`` of the nodes, wanted ones before the others."""
    order = np.argsort(~np.isin(nodes, wanted), kind="stable")
    return np.sort(nodes[order[:most]]).astype(np.int64)


def telling_heads(layers: Sequence[AttentionRows], y: Ints, flat: Sequence[Sequence[bool]]) -> list[list[int]]:
    """The one or two heads, as layer and head, whose attention to other nodes follows, or avoids, the classes most.

    The measure is the attention weight on nodes of the same class above what the frequencies of the classes give. A
    second head is named if it has at least half as much. Flat heads are not.
    """
    labels = y[y >= 0]
    frequency = np.bincount(labels, minlength=1) / max(len(labels), 1)
    found = []
    for layer, rows in enumerate(layers):
        own, other = y[rows.nodes][:, None], y[rows.index]
        counted = (own >= 0) & (other >= 0) & (rows.index != rows.nodes[:, None])
        excess = rows.weight * counted * ((own == other) - frequency[np.maximum(own, 0)])
        sizes = np.abs(excess.sum(axis=-1).mean(axis=-1))
        found += [(float(size), layer, head) for head, size in enumerate(sizes) if not flat[layer][head]]
    found.sort(key=lambda one: -one[0])
    return [[layer, head] for size, layer, head in found[:2] if 2 * size >= found[0][0]]


def explorer(run: TrainedRun, probability: Probabilities, flat: Sequence[Sequence[bool]] = ()) -> dict[str, Any]:
    """Everything the page's explorer draws. Nodes are renumbered in the order of ``nodes``.

    ``picks`` holds per picked node its features, the probabilities of its likeliest classes, its neighbourhood, and per
    layer and head a flat list of node, weight in ten-thousandths, hops, band and sides: 0, or in a directed graph twice
    the side of the picked node plus that of the attended one.
    """
    graph, y, prediction = run.attended_graph, run.y, probability.argmax(axis=1)
    convs = run.model.convs if isinstance(run.model, AttentionModel) else []
    sides = 2 if graph.directed else 1  # rows of a node
    attended = sides * sum(conv.heads * min(conv.k or PER_HEAD, PER_HEAD) for conv in convs)
    size = min(BUDGET // (1100 + 15 * attended), 1000 if graph.num_nodes <= 1000 else MOST_NODES)
    picked = sample_nodes(y, (y >= 0) & (prediction != y), max(size, 20))
    layers: list[AttentionRows] = []
    if isinstance(run.model, AttentionModel) and convs:
        layers = attention_rows(run.model, run.inputs[1], graph, picked, PER_HEAD)
    drawn = []
    features = node_features(run, picked)
    for place, node in enumerate(picked):
        mine = slice(sides * place, sides * (place + 1))
        heads = [[_flat(rows, head, mine) for head in range(len(rows.index))] for rows in layers]
        others = np.unique([u for rows in heads for entries in rows for u in entries[::WIDTH]]).astype(np.int64)
        about = {"node": int(node), "features": features[place], "likely": _likely(probability[node])}
        drawn.append({**about, **neighbourhood(graph, int(node), others), "heads": heads})
    numbers = renumber(drawn)
    known = np.array(list(numbers), dtype=np.int64)
    part = np.select([run.train_mask, run.val_mask, run.test_mask], [0, 1, 2], 3)
    given = run.graph.with_self_loops(run.config.self_loops)  # as in `asgat explain`, without similar nodes
    homophily, degree = node_homophily(given, y), np.diff(given.undirected.adjacency.indptr)
    degrees = {"degree": degree[known].tolist()}
    if given.directed:
        row, col = given.edge_index()
        for side, ends in zip(SIDES, (row, col), strict=True):
            degrees[side] = np.bincount(ends, minlength=given.num_nodes)[known].tolist()
    return {
        "nodes": {
            "id": [str(run.ids[v]) for v in known],
            "class": y[known].tolist(),
            "prediction": prediction[known].tolist(),
            "part": part[known].tolist(),
            **degrees,
            "beta": [round(float(value), 3) for value in homophily[known]],
        },
        "picks": drawn,
        "columns": len(run.feature_names),
        "telling": telling_heads(layers, y, flat),
        "total": graph.num_nodes,
        "shown_per_head": PER_HEAD if any((conv.k or graph.num_nodes) > PER_HEAD for conv in convs) else None,
    }


def _likely(probability: Floats) -> list[list[float]]:
    """The likeliest classes of a node with their probabilities."""
    order = np.argsort(-probability, kind="stable")[:LIKELIEST]
    return [[int(place), round(float(probability[place]), 3)] for place in order]


def _flat(rows: AttentionRows, head: int, mine: slice) -> list[int]:
    at = head, mine
    sides = np.zeros_like(rows.index[at])
    if rows.side is not None and rows.index_side is not None:
        sides = 2 * rows.side[mine][:, None] + rows.index_side[at]
    columns = rows.index[at], (10_000 * rows.weight[at]).round(), rows.hops[at], rows.band[at], sides
    return np.stack(columns, axis=-1)[np.isfinite(rows.score[at])].astype(int).ravel().tolist()


def renumber(drawn: Sequence[dict[str, Any]]) -> dict[int, int]:
    """Numbers the nodes that appear 0, 1, …, in place, and returns the new number of each, picked nodes first."""
    numbers = {pick["node"]: place for place, pick in enumerate(drawn)}

    def new(node: int) -> int:
        return numbers.setdefault(node, len(numbers))

    for pick in drawn:
        pick["node"] = new(pick["node"])
        pick["near"], pick["second"] = ([new(v) for v in pick[ring]] for ring in ("near", "second"))
        pick["edges"] = [end for edge in pick["edges"] for end in (new(edge[0]), new(edge[1]))]
        for heads in pick["heads"]:
            for entries in heads:
                entries[::WIDTH] = [new(v) for v in entries[::WIDTH]]
    return numbers


def node_features(run: TrainedRun, nodes: Ints) -> list[list[list[str]]]:
    """For each node its columns as pairs of name and value: all if they are few, else those that stand out."""
    read = _reader(run)
    return [[[_short(value.name), _short(value.text)] for value in _chosen(read(run.x[node]))] for node in nodes]


def _reader(run: TrainedRun) -> Callable[[npt.NDArray[np.float32]], list[Value]]:
    if run.is_user_graph:
        held = read_encoder(run.path)
        if "features" in held:
            encoder = FeatureEncoder.from_dict(held)
            if encoder.names == run.feature_names:
                return encoder.read_row
    names = run.feature_names
    return lambda row: [Value(name, f"{value:.6g}", abs(float(value))) for name, value in zip(names, row, strict=True)]


def _chosen(values: list[Value]) -> Iterable[Value]:
    if len(values) <= FEW:
        return values
    return sorted((value for value in values if value.size > 0), key=lambda value: -value.size)[:MOST]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
