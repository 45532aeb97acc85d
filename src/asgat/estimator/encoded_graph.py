"""A user's graph encoded for training: features as numbers, labels as class numbers, nodes split in three."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Dataset, Split
from asgat.data.splits import split_from_masks
from asgat.errors import AsgatError
from asgat.tabular.caution import Caution
from asgat.tabular.column import Column
from asgat.tabular.encoder import FeatureEncoder, quoted
from asgat.tabular.labels import encode_labels, make_split, read_split, split_of_mask
from asgat.tabular.suspects import find_splits, forms_of_label, is_complete, looks_like
from asgat.tabular.user_graph import MOST_ONE_WAY, UserGraph

NOT_MEASURED = {
    "codes": "codes: whole numbers that name things. `--categorical COLUMN` gives every value a column of its own.",
    "ids": "numbers of the nodes, which say nothing about other nodes. `--ignore COLUMN` leaves a column out.",
}
FEW_TEST = 20  # test nodes below which a single one decides much of a score
USER_PROTOCOL = "own"  # the protocol of a user's graph, as run directories have it


@dataclass(frozen=True, eq=False)
class Encoding:
    """What is needed to read another graph in the same way, or to name what a model predicts.

    Classes are of the type the labels had; columns are the user's for each role; splits are the names of the columns
    that say train, val or test.
    """

    encoder: FeatureEncoder
    classes: npt.NDArray[Any]
    columns: dict[str, str | None]
    splits: Sequence[str] = ()

    @property
    def class_names(self) -> list[str]:
        return [str(name) for name in self.classes.tolist()]

    def to_dict(self) -> dict[str, Any]:
        kinds = {"i": "int", "u": "int", "f": "float", "b": "bool"}
        return {
            "columns": self.columns,
            "splits": list(self.splits),
            "classes": self.class_names,
            "class_type": kinds.get(self.classes.dtype.kind, "str"),
            "feature_names": self.encoder.names,
            **self.encoder.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Encoding:
        """The inverse of :meth:`to_dict`, with checks."""
        readers: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str, "bool": "True".__eq__}
        try:
            reader = readers[values["class_type"]]
            classes = np.array([reader(text) for text in values["classes"]])
            columns = {str(role): None if name is None else str(name) for role, name in values["columns"].items()}
            older = columns.pop("split", None)  # versions that knew one split wrote it here
            splits = [str(name) for name in values.get("splits", [older] if older is not None else [])]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise AsgatError(f"The encoding cannot be read: {error!r}; fit again.") from error
        return cls(FeatureEncoder.from_dict(values), classes, columns, splits)


@dataclass(frozen=True, eq=False)
class EncodedGraph:
    """A graph ready to train on: as it was given, encoded with its splits, how, and notes in sentences."""

    user_graph: UserGraph
    dataset: Dataset
    encoding: Encoding
    notes: list[str]
    given_validation: bool = False  # whether the user says which nodes are for validation

    def datasets(self) -> dict[bool, Dataset]:
        """The data set as an undirected graph, under False, and under True with directed edges, if they are or seem."""
        share = self.user_graph.reciprocal
        if self.user_graph.directed:
            return {False: replace(self.dataset, graph=self.dataset.graph.undirected), True: self.dataset}
        if share is None or share >= MOST_ONE_WAY:
            return {False: self.dataset}
        return {False: self.dataset, True: replace(self.dataset, graph=replace(self.user_graph, directed=True).graph)}


def encode_user_graph(
    user_graph: UserGraph,
    y: Any = None,
    mask: Any = None,
    val_mask: Any = None,
    seed: int = 0,
    test: bool = True,
    repeats: int = 1,
    metric: str = "micro_f1",
) -> EncodedGraph:
    """Encodes features and labels of a graph and splits its labelled nodes.

    Which columns are left out is decided by labels of training and validation nodes. All splits share the columns, and
    these must not depend on how many splits are taken: the first, whose model is the one that is kept, decides.

    Args:
        y: labels of its selected nodes; None takes those it has.
        mask: nodes to learn from, as a mask or as indices; None takes the graph's split, or its selected nodes, or
            draws a stratified split.
        val_mask: nodes for early stopping; None takes a quarter of the mask.
        test: whether a split that is drawn has a test part.
        repeats: how many splits to take: the given ones, over and over, or drawn ones, with this and the next seeds.
        metric: what validation decides by.
    """
    notes, num_nodes = list(user_graph.notes), user_graph.num_nodes
    label = label_column(user_graph, y)
    codes, classes = encode_labels(label, notes)
    mask, named = user_graph.chosen if mask is None else mask, [column.name for column in user_graph.splits]
    user_graph, unused = _take_splits(user_graph, codes, mask is not None, notes)
    given = val_mask is not None if mask is not None else bool(user_graph.splits)

    def draw(repeat: int, notes: list[str]) -> Split:
        if mask is not None:
            inside = as_mask(mask, num_nodes)
            if val_mask is None:
                return split_of_mask(inside, codes, seed + repeat)
            stopping = as_mask(val_mask, num_nodes)
            if (inside & stopping).any():
                both = np.flatnonzero(inside & stopping)[0]
                raise AsgatError(f"Node {both} is in mask and in val_mask; they must be disjoint.")
            if not (stopping & (codes >= 0)).any():
                raise AsgatError("val_mask holds no labelled node; early stopping needs some.")
            return split_from_masks(inside, stopping, ~inside & ~stopping, codes)
        if user_graph.splits:
            return read_split(user_graph.splits[repeat % len(user_graph.splits)], codes, seed + repeat, notes)
        if test:
            return make_split(codes, seed + repeat, notes)
        return split_of_mask(codes >= 0, codes, seed + repeat)

    splits, names = list[Split](), [column.name for column in user_graph.splits] if mask is None else []
    for repeat in range(repeats):
        said: list[str] = []
        split = draw(repeat, said)
        lacking = np.setdiff1d(np.unique(codes[codes >= 0]), codes[split.train])
        if len(lacking):
            said.append(f"No training node is of class {str(classes[lacking[0]])!r:.60}; it cannot be learned.")
        if splits and bool(len(split.test)) != bool(len(splits[0].test)):
            raise AsgatError("Some splits have test nodes and others have none; leave out either with --split.")
        if not repeat and 0 < len(split.test) < FEW_TEST:
            several = len(split.test) > 1
            count = f"{len(split.test)} test nodes: each" if several else "1 test node: it"
            points = f"{100 / len(split.test):.1f} points of a test score"
            said.append(f"Only {count} is {points}, so small differences mean little.")
        if repeat < max(1, len(names)):
            notes += [f"In the split {names[repeat]!r}: {note}" for note in said] if len(names) > 1 else said
        splits.append(split)
    if len(names) > 1:
        used = "taken in turn" if repeats >= len(names) else f"of which the first {repeats} are used"
        notes.append(f"There are {len(names)} splits, {used if repeats > 1 else 'of which the first is used'}.")
    visible = splits[0].visible(codes)
    leaks = _leave_out(user_graph, visible, unused, notes)
    if y is not None or user_graph.columns.get("label") is None:
        _check_label_is_no_feature(leaks, replace(label, missing=visible < 0))
    encoder = FeatureEncoder.fit(user_graph.features, unused)
    x, _ = encoder.transform(user_graph.features, user_graph.graph)
    dataset = Dataset(user_graph.name, user_graph.graph, x, codes, tuple(splits), len(classes), metric, USER_PROTOCOL)
    encoding = Encoding(encoder, np.array(classes.tolist()), dict(user_graph.columns), named)
    return EncodedGraph(user_graph, dataset, encoding, [*notes, *encoder.notes], given)


def _take_splits(
    user_graph: UserGraph, codes: npt.NDArray[np.int64], masked: bool, notes: list[str]
) -> tuple[UserGraph, set[str]]:
    """The graph with the splits its columns hold, unless there is one, and the names of such columns."""
    unused: set[str] = set()
    splits, said = list[Column](), dict[str, list[str]]()
    for columns, parts in find_splits(user_graph.features):
        if masked or user_graph.splits:
            what = ", and another split is used: left out."
        elif not is_complete(parts, codes):
            what = ", but not for all labelled nodes and parts: left out. `--split COLUMN` uses it."
        else:
            what = ": used as the split."
            if parts.texts() not in [other.texts() for other in splits]:
                splits.append(parts)
        said.setdefault(what, []).extend(column.name for column in columns)
        unused.update(column.name for column in columns)
    if len(splits) > 1:
        said[f": used as {len(splits)} splits."] = said.pop(": used as the split.")
    for what, held in said.items():
        own = list(dict.fromkeys(held))  # a mask may belong to several splits
        notes.append(Caution(f"{quoted(own)} {'say' if len(own) > 1 else 'says'} which part a node is in{what}"))
    return user_graph.with_splits(splits) if splits else user_graph, unused


def _leave_out(
    user_graph: UserGraph, visible: npt.NDArray[np.int64], unused: set[str], notes: list[str]
) -> list[Column]:
    """The columns that reveal the label, which are added to those that are no features."""
    features = [column for column in user_graph.features if column.name not in unused]
    leaks = forms_of_label([column for column in features if column.name not in user_graph.declared], visible)
    if leaks:
        names = quoted([column.name for column in leaks])
        notes.append(
            Caution(
                f"{names} {'tell' if len(leaks) > 1 else 'tells'} the class of training and validation nodes, as a "
                "copy of the label does: left out. If new nodes have such values, too, `--categorical` or `--numeric` "
                "keeps them."
            )
        )
        unused.update(column.name for column in leaks)
    rest = [column for column in features if column.name not in unused and column.name not in user_graph.declared]
    looks = [(column.name, looks_like(column)) for column in rest]
    for kind, what in NOT_MEASURED.items():
        found = [name for name, look in looks if look == kind]
        if found:
            notes.append(f"{quoted(found)} may be {what}")
    return leaks


def _check_label_is_no_feature(leaks: Sequence[Column], label: Column) -> None:
    """Refuses labels that are also given as a feature: of the same type, and equal wherever they are not missing."""
    rows = np.flatnonzero(~label.missing)
    own = label.take(rows)
    for column in leaks:
        part = column.take(rows)
        if part.missing.any() or part.is_text != own.is_text:
            continue
        if isinstance(part.values, np.ndarray) and isinstance(own.values, np.ndarray):
            same = part.values.dtype.kind == own.values.dtype.kind and np.array_equal(part.values, own.values)
        else:
            same = part.texts() == own.texts()
        if same:
            raise AsgatError(
                f"y is also among the features, as {column.name!r}: a model would read off the label. Take it out of "
                f"the features, or, if it is a column of the nodes, name it: fit(graph, y={column.name!r})."
            )


def apply_encoding(user_graph: UserGraph, encoding: Encoding) -> tuple[Dataset, list[str]]:
    """A graph as a model of that encoding takes it, and notes in sentences; its labels and split are placeholders."""
    x, notes = encoding.encoder.transform(user_graph.features, user_graph.graph)
    y, empty = np.zeros(user_graph.num_nodes, dtype=np.int64), np.zeros(0, dtype=np.int64)
    splits, classes = (Split(np.zeros(1, dtype=np.int64), empty, empty),), len(encoding.classes)
    return Dataset(user_graph.name, user_graph.graph, x, y, splits, classes, protocol=USER_PROTOCOL), notes


def label_column(user_graph: UserGraph, y: Any) -> Column:
    """The labels of all nodes; those of nodes that are not selected are missing."""
    if y is None:
        if user_graph.label is None:
            raise AsgatError(
                "There are no labels: give y with one class per node, or a graph that has them. A tensor y of PyG must "
                "have the shape [nodes]; of one-hot rows give y.argmax(1)."
            )
        return _of_selected(user_graph.label, user_graph)
    values, count = _to_numpy(y), len(user_graph)
    if values.shape != (count,):
        raise AsgatError(f"y must hold one label per node, {count} of them, but has shape {list(values.shape)}.")
    if values.dtype.kind in "iu":
        column = Column("y", values, values < 0)
    elif values.dtype.kind in "bf":
        column = Column.of_array("y", values)
    else:
        column = Column.of_objects("y", values.tolist())
    if user_graph.chosen is None:
        return column
    rows = np.zeros(user_graph.num_nodes, dtype=np.int64)
    rows[user_graph.chosen] = np.arange(count)
    return _of_selected(column.take(rows), user_graph)


def _of_selected(label: Column, user_graph: UserGraph) -> Column:
    if user_graph.chosen is None:
        return label
    return replace(label, missing=label.missing | ~as_mask(user_graph.chosen, user_graph.num_nodes))


def as_mask(nodes: Any, num_nodes: int) -> npt.NDArray[np.bool_]:
    """A mask [N] from a mask or from node indices."""
    given = _to_numpy(nodes)
    if given.dtype == bool:
        if given.shape != (num_nodes,):
            raise AsgatError(f"A mask must have shape [{num_nodes}], not {list(given.shape)}.")
        return given
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise AsgatError(f"A mask must be booleans or node indices, not {given.dtype} {list(given.shape)}.")
    outside = given[(given < 0) | (given >= num_nodes)]
    if outside.size:
        raise AsgatError(f"A mask names node {outside[0]}, but nodes run from 0 to {num_nodes - 1}.")
    mask = np.zeros(num_nodes, dtype=bool)
    mask[given.astype(np.int64)] = True
    return mask


def _to_numpy(values: Any) -> npt.NDArray[Any]:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
