"""A user's graph before anything is encoded: ids, edges and columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError
from asgat.graph.graph import Floats, Graph, Ints
from asgat.tabular.column import Column

MOST_ONE_WAY = 0.2  # share of edges that also run the other way, below which they seem to have a direction
FEWEST = 10  # edges from which a share says something


@dataclass(frozen=True, eq=False)
class UserGraph:
    """A graph with columns of features, and optionally labels and splits.

    It can be indexed like an array of nodes, ``graph[[0, 3]]``: the whole graph with some of its nodes selected, which
    is what scikit-learn's cross-validation passes to an estimator.
    """

    ids: Sequence[str]
    edges: Ints  # connected rows of ``ids``, [2, E]; directions, repetitions and loops as given
    features: Sequence[Column]
    weight: Floats | None = None  # of every edge; None is 1
    label: Column | None = None  # the class of every node, where it is known
    splits: Sequence[Column] = ()  # each says which part every node is in
    columns: dict[str, str | None] = field(default_factory=dict)  # the user's column for each role, such as id
    notes: Sequence[str] = ()  # what was noticed or changed while reading, in sentences
    name: str = "graph"
    chosen: Ints | None = None  # rows of the selected nodes; None is all
    directed: bool = False  # whether the direction of edges is used
    declared: Sequence[str] = ()  # features of which the user says that they are numbers or categories
    reciprocal: float | None = None  # their :func:`reciprocal_share`

    @cached_property
    def graph(self) -> Graph:
        """The same edges as a graph, undirected unless ``directed``."""
        return Graph.from_edges(self.edges, len(self.ids), self.weight, directed=self.directed)

    def _with(self, **changes: Any) -> Self:
        """The same edges with other fields; the graph is built once."""
        other = replace(self, **changes)
        other.__dict__["graph"] = self.graph
        return other

    def select(self, chosen: Ints | None) -> Self:
        """The same graph with these nodes selected, all of them for None."""
        return self._with(chosen=chosen)

    def reordered(self, rows: Ints) -> Self:
        """The same graph with its nodes in another order, ``rows[i]`` being the row that node i has now."""
        if np.array_equal(rows, np.arange(self.num_nodes)):
            return self
        place = np.empty_like(rows)
        place[rows] = np.arange(len(rows))
        return replace(
            self,
            ids=[self.ids[row] for row in rows.tolist()],
            edges=place[self.edges],
            features=[column.take(rows) for column in self.features],
            label=None if self.label is None else self.label.take(rows),
            splits=[column.take(rows) for column in self.splits],
            chosen=None if self.chosen is None else place[self.chosen],
        )

    def with_label(self, name: str) -> Self:
        """The same graph with the labels in a column, which is no feature then; without any if there is no such one."""
        if self.label is not None and name in (self.columns.get("label"), self.label.name):
            return self
        column = next((column for column in self.features if column.name == name), None)
        features = [other for other in self.features if other is not column]
        return self._with(label=column, features=features, columns={**self.columns, "label": name})

    def with_splits(self, splits: Sequence[Column]) -> Self:
        """The same graph with these splits."""
        return self._with(splits=splits)

    @property
    def num_nodes(self) -> int:
        return len(self.ids)

    @property
    def nodes(self) -> Ints:
        return np.arange(self.num_nodes) if self.chosen is None else self.chosen

    @property
    def shape(self) -> tuple[int]:
        return (len(self.nodes),)

    @property
    def labelled(self) -> Self:
        """The same graph with those of its selected nodes selected that have a label."""
        missing = self._label.missing[self.nodes]
        return self.select(self.nodes[~missing])

    @property
    def y(self) -> npt.NDArray[Any]:
        """The labels of the selected nodes, as scikit-learn's splitters and scores take them."""
        column = self._label.take(self.nodes)
        if column.missing.any():
            without = f"{int(column.missing.sum()):,} of the {len(self):,} selected nodes have no label"
            raise AsgatError(f"{without}; graph.labelled selects the others.")
        return column.values if isinstance(column.values, np.ndarray) else np.array(column.texts())

    @property
    def _label(self) -> Column:
        if self.label is None:
            raise AsgatError("The graph has no labels; name their column when it is read, such as label='kind'.")
        return self.label

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, key: Any) -> Self:
        return self.select(np.atleast_1d(self.nodes[key[0] if isinstance(key, tuple) else key]))

    def __repr__(self) -> str:
        chosen = "" if self.chosen is None else f", chosen={len(self)}"
        size = f"nodes={self.num_nodes}, edges={self.edges.shape[1]}, features={len(self.features)}"
        return f"UserGraph({self.name!r}, {size}{chosen})"


def reciprocal_share(ends: npt.NDArray[np.int64], num_nodes: int, listed_once: bool = False) -> float | None:
    """The share of the edges [2, E] between different nodes that also run the other way; None if there are few edges.

    ``listed_once``: whether a list of undirected edges may name each pair once. Then the share is None, too, where the
    lower node always comes first, as such lists often have it.
    """
    source, target = ends[:, ends[0] != ends[1]]
    edges = np.unique(source * num_nodes + target)
    if len(edges) < FEWEST or (listed_once and bool((source < target).all())):
        return None
    back = edges % num_nodes * num_nodes + edges // num_nodes
    return float(np.isin(back, edges).mean())
