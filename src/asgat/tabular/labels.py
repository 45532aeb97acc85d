"""Labels of any kind as class numbers, and splits of the labelled nodes."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Split
from asgat.data.splits import split_from_masks, stratified_splits
from asgat.errors import AsgatError, listed
from asgat.tabular.caution import Caution
from asgat.tabular.column import MISSING, Column

TRAIN, VAL = 0.6, 0.2  # shares of every class; the rest is the test part
PARTS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("", "none"), ""),
    "test": "test",
}
# Labels that often mean that there is none; read as classes all the same.
DOUBTFUL = frozenset({"unknown", "unlabelled", "unlabeled", "undefined", "missing", "?", "??", "-", "--", "-1", "tbd"})
MANY = 20  # classes that are numbers


def encode_labels(label: Column, notes: list[str] | None = None) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Class numbers [N], -1 where there is no label, and the classes in order, of the type the labels have.

    Labels no model could learn from are refused: none, a single class, or as many classes as nodes.
    """
    notes = [] if notes is None else notes
    present = ~label.missing
    if not present.any():
        raise AsgatError(f"No node has a label (column {label.name!r}); there is nothing to learn from.")
    if isinstance(label.values, np.ndarray):
        values: npt.NDArray[Any] = label.values[present]
    else:
        values = np.array([text for text in label.texts() if text], dtype=object)
        words = Counter(text.strip() for text, absent in zip(label.values, label.missing, strict=True) if absent)
        notes.extend(
            f"{count:,} nodes are labelled {word!r}, which is read as no label; rename the class if it is one."
            for word, count in words.items()
            if word in MISSING - {""}
        )
    if values.dtype.kind == "f" and (values == np.round(values)).all() and float(np.abs(values).max()) < 2**53:
        values = values.astype(np.int64)  # whole numbers that missing values made floats
    classes, numbers, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(classes) == 1:
        raise AsgatError(
            f"All labelled nodes are of one class, {str(classes[0])!r:.60} (column {label.name!r}); "
            "a classifier needs two or more."
        )
    if len(classes) > 0.5 * len(values) and len(classes) > 20:
        raise AsgatError(
            f"The column {label.name!r} has {len(classes):,} different values at {len(values):,} nodes; these are not "
            "classes. A model here learns classes, not quantities: name another --label, or put the values into bins."
        )
    notes.extend(
        Caution(
            f"{count:,} nodes are labelled {str(name)!r}, which is taken as a class of its own. If their class is not "
            "known, leave their label empty."
        )
        for name, count in zip(classes, counts, strict=True)
        if str(name).lower() in DOUBTFUL and {str(each) for each in classes} != {"-1", "1"}
    )
    if _are_quantities(classes):
        notes.append(
            Caution(
                f"The label {label.name!r} has {len(classes):,} different numbers. Each is a class of its own and "
                "their order is not used: this is classification. Put quantities into bins."
            )
        )
    rare = [repr(str(name)) for name, count in zip(classes, counts, strict=True) if count == 1]
    if rare:
        one = f"class {rare[0]}: it is" if len(rare) == 1 else f"each of the classes {listed(rare)}: they are"
        cannot = "class" if len(rare) == 1 else "classes"
        notes.append(f"Only one node is of {one} trained on, so the {cannot} cannot be tested.")
    codes = np.full(len(label), -1, dtype=np.int64)
    codes[present] = numbers.reshape(-1)
    return codes, classes


def _are_quantities(classes: npt.NDArray[Any]) -> bool:
    """Whether classes are many numbers, or fractions, and not class numbers from 0 without a gap."""
    try:
        numbers = np.sort(classes.astype(np.float64))
    except ValueError:
        return False
    fractions = bool((numbers != np.round(numbers)).any())
    return fractions or (len(numbers) > MANY and not np.array_equal(numbers, np.arange(len(numbers))))


def make_split(y: npt.NDArray[np.int64], seed: int, notes: list[str]) -> Split:
    """A stratified split, 60/20/20; every class is trained on, and at least one node is for validation."""
    split = stratified_splits(y, 1, seed, TRAIN, VAL)[0]
    notes.append("A stratified split was made of the labelled nodes: 60 % train, 20 % val, 20 % test.")
    return _with_validation(split, y, seed, notes)


def read_split(column: Column, y: npt.NDArray[np.int64], seed: int, notes: list[str]) -> Split:
    """The split given by a column of train, val, test or nothing; nodes without a label are in no part."""
    texts = column.texts()
    for row, text in enumerate(texts, 1):
        if text.lower() not in PARTS:
            held = f"holds {text!r:.60} in row {row}"
            raise AsgatError(f"The column {column.name!r} {held}; write train, val, test or nothing.")
    parts = np.array([PARTS[text.lower()] for text in texts])
    unlabelled = int((np.isin(parts, ("train", "val")) & (y < 0)).sum())
    if unlabelled:
        notes.append(f"{unlabelled:,} nodes of the split have no label and are left out.")
    split = split_from_masks(parts == "train", parts == "val", parts == "test", y)
    if not len(split.train):
        raise AsgatError(f"The column {column.name!r} puts no labelled node into train; there is nothing to learn.")
    return _with_validation(split, y, seed, notes)


def split_of_mask(mask: npt.NDArray[np.bool_], y: npt.NDArray[np.int64], seed: int) -> Split:
    """The labelled nodes of a mask, a quarter of each class to validate on; all other labelled nodes are tested."""
    inside, outside = np.where(mask, y, -1), np.where(mask, -1, y)
    if not (inside >= 0).any():
        raise AsgatError("The mask holds no labelled node; there is nothing to learn from.")
    drawn = stratified_splits(inside, 1, seed, 0.75, 0.25)[0]
    split = Split(drawn.train, np.sort(np.concatenate([drawn.val, drawn.test])), np.flatnonzero(outside >= 0))
    return _with_validation(split, y, seed, [])


def _with_validation(split: Split, y: npt.NDArray[np.int64], seed: int, notes: list[str]) -> Split:
    """The split itself, or with some training nodes moved to an empty validation part."""
    if len(split.val):
        return split
    labels = y[split.train]
    several = split.train[np.bincount(labels)[labels] > 1]
    if not len(several):
        raise AsgatError(
            f"There are only {len(split.train)} labelled nodes to train on, no two of one class, so none can be kept "
            "for validation; label more nodes."
        )
    inside = np.full(len(y), -1, dtype=np.int64)
    inside[several] = y[several]
    drawn = stratified_splits(inside, 1, seed, 0.75, 0.25)[0]
    val = drawn.val if len(drawn.val) else several[:1]
    notes.append(f"{len(val):,} of the training nodes {'was' if len(val) == 1 else 'were'} kept for validation.")
    return Split(np.setdiff1d(split.train, val), val, split.test)
