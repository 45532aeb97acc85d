"""A user's tables of edges and nodes as one graph: columns get their roles, and ids are matched."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError, brief, counted, listed, shown
from asgat.files.user_file import ending_of, is_packed
from asgat.tabular.caution import Caution
from asgat.tabular.column import Column
from asgat.tabular.graphml import read_graphml
from asgat.tabular.table import Table, read_npz_tables, read_table
from asgat.tabular.user_graph import UserGraph, reciprocal_share

ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2"), ("id1", "id2"))
PLAIN_NAMES = ("nodes", "node", "edges", "edge", "graph", "data", "vertices", "features")  # say nothing of the data
IDS = ("id", "node", "node_id", "ID", "Id", "name")
WEIGHTS = ("weight", "edge_weight")
# What a node (its id and its entry of a dictionary) and an edge (while the graph is made) take in addition to cells:
NODE_BYTES, EDGE_BYTES = 128, 40


def read_graph(
    edges: Path | str, nodes: Path | str | None = None, *columns: Any, directed: bool = False, **roles: Any
) -> UserGraph:
    """Reads a graph from a file of edges and one of nodes, or from one file that holds both (GraphML, npz).

    Args:
        edges: CSV, TSV, Parquet, GraphML or npz; texts also packed, as ``.csv.gz``.
        nodes: the same; None where the file of edges holds the nodes too.
        directed: whether edges have a direction, from source to target.
        columns, roles: as for :func:`assemble`, such as ``label="kind"``.
    """
    kind = ending_of(edges)
    inner, says_direction = None, kind == ".graphml"
    if kind == ".graphml":
        inner, edge_table = read_graphml(edges, directed)
    elif kind == ".npz":
        edge_table, inner = read_npz_tables(edges, EDGE_BYTES, NODE_BYTES)
    else:
        edge_table = read_table(edges, EDGE_BYTES)
    kind = ending_of(nodes or edges)
    if nodes is not None:
        node_table = read_graphml(nodes)[0] if kind == ".graphml" else read_table(nodes, NODE_BYTES)
    elif inner is not None:
        node_table = inner
    else:
        raise AsgatError(f"{edges} holds edges only; name the file of the nodes as well (--nodes).")
    roles = {"name": data_name(Path(nodes or edges)), "numbered": kind == ".npz", "directed": directed, **roles}
    graph = assemble(edge_table, node_table, *columns, **roles)
    return replace(graph, reciprocal=None) if says_direction else graph


def data_name(file: Path) -> str:
    """A name for the data of a file: its own, or that of its folder where it says nothing of the data."""
    folder, stem = file.absolute().parent.name, Path(file.stem).stem if is_packed(file) else file.stem
    return folder if folder and stem.lower() in PLAIN_NAMES else stem


def assemble(
    edges: Table,
    nodes: Table,
    label: str | None = None,  # of classes; nodes without a value are to be predicted
    id: str | None = None,  # of this and the next roles, None looks for the usual names
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    split: str | Sequence[str] | None = None,  # of train, val, test or nothing; of several, repeats take one each
    ignore: Sequence[str] = (),  # columns that are not features
    categorical: Sequence[str] = (),  # columns whose numbers are categories, such as codes
    numeric: Sequence[str] = (),  # columns that are numbers, whatever they look like
    optional: Sequence[str] = (),  # those of the roles label and split whose column may be absent
    name: str = "graph",  # for reports
    numbered: bool = False,  # nodes without ids are numbered from 0, and a negative label means that there is none
    directed: bool = False,  # whether edges have a direction, from source to target
) -> UserGraph:
    """Makes a graph from a table of edges and one of nodes, and the columns for their roles."""
    if numbered and id in (None, "id") and not any(usual in nodes.columns for usual in IDS):
        nodes = replace(nodes, columns={"id": Column.of_array("id", np.arange(len(nodes))), **nodes.columns})
    label = None if "label" in optional and label not in nodes.columns else label
    splits = [split] if isinstance(split, str) else [] if split is None else list(split)
    twice = next((name for name in splits if splits.count(name) > 1), None)
    if twice is not None:
        raise AsgatError(f"--split names the column {twice!r} twice; every split has a column of its own.")
    splits = [name for name in splits if "split" not in optional or name in nodes.columns]
    notes = [*nodes.notes, *edges.notes]
    _check_order(edges, nodes, label)
    id = id or _guess_id(nodes, label, notes)
    if not len(nodes):
        raise AsgatError(f"{nodes.source} has no nodes: it has a heading but no row.")
    ids = _check_ids(nodes.column(id, "--id"), nodes.source)
    source, target = _guess_ends(edges, source, target, weight, notes)
    if weight is None:
        weight = next((usual for usual in WEIGHTS if usual in edges.columns), None)
        if weight is not None and weight not in (source, target):
            notes.append(f"The column {weight!r} of {edges.source} is taken as the weight of the edges.")
    number = {text: row for row, text in enumerate(ids)}
    if source in number and target in number:
        raise AsgatError(
            f"{edges.source} seems to have no heading: its first line, {source},{target}, names two nodes; "
            "add a line such as source,target above it."
        )
    others = [name for name in edges.columns if name not in (source, target, weight)]
    if others:
        advice = "" if weight is not None else "; --weight COLUMN takes one as the weight of the edges"
        columns, are = ("columns", "are") if len(others) > 1 else ("column", "is")
        names = listed([repr(name) for name in others])
        notes.append(Caution(f"The {columns} {names} of {edges.source} {are} not used{advice}."))
    if not len(edges):
        notes.append(f"{edges.source} has no edges; every node is predicted from its own features.")
    ends = np.stack([_match(edges, end, number, nodes.source) for end in (source, target)])
    given = _weights(edges.column(weight, "--weight"), edges.source) if weight is not None else None
    label_column = nodes.column(label, "--label") if label is not None else None
    if label_column is not None and numbered and isinstance(label_column.values, np.ndarray):
        label_column = Column(label_column.name, label_column.values, label_column.missing | (label_column.values < 0))
    split_columns = [nodes.column(name, "--split") for name in splits]
    for column in ignore:
        nodes.column(column, "--ignore")
    taken = {id, label, *splits, *ignore}
    kinds = _kinds(nodes, taken, categorical, numeric)
    features = [kinds.get(heading, column) for heading, column in nodes.columns.items() if heading not in taken]
    roles = {"id": id, "source": source, "target": target, "weight": weight, "label": label}
    share = reciprocal_share(ends, len(ids), listed_once=True)
    known = label_column, split_columns
    user_graph = UserGraph(ids, ends, features, given, *known, roles, notes, name, directed=directed, reciprocal=share)
    return replace(user_graph, declared=tuple(kinds))


def _check_order(edges: Table, nodes: Table, label: str | None) -> None:
    """Refuses two tables that were given in the wrong order, as their headings show."""
    edge_names, node_names = ({name.lower() for name in table.columns} for table in (edges, nodes))
    ends = next((pair for pair in ENDS if set(pair) <= node_names and not set(pair) <= edge_names), None)
    if ends is not None and len(nodes.columns) <= 3 and label not in nodes.columns:
        found = f"{nodes.source} has the columns {ends[0]!r} and {ends[1]!r}"
    elif label is not None and label in edges.columns and label not in nodes.columns:
        found = f"the label {label!r} is a column of {edges.source}"
    else:
        return
    raise AsgatError(f"The tables of edges and nodes seem to be swapped: {found}. Exchange --edges and --nodes.")


def _kinds(
    nodes: Table, taken: Collection[str | None], categorical: Sequence[str], numeric: Sequence[str]
) -> dict[str, Column]:
    """The columns whose kind the user has named."""
    kinds = {}
    for heading in (*categorical, *numeric):
        option = "--categorical" if heading in categorical else "--numeric"
        column = nodes.column(heading, option)
        if heading in taken:
            raise AsgatError(f"The column {heading!r} is not a feature; leave out {option} {heading}.")
        if heading in categorical and heading in numeric:
            raise AsgatError(f"The column {heading!r} cannot be categorical and numeric; choose one.")
        if option == "--numeric" and column.numbers is None:
            raise AsgatError(
                f"The column {heading!r} of {nodes.source} holds {column.first_text()!r:.80}, which is not a number "
                "(--numeric); empty such cells, or leave out the option."
            )
        kinds[heading] = replace(column, is_category=option == "--categorical")
    return kinds


def _guess_id(nodes: Table, label: str | None, notes: list[str]) -> str:
    names = [name for name in (*IDS, *nodes.columns) if name in nodes.columns and name != label]
    if not names:
        raise AsgatError(f"{nodes.source} has no column of ids; name it with --id.")
    if names[0] not in IDS:
        notes.append(f"The first column of {nodes.source}, {names[0]!r}, is taken as the id.")
    return names[0]


def _guess_ends(
    edges: Table, source: str | None, target: str | None, weight: str | None, notes: list[str]
) -> tuple[str, str]:
    if source is not None and target is not None:
        return edges.column(source, "--source").name, edges.column(target, "--target").name
    if source is None and target is None:
        lower = {name.lower(): name for name in edges.columns}
        for one, other in ENDS:
            if one in lower and other in lower:
                return lower[one], lower[other]
        names = [name for name in edges.columns if name != weight and name.lower() not in WEIGHTS]
        if len(names) == 1:
            raise AsgatError(
                f"{edges.source} has one column for the ends of edges, {names[0]!r:.80}; the column for the other end "
                "is missing. Add it, or name both with --source and --target."
            )
        if len(names) == 2:
            notes.append(
                f"The columns of {edges.source}, {names[0]!r} and {names[1]!r}, are taken as the ends of edges."
            )
            return names[0], names[1]
    raise AsgatError(
        f"Which columns of {edges.source} are the ends of an edge? Name them with --source and --target; "
        f"it has {brief(', '.join(list(edges.columns)[:20]))}."
    )


def _check_ids(column: Column, where: str) -> list[str]:
    ids = _id_texts(column)
    if "" in ids:
        raise AsgatError(f"{where} has no id in row {ids.index('') + 1} (column {column.name!r}); give every node one.")
    twice = [name for name, times in Counter(ids).items() if times > 1]
    if twice:
        found = f"{counted(len(twice), 'id')} more than once: {listed([shown(name) for name in twice], 3)}"
        raise AsgatError(f"{where} has {found} (column {column.name!r}); give every node an id of its own.")
    return ids


def _id_texts(column: Column) -> list[str]:
    """The ids in a column; a text is never missing, even if it is NA or null."""
    return [text.strip() for text in column.values] if column.is_text else column.texts()


def _match(edges: Table, name: str, number: dict[str, int], where: str) -> npt.NDArray[np.int64]:
    """The rows of the nodes that a column of the edges names."""
    column = edges.column(name)
    place: Any = slice(None)
    if not column.is_text and not column.missing.any():  # numbers become texts once each, however often they occur
        distinct, place = np.unique(column.values, return_inverse=True)
        column = Column.of_array(name, distinct)
    texts = _id_texts(column)
    rows = np.fromiter((number.get(text, -1) for text in texts), np.int64, len(texts))
    if (rows < 0).any():
        first = int(np.flatnonzero(rows[place] < 0)[0])
        unknown = texts[int(np.arange(len(texts))[place][first])]
        if not unknown:
            raise AsgatError(f"{edges.source} names no node in row {first + 1} of the column {name!r}.")
        missing = len({texts[i] for i in np.flatnonzero(rows < 0).tolist()})
        others = f", nor {missing - 1:,} more" if missing > 1 else ""
        plain = {_bare(text): text for text in number}
        alike = plain.get(_bare(unknown))
        todo = (
            "add these nodes or drop their edges"
            if alike is None
            else f"{where} has {alike[:80]!r}, so write ids in one way"
        )
        raise AsgatError(
            f"{edges.source} names the node {unknown[:80]!r} in the column {name!r}, which {where} does not "
            f"have{others}; {todo}."
        )
    return np.asarray(rows[place]).reshape(-1)


def _bare(text: str) -> str:
    """An id without what two files often write in different ways: 7, 7.0 and 007; case."""
    try:
        return str(float(text)) if text.isascii() else text.casefold()
    except ValueError:
        return text.casefold()


def _weights(column: Column, where: str) -> npt.NDArray[np.float64]:
    numbers = column.numbers
    if numbers is None:
        raise AsgatError(
            f"The weight {column.first_text()!r:.80} in the column {column.name!r} of {where} is not a number; correct "
            "it, or name another column with --weight."
        )
    bad = np.flatnonzero(~np.isfinite(numbers) | (numbers < 0))
    if bad.size:
        shown = "missing" if np.isnan(numbers[bad[0]]) else f"{numbers[bad[0]]:g}"
        raise AsgatError(
            f"The weight in row {bad[0] + 1} of {where} is {shown} (column {column.name!r}); weights are numbers and "
            "not negative."
        )
    return numbers
