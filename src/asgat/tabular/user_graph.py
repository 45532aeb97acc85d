"""A graph of the user's own before anything is encoded: ids, edges and columns, from any library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.tabular.column import Column
from asgat.tabular.table import frame_to_table


@dataclass(frozen=True, eq=False)
class UserGraph:
    """A graph with columns of features, and perhaps labels and a split.

    It can be indexed like an array of nodes, ``graph[[0, 3]]``: the whole graph with some of its nodes chosen. That is
    what scikit-learn's cross-validation hands to an estimator.

    Args:
        ids: what each node is called.
        edges: rows of ``ids`` that are joined, [2, E]; directions, repetitions and self-loops as they were given.
        features: one column per feature.
        weight: of every edge; None is 1.
        label: the class of every node, where it is known.
        split: the part every node is in.
        columns: which column of the user's has which role: id, source, target, weight, label, split.
        notes: what was noticed or changed on the way, in sentences.
        name: a name for reports.
        chosen: rows of the nodes that are meant; None is all.
    """

    ids: Sequence[str]
    edges: npt.NDArray[np.int64]
    features: Sequence[Column]
    weight: npt.NDArray[np.float64] | None = None
    label: Column | None = None
    split: Column | None = None
    columns: dict[str, str | None] = field(default_factory=dict)
    notes: Sequence[str] = ()
    name: str = "graph"
    chosen: npt.NDArray[np.int64] | None = None

    @cached_property
    def graph(self) -> Graph:
        """The undirected graph of it."""
        return Graph.from_edges(self.edges, len(self.ids), self.weight)

    def whole(self) -> UserGraph:
        """The same graph with all of its nodes chosen."""
        other = replace(self, chosen=None)
        other.__dict__["graph"] = self.graph
        return other

    @property
    def num_nodes(self) -> int:
        return len(self.ids)

    @property
    def nodes(self) -> npt.NDArray[np.int64]:
        """Rows of the nodes that are meant."""
        return np.arange(self.num_nodes) if self.chosen is None else self.chosen

    @property
    def shape(self) -> tuple[int]:
        return (len(self.nodes),)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, key: Any) -> UserGraph:
        first = key[0] if isinstance(key, tuple) else key
        chosen = np.atleast_1d(self.nodes[first])
        other = replace(self, chosen=chosen)
        other.__dict__["graph"] = self.graph  # the same, made once
        return other

    def __repr__(self) -> str:
        chosen = "" if self.chosen is None else f", chosen={len(self)}"
        size = f"nodes={self.num_nodes}, edges={self.edges.shape[1]}, features={len(self.features)}"
        return f"UserGraph({self.name!r}, {size}{chosen})"


def as_user_graph(graph: Any, x: Any = None) -> UserGraph:
    """Any graph this package knows as an :class:`UserGraph`.

    Args:
        graph: an :class:`UserGraph` or :class:`~asgat.graph.Graph`; a PyG ``Data``; a networkx graph, whose node
            attributes are the features; a square SciPy matrix; or a pair of pandas data frames, edges and nodes.
        x: features [N, F], for graphs that have none of their own.
    """
    if isinstance(graph, UserGraph):
        return graph if x is None else replace(graph, features=_columns_of(x, graph.num_nodes))
    if isinstance(graph, Graph):
        return _plain(graph, x)
    if isinstance(graph, tuple) and len(graph) == 2 and all(hasattr(part, "columns") for part in graph):
        return from_frames(*graph, x=x)
    if hasattr(graph, "edge_index"):
        return from_pyg(graph, x)
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        return from_networkx(graph, x)
    if hasattr(graph, "tocoo"):
        return _plain(Graph.from_scipy(graph), x)
    raise AsgatError(
        f"A {type(graph).__name__} is no graph that can be read; give a PyG Data, a networkx graph, a SciPy matrix, "
        "or two data frames (edges, nodes)."
    )


def from_frames(
    edges: Any,
    nodes: Any,
    label: str | None = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    split: str | None = None,
    ignore: Sequence[str] = (),
    x: Any = None,
) -> UserGraph:
    """From two pandas data frames; columns as in :func:`asgat.tabular.assembly.assemble`."""
    from asgat.tabular.assembly import assemble

    tables = frame_to_table(edges, "edges"), frame_to_table(nodes, "nodes")
    own = assemble(*tables, label=label, id=id, source=source, target=target, weight=weight, split=split, ignore=ignore)
    return own if x is None else replace(own, features=_columns_of(x, own.num_nodes))


def from_networkx(graph: Any, x: Any = None, weight: str = "weight", label: str | None = None) -> UserGraph:
    """From networkx: node attributes are features, the attribute ``label`` excepted; ids are the nodes as texts."""
    plain = Graph.from_networkx(graph, weight)
    names: list[str] = list(dict.fromkeys(key for _, held in graph.nodes(data=True) for key in held))
    columns = {str(name): Column.of_objects(str(name), (held.get(name) for _, held in graph.nodes(data=True)))
               for name in names}  # fmt: skip
    if label is not None and label not in columns:
        raise AsgatError(f"No node has an attribute {label!r}; the attributes are {', '.join(columns) or 'none'}.")
    own = _plain(plain, x)
    features = own.features if x is not None else [column for name, column in columns.items() if name != label]
    ids = [str(node) for node in graph.nodes]
    known = columns[label] if label is not None else None
    return replace(own, ids=ids, features=features, label=known, columns={"label": label}, name="networkx")


def from_pyg(data: Any, x: Any = None) -> UserGraph:
    """From a PyG ``Data``: features ``x``, labels ``y`` (-1 where there is none), masks ``train_mask`` and so on,
    of several splits the first."""
    graph = Graph.from_pyg(data)
    own = _plain(graph, x if x is not None else data.get("x"))
    label = split = None
    if data.get("y") is not None and data.y.dim() == 1 and len(data.y) == graph.num_nodes:
        y = data.y.cpu().numpy()
        label = Column("y", y, y < 0)
    if data.get("train_mask") is not None:
        parts = np.full(graph.num_nodes, "", dtype=object)
        for part in ("train", "val", "test"):
            mask = data.get(f"{part}_mask")
            if mask is not None:
                parts[(mask if mask.dim() == 1 else mask[:, 0]).cpu().numpy()] = part
        split = Column.of_texts("split", parts.tolist())
    return replace(own, label=label, split=split, name="pyg")


def _plain(graph: Graph, x: Any) -> UserGraph:
    coo = graph.adjacency.tocoo()
    row, col = coo.coords
    once = row <= col
    edges = np.stack([row[once], col[once]]).astype(np.int64)
    features = _columns_of(x, graph.num_nodes) if x is not None else []
    own = UserGraph([str(i) for i in range(graph.num_nodes)], edges, features, coo.data[once])
    own.__dict__["graph"] = graph
    return own


def _columns_of(x: Any, num_nodes: int) -> list[Column]:
    if hasattr(x, "iloc"):
        columns = list(frame_to_table(x, "x").columns.values())
    else:
        dense = x.toarray() if hasattr(x, "toarray") else x.detach().cpu().numpy() if hasattr(x, "detach") else x
        array = np.asarray(dense)
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise AsgatError(f"Features must be numbers of shape [N, F], not {array.dtype} {list(array.shape)}.")
        columns = [Column.of_array(f"x{i}", array[:, i]) for i in range(array.shape[1])]
    if columns and len(columns[0]) != num_nodes:
        raise AsgatError(f"Features have {len(columns[0])} rows, but the graph has {num_nodes} nodes.")
    return columns
