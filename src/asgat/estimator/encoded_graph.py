"""A user's graph made ready to train on: features encoded, labels numbered, split in three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Dataset, Split
from asgat.errors import AsgatError
from asgat.tabular.column import Column
from asgat.tabular.encoder import FeatureEncoder
from asgat.tabular.labels import encode_labels, make_split, read_split, split_of_mask
from asgat.tabular.user_graph import UserGraph

OWN = "own"  # the protocol of a graph that is the user's
ClassType = Literal["str", "int", "float", "bool"]


@dataclass(frozen=True, eq=False)
class Encoding:
    """What has to be remembered to read another graph alike, or to name what a model predicts.

    Args:
        encoder: of the features.
        classes: the classes, of the type the labels had.
        columns: which column of the user's had which role.
    """

    encoder: FeatureEncoder
    classes: npt.NDArray[Any]
    columns: dict[str, str | None]

    @property
    def class_names(self) -> list[str]:
        return [str(name) for name in self.classes.tolist()]

    def to_dict(self) -> dict[str, Any]:
        kinds: dict[str, ClassType] = {"i": "int", "u": "int", "f": "float", "b": "bool"}
        return {
            "columns": self.columns,
            "classes": self.class_names,
            "class_type": kinds.get(self.classes.dtype.kind, "str"),
            "feature_names": self.encoder.names,
            **self.encoder.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Encoding:
        """From what :meth:`to_dict` gave, checked."""
        readers: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str, "bool": "True".__eq__}
        try:
            reader = readers[values["class_type"]]
            classes = np.array([reader(text) for text in values["classes"]])
            columns = {str(role): None if name is None else str(name) for role, name in values["columns"].items()}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise AsgatError(f"The encoding cannot be read: {error!r}; fit anew.") from error
        return cls(FeatureEncoder.from_dict(values), classes, columns)


@dataclass(frozen=True, eq=False)
class EncodedGraph:
    """A graph ready to train on.

    Args:
        own: as it was given.
        dataset: encoded, with one split.
        encoding: how.
        notes: what was noticed and changed, in sentences.
    """

    own: UserGraph
    dataset: Dataset
    encoding: Encoding
    notes: list[str]


def prepare(
    own: UserGraph, y: Any = None, mask: Any = None, val_mask: Any = None, seed: int = 0, test: bool = True
) -> EncodedGraph:
    """Encodes features and labels of a graph and splits its labelled nodes.

    Args:
        own: the graph.
        y: labels of its (chosen) nodes; None takes those it has.
        mask: nodes to learn from, as a mask or as numbers; None takes the graph's split, or its chosen nodes, or
            makes a stratified split.
        val_mask: nodes of early stopping; None keeps a quarter of the mask for it.
        seed: of the split.
        test: whether a split that is made keeps a test part.
    """
    notes = list(own.notes)
    label = label_column(own, y)
    codes, classes = encode_labels(label, notes)
    if mask is None and own.chosen is not None:
        mask = np.zeros(own.num_nodes, dtype=bool)
        mask[own.chosen] = True
    if mask is not None:
        inside = as_mask(mask, own.num_nodes)
        if val_mask is None:
            split = split_of_mask(inside, codes, seed)
        else:
            split = _with_validation(inside, as_mask(val_mask, own.num_nodes), codes)
    elif own.split is not None:
        split = read_split(own.split, codes, seed, notes)
    elif test:
        split = make_split(codes, seed, notes)
    else:
        split = split_of_mask(codes >= 0, codes, seed)
    lacking = np.setdiff1d(np.unique(codes[codes >= 0]), codes[split.train])
    if len(lacking):
        notes.append(f"No training node is of class {str(classes[lacking[0]])!r:.60}; it cannot be learned.")
    encoder = FeatureEncoder.fit(own.features)
    x, _ = encoder.transform(own.features, own.graph)
    dataset = Dataset(own.name, own.graph, x, codes, (split,), len(classes), protocol=OWN)
    encoding = Encoding(encoder, np.array(classes.tolist()), dict(own.columns))
    return EncodedGraph(own, dataset, encoding, [*notes, *encoder.notes])


def encode_graph_for(own: UserGraph, encoding: Encoding) -> tuple[Dataset, list[str]]:
    """Another graph, or the same, as a model of that encoding takes it; labels and split mean nothing in it."""
    x, notes = encoding.encoder.transform(own.features, own.graph)
    y = np.zeros(own.num_nodes, dtype=np.int64)
    anything = Split(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    return Dataset(own.name, own.graph, x, y, (anything,), len(encoding.classes), protocol=OWN), notes


def label_column(own: UserGraph, y: Any) -> Column:
    """The labels of all nodes; those of nodes that are not chosen are missing where labels are handed over."""
    if y is None:
        if own.label is None:
            raise AsgatError("There are no labels: give y, or a graph that has them.")
        return own.label
    values = y.detach().cpu().numpy() if hasattr(y, "detach") else np.asarray(y)
    if values.shape != (len(own),):
        raise AsgatError(f"y must hold one label per node, {len(own)} of them, but has shape {list(values.shape)}.")
    if values.dtype.kind in "iu":
        column = Column("y", values, values < 0)
    elif values.dtype.kind in "bf":
        column = Column.of_array("y", values)
    else:
        column = Column.of_objects("y", values.tolist())
    if own.chosen is None:
        return column
    rows = np.zeros(own.num_nodes, dtype=np.int64)
    rows[own.chosen] = np.arange(len(own))
    whole = column.take(rows)
    inside = np.zeros(own.num_nodes, dtype=bool)
    inside[own.chosen] = True
    return Column("y", whole.values, whole.missing | ~inside)


def as_mask(nodes: Any, num_nodes: int) -> npt.NDArray[np.bool_]:
    """A mask [N] from a mask or from node numbers."""
    given = nodes.detach().cpu().numpy() if hasattr(nodes, "detach") else np.asarray(nodes)
    if given.dtype == bool:
        if given.shape != (num_nodes,):
            raise AsgatError(f"A mask must have shape [{num_nodes}], not {list(given.shape)}.")
        return given
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise AsgatError(f"A mask must be booleans or node numbers, not {given.dtype} {list(given.shape)}.")
    if given.size and (given.min() < 0 or given.max() >= num_nodes):
        raise AsgatError(f"A mask names node {given.max()}, but nodes run from 0 to {num_nodes - 1}.")
    mask = np.zeros(num_nodes, dtype=bool)
    mask[given.astype(np.int64)] = True
    return mask


def _with_validation(
    mask: npt.NDArray[np.bool_], val_mask: npt.NDArray[np.bool_], codes: npt.NDArray[np.int64]
) -> Split:
    labelled = codes >= 0
    both = mask & val_mask
    if both.any():
        raise AsgatError(f"Node {np.flatnonzero(both)[0]} is in mask and in val_mask; they must be disjoint.")
    if not (val_mask & labelled).any():
        raise AsgatError("val_mask holds no labelled node; early stopping needs some.")
    rest = labelled & ~mask & ~val_mask
    return Split(np.flatnonzero(mask & labelled), np.flatnonzero(val_mask & labelled), np.flatnonzero(rest))
