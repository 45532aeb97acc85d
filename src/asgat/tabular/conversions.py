"""Graphs of other libraries as :class:`~asgat.tabular.user_graph.UserGraph`: PyG, networkx, SciPy, pandas."""

from dataclasses import replace
from typing import Any

import numpy as np

from asgat.errors import AsgatError, listed
from asgat.graph import Graph
from asgat.tabular.assembly import assemble
from asgat.tabular.caution import Caution
from asgat.tabular.column import MASKS, Column
from asgat.tabular.suspects import find_splits
from asgat.tabular.table import frame_to_table
from asgat.tabular.user_graph import UserGraph, reciprocal_share


def as_user_graph(graph: Any, x: Any = None, directed: bool = False, label: str | None = None) -> UserGraph:
    """Any supported graph as a :class:`UserGraph`.

    Args:
        graph: a :class:`UserGraph` or :class:`~asgat.graph.Graph`; a PyG ``Data``; a networkx graph, whose node
            attributes are the features; a square SciPy matrix; or a pair of pandas data frames, edges and nodes.
        x: features [N, F], for graphs without features.
        directed: whether the direction of edges is used; edges of an undirected graph then run both ways. Without it,
            a directed graph is read as undirected.
        label: the column, node attribute or tensor with the labels, which is no feature. Where the graph lacks it, it
            has no labels. By default those a :class:`UserGraph` has, or ``y`` of a PyG ``Data``.
    """
    if isinstance(graph, UserGraph):
        if graph.directed != directed:
            raise AsgatError(f"The graph was read with directed={graph.directed}, not {directed}; read it again.")
        own = graph if label is None else graph.with_label(label)
        return own if x is None else replace(own, features=columns_of(x, own.num_nodes))
    if isinstance(graph, Graph):
        return _from_graph(graph, x, directed)
    if isinstance(graph, tuple) and len(graph) == 2 and all(hasattr(part, "columns") for part in graph):
        return from_frames(*graph, x=x, directed=directed, label=label, optional=("label",))
    if hasattr(graph, "edge_index"):
        return from_pyg(graph, x, directed, label or "y")
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        known = label if any(label in held for _, held in graph.nodes(data=True)) else None
        return from_networkx(graph, x, label=known, directed=directed)
    if hasattr(graph, "tocoo"):
        return _from_graph(Graph.from_scipy(graph, directed=True), x, directed)
    raise AsgatError(
        f"A {type(graph).__name__} is not a graph that can be read; give a PyG Data, a networkx graph, a SciPy matrix, "
        "or two data frames (edges, nodes)."
    )


def from_frames(edges: Any, nodes: Any, *columns: Any, x: Any = None, **roles: Any) -> UserGraph:
    """From two pandas data frames; columns as in :func:`asgat.tabular.assembly.assemble`."""
    user_graph = assemble(frame_to_table(edges, "edges"), frame_to_table(nodes, "nodes"), *columns, **roles)
    return user_graph if x is None else replace(user_graph, features=columns_of(x, user_graph.num_nodes))


def from_networkx(
    graph: Any, x: Any = None, weight: str = "weight", label: str | None = None, directed: bool = False
) -> UserGraph:
    """From networkx: node attributes are features, the attribute ``label`` excepted; ids are the nodes as texts."""
    user_graph = _from_graph(Graph.from_networkx(graph, weight, directed=True), x, directed)
    names = list(dict.fromkeys(key for _, held in graph.nodes(data=True) for key in held))
    columns = {
        str(name): Column.of_objects(str(name), (held.get(name) for _, held in graph.nodes(data=True)))
        for name in names
    }
    if label is not None and label not in columns:
        raise AsgatError(f"No node has an attribute {label!r}; the attributes are {', '.join(columns) or 'none'}.")
    features = user_graph.features if x is not None else [columns[name] for name in columns if name != label]
    ids = [str(node) for node in graph.nodes]
    known = columns[label] if label is not None else None
    user_graph = replace(user_graph, ids=ids, features=features, label=known, columns={"label": label})
    others = dict.fromkeys(str(key) for *_, held in graph.edges(data=True) for key in held if key != weight)
    notes = [Caution(f"Attributes of the edges are not used: {listed(list(others))}.")] if others else []
    return replace(user_graph, notes=notes, name="networkx")


def from_pyg(data: Any, x: Any = None, directed: bool = False, label: str = "y") -> UserGraph:
    """From a PyG ``Data``: features ``x``, labels ``y`` (-1 without one), masks ``train_mask`` and so on, of one
    or several splits; ``label`` names another tensor of labels."""
    graph = Graph.from_pyg(data, directed=True)
    known, splits = None, list[Column]()
    held = data.get(label)
    if held is not None and tuple(held.shape) in ((graph.num_nodes,), (graph.num_nodes, 1)):
        y = held.reshape(-1).cpu().numpy()
        known = Column.of_array(label, y, y < 0) if y.dtype.kind != "b" else Column.of_array(label, y)
    if data.get("train_mask") is not None:
        masks = [column for name in MASKS for column in _mask_columns(name, data.get(name), graph.num_nodes)]
        splits = [parts for _, parts in find_splits(masks)]
    x = x if x is not None else data.get("x")
    if hasattr(x, "detach") and held is not None and np.shares_memory(*(v.detach().cpu().numpy() for v in (x, held))):
        raise AsgatError(f"The features x are the labels {label!r} themselves; leave these out of the features.")
    user_graph = _from_graph(graph, x, directed)
    notes = []
    if data.get("edge_attr") is not None:
        advice = "" if data.get("edge_weight") is not None else "; edge_weight takes a number per edge"
        notes.append(Caution(f"edge_attr is not used{advice}."))
    return replace(user_graph, label=known, splits=splits, columns={"label": label}, notes=notes, name="pyg")


def _mask_columns(name: str, mask: Any, num_nodes: int) -> list[Column]:
    """The columns of a mask [N] or [N, S]; none for None."""
    if mask is None:
        return []
    held = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if held.ndim not in (1, 2) or len(held) != num_nodes or not np.isin(held, (0, 1)).all():
        expected = f"booleans of shape [{num_nodes}], or [{num_nodes}, S] for S splits"
        raise AsgatError(f"{name} must be {expected}, but is {held.dtype} {list(held.shape)}.")
    if held.ndim == 1 or held.shape[1] == 1:
        return [Column.of_array(name, held.reshape(-1))]
    return [Column.of_array(f"{name}{i}", held[:, i]) for i in range(held.shape[1])]


def _from_graph(graph: Graph, x: Any, directed: bool) -> UserGraph:
    """From a graph with the directions it was given with, which are forgotten unless ``directed``."""
    share = reciprocal_share(graph.edge_index(), graph.num_nodes)
    graph = Graph(graph.adjacency, directed=True) if directed else graph.undirected
    edges, weight = graph.edges_once()
    features = columns_of(x, graph.num_nodes) if x is not None else []
    ids = [str(i) for i in range(graph.num_nodes)]
    user_graph = UserGraph(ids, edges, features, weight, directed=directed, reciprocal=share)
    user_graph.__dict__["graph"] = graph  # need not be built again
    return user_graph


def columns_of(x: Any, num_nodes: int) -> list[Column]:
    """The columns of features [N, F]: a data frame, or an array, tensor or sparse matrix of numbers."""
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
