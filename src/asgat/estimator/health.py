"""Figures of a graph before training, and the settings they suggest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from asgat.config import ASGATConfig
from asgat.data.dataset import Dataset
from asgat.errors import AsgatError, counted
from asgat.graph.graph import Floats, Graph, Ints
from asgat.graph.homophily import adjusted_homophily, beta, edge_homophily, node_homophily
from asgat.nn.memory_plan import choose_form
from asgat.tabular.user_graph import MOST_ONE_WAY, UserGraph

BINS = 10
HOMOPHILIC = 0.6  # β from which most neighbours are of a node's own class
DENSE = 15.0  # mean degree
LARGE = 200_000  # stored entries


@dataclass(frozen=True)
class Advice:
    """A setting and why."""

    setting: str
    value: Any
    reason: str


@dataclass(frozen=True)
class Health:
    """Figures of a graph; β as in :mod:`asgat.graph.homophily`, over all labelled nodes.

    Labels of test nodes count in these figures, and in nothing else: ``advice`` is of training and validation nodes.

    Args:
        judged: labelled nodes with a labelled neighbour; the others count 0 in β.
        beta_histogram: how many of the judged nodes have β_v in each tenth from 0 to 1.
        mean_degree: of a directed graph, the mean out-degree, which is the mean in-degree.
        reciprocal: the share of edges given that were also given the other way round, None if it says nothing.
    """

    name: str
    nodes: int
    edges: int
    given_edges: int
    duplicates: int
    self_loops: int
    zero_weights: int
    components: int
    largest_component: int
    isolated: int
    mean_degree: float
    classes: dict[str, int]
    unlabelled: int
    beta: float
    judged: int
    beta_histogram: list[int]
    edge_homophily: float
    adjusted_homophily: float
    columns: int
    features: int
    parts: dict[str, int]
    changes: list[str]
    advice: list[Advice]
    directed: bool = False
    reciprocal: float | None = None

    @property
    def advised(self) -> dict[str, Any]:
        """Values of the settings that a model takes."""
        return {advice.setting: advice.value for advice in self.advice if advice.setting in ("k", "order")}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Health:
        """The inverse of :meth:`to_dict`."""
        try:
            return cls(**{**values, "advice": [Advice(**advice) for advice in values["advice"]]})
        except (KeyError, TypeError) as error:
            raise AsgatError(f"The figures of the graph cannot be read: {error}; fit again.") from error


def examine(user_graph: UserGraph, dataset: Dataset, class_names: Sequence[str], changes: Sequence[str]) -> Health:
    """Measures a graph, given as it was and encoded, and adds to what was changed so far; O(N + E)."""
    graph, y = dataset.graph, dataset.y
    ends = user_graph.edges
    low, high = ends if graph.directed else (ends.min(axis=0), ends.max(axis=0))
    zero = 0 if user_graph.weight is None else int((user_graph.weight == 0).sum())
    loops = int((low == high).sum())
    distinct = len(np.unique(low * graph.num_nodes + high))
    repeated = ends.shape[1] - distinct
    share, seen = _judged(graph, y), _judged(graph, dataset.splits[0].visible(y))
    sizes = np.bincount(graph.components)
    between = graph.num_entries - int((graph.adjacency.diagonal() > 0).sum())
    changes = list(changes)
    if user_graph.reciprocal is not None and user_graph.reciprocal < MOST_ONE_WAY and not graph.directed:
        few = f"Only {100 * user_graph.reciprocal:.0f} %" if user_graph.reciprocal > 0 else "None"
        changes.append(f"{few} of the edges also run the other way. If edges have a direction, `--directed` uses it.")
    if repeated:
        either = "" if graph.directed else ", in either direction"
        changes.append(f"{counted(repeated, 'row')} of the edges repeat another{either}: merged.")
    if zero:
        changes.append(f"{counted(zero, 'edge')} of weight 0: dropped.")
    if loops:
        changes.append(f"{counted(loops, 'self-loop')}: kept; `--set self_loops=remove` drops them.")
    isolated = int(graph.isolated.sum())
    if isolated:
        advice = "`--set similar=3` adds edges between similar nodes"
        changes.append(f"{counted(isolated, 'node')} without an edge: predicted from their own features; {advice}.")
    mean_degree, largest = between / graph.num_nodes, int(sizes.max())
    return Health(
        name=dataset.name,
        nodes=graph.num_nodes,
        edges=graph.edges_once()[0].shape[1],
        given_edges=int(ends.shape[1]),
        duplicates=repeated,
        self_loops=loops,
        zero_weights=zero,
        components=len(sizes),
        largest_component=largest,
        isolated=isolated,
        mean_degree=mean_degree,
        classes={name: int((y == number).sum()) for number, name in enumerate(class_names)},
        unlabelled=int((y < 0).sum()),
        beta=beta(graph, y),
        judged=len(share),
        beta_histogram=np.histogram(share, bins=BINS, range=(0.0, 1.0))[0].tolist(),
        edge_homophily=edge_homophily(graph, y),
        adjusted_homophily=adjusted_homophily(graph, y),
        columns=len(user_graph.features),
        features=dataset.num_features,
        parts={part: len(nodes) for part, nodes in dataset.splits[0].parts().items()},
        changes=changes,
        advice=advise(dataset, float(seen.mean()) if len(seen) else None, mean_degree, largest),
        directed=graph.directed,
        reciprocal=user_graph.reciprocal,
    )


def _judged(graph: Graph, y: Ints) -> Floats:
    """β_v of the nodes that have a label and a labelled neighbour."""
    row, col = graph.undirected.edge_index()
    labelled = (row != col) & (y[row] >= 0) & (y[col] >= 0)
    return np.asarray(node_homophily(graph, y)[np.unique(row[labelled])])


def advise(dataset: Dataset, beta: float | None, mean_degree: float, largest: int) -> list[Advice]:
    """Settings from figures: rules of thumb from the recipes, whose settings were chosen on validation nodes.

    ``beta`` is the mean β_v of the training and validation nodes with such a neighbour, None without any; ``largest``
    the number of nodes of the largest component.
    """
    entries = dataset.graph.num_entries
    shown = "" if beta is None else f"β is {beta:.2f} over training and validation nodes"
    if beta is None:
        k, why = 9, "no training or validation node has another as a neighbour, so β is not known"
    elif beta >= HOMOPHILIC:
        k, why = 12, f"{shown}: neighbours are alike, and more of them are more informative"
    elif mean_degree >= DENSE:
        k, why = 6, f"{shown}, and a node has {mean_degree:.0f} neighbours: few of them are informative"
    else:
        k, why = 9, f"{shown}: neighbours differ, so attention is limited to the best"
    if largest <= k:
        k, why = max(1, largest - 1), f"the largest component has {largest} nodes"
    if entries > LARGE:
        order, reason = 8, f"{entries:,} entries: low orders matter most, and each order costs the same"
    elif beta is not None and beta < HOMOPHILIC:
        order, reason = 12, "where neighbours differ, similar nodes are further away"
    else:
        order, reason = 10, "where neighbours are alike, smooth responses suffice"
    form = choose_form(dataset.graph.spectral_graph, ASGATConfig(k=k, order=order))
    reasons = {
        "dense": "a graph this small is faster with all pairs scored",
        "exact table": "each node keeps its most likely candidates, with a certificate of the error",
        "truncated table": "on a graph this large the table is built from bounded neighbourhoods",
    }
    return [Advice("k", k, why), Advice("order", order, reason), Advice("form", form, reasons[form])]
