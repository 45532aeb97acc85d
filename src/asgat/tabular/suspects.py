"""Columns of the nodes that are no features: copies of the label, splits in words, codes written as numbers."""

import re
from collections.abc import Sequence
from math import lgamma, log
from typing import Literal

import numpy as np
import numpy.typing as npt

from asgat.tabular.column import Column
from asgat.tabular.labels import PARTS

MOST_VALUES = 3  # per class, of a column that is taken for a form of the label
CHANCE = 1e-3  # how many of all columns may be taken for a form of the label by chance
SAMPLE = 200  # labelled nodes at which a column is looked at first
FEW = 20  # values of a column of whole numbers that may be codes, however close they lie
YEARS = 1500, 2100
MASK = re.compile(r"(train|val|test)_mask_?(\d{0,6})")


def forms_of_label(columns: Sequence[Column], codes: npt.NDArray[np.int64]) -> list[Column]:
    """The columns that determine the class of every labelled node or follow from it, as a copy or one-hot code does.

    It must be no chance: of the orders of n nodes, one in n! / Π n_c! has the classes where they are, and V values can
    be matched with C classes in C^V ways. So neither ids, nor measurements, nor the words of a small graph are taken
    for a label.

    Args:
        codes: class numbers [N], -1 without a label.
    """
    rows = np.flatnonzero(codes >= 0)
    rows = rows[np.argsort(codes[rows], kind="stable")]
    y = np.asarray(np.unique(codes[rows], return_inverse=True)[1], dtype=np.int64).reshape(-1)
    sample = np.unique(np.linspace(0, len(rows) - 1, SAMPLE).astype(np.int64)) if len(rows) else rows
    least = log(max(len(columns), 1) / CHANCE)
    found = []
    for column in columns:
        first = _values(column, rows[sample])
        if not _determines(first, y[sample]) and not (_determines(y[sample], first) and _is_constant(column, rows, y)):
            continue
        values = _values(column, rows)
        counts, classes = np.bincount(values), np.bincount(y)
        if not 2 <= len(counts) <= MOST_VALUES * len(classes):
            continue
        evidence = [0.0]
        if _determines(values, y):
            evidence.append(_log_orders(classes) - len(counts) * log(len(classes)))
        if _determines(y, values):
            evidence.append(_log_orders(counts) - len(classes) * log(len(counts)))
        if max(evidence) > least:
            found.append(column)
    return found


def _values(column: Column, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The distinct values at some rows as numbers from 0; missing is one value."""
    part = column.take(rows)
    if isinstance(part.values, np.ndarray):
        _, numbers = np.unique(np.where(part.missing, np.inf, part.values), return_inverse=True)
        return np.asarray(numbers, dtype=np.int64).reshape(-1)
    number: dict[str, int] = {}
    return np.array([number.setdefault(text, len(number)) for text in part.texts()], dtype=np.int64)


def _determines(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> bool:
    """Whether equal numbers in one, which run from 0, go with equal numbers in the other."""
    kept = np.zeros(int(one.max(initial=-1)) + 1, dtype=np.int64)
    kept[one] = other
    return bool((kept[one] == other).all())


def _is_constant(column: Column, rows: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> bool:
    """Whether a column of numbers is the same at all nodes of a class; True for texts, at which it is not worth while.

    Most columns of words in documents are zero in the sample, and this is faster than to sort them.
    """
    if not isinstance(column.values, np.ndarray):
        return True
    values = column.values[rows]
    kept = np.zeros(int(y[-1]) + 1, dtype=values.dtype)
    kept[y] = values
    return bool((kept[y] == values).all())


def _log_orders(counts: npt.NDArray[np.int64]) -> float:
    """The logarithm of the number of different orders of n things of which equal ones are counted."""
    return lgamma(int(counts.sum()) + 1) - sum(lgamma(count + 1) for count in counts.tolist())


def find_splits(columns: Sequence[Column]) -> list[tuple[list[Column], Column]]:
    """Columns that say which part a node is in, each with the parts in words.

    A column of words is one if all of them name a part, train among them; so are the three masks of PyG, and every
    three with the same number at their end. A mask without a number belongs to all of these.
    """
    found = []
    for column in columns:
        if column.is_text and _are_parts({text.strip().lower() for text in set(column.values)}):
            found.append(([column], column))
    masks: dict[str, dict[str, Column]] = {}
    for column in columns:
        if (match := MASK.fullmatch(column.name)) and _is_mask(column):
            masks.setdefault(match[2], {})[match[1]] = column
    common = masks.pop("", {}) if len(masks) > 1 else {}
    for number in sorted(masks, key=lambda text: int(text or 0)):
        parts = np.full(len(columns[0]), "", dtype=object)
        held = {**common, **masks[number]}
        for part, column in held.items():
            parts[column.numbers == 1.0] = part
        found.append((list(held.values()), Column.of_texts(f"mask{number}", parts.tolist())))
    return found


def _are_parts(words: set[str]) -> bool:
    return words <= set(PARTS) and {"train"} < {PARTS[word] for word in words} - {""}


def _is_mask(column: Column) -> bool:
    numbers = column.numbers
    return numbers is not None and bool(np.isin(numbers, (0.0, 1.0)).all())


def is_complete(parts: Column, codes: npt.NDArray[np.int64]) -> bool:
    """Whether every labelled node is in a part, and some are for training and some for testing."""
    names = np.array([PARTS[text.lower()] for text in parts.texts()])[codes >= 0]
    return bool((names != "").all() and (names == "train").any() and (names == "test").any())


def looks_like(column: Column) -> Literal["codes", "ids"] | None:
    """What whole numbers seem to be, if they do not seem to measure: codes of things, or numbers of the nodes."""
    values = _whole_numbers(column)
    if values is None:
        return None
    if _are_codes(values):
        return "codes"
    return "ids" if len(values) == len(column) and _are_ids(values) else None


def _are_codes(values: npt.NDArray[np.int64]) -> bool:
    """Whether whole numbers seem to name things, such as subjects or schools.

    They repeat, and they are few, or lie far from zero for their range, or leave out most numbers of it. Years, and
    counts, which have most small numbers, are not meant.
    """
    distinct = np.unique(values)
    low, high, repeats = int(distinct[0]), int(distinct[-1]), len(values) / len(distinct)
    if len(distinct) < 3 or low < 0 or (low >= YEARS[0] and high <= YEARS[1]):
        return False
    steps = np.diff(distinct)
    if len(distinct) <= FEW and repeats >= 10 and (steps == steps[0]).all():
        return True
    if low > 2 * (high - low) and repeats >= 2:
        return True
    possible = (high - low) // int(np.gcd.reduce(steps)) + 1
    return len(distinct) < 0.1 * possible and repeats > 1.1 and int((distinct < 10).sum()) < 5


def _are_ids(values: npt.NDArray[np.int64]) -> bool:
    """Whether all whole numbers differ, and they leave few gaps."""
    close = len(values) >= FEW and int(values.max() - values.min()) < 2 * len(values)
    return close and len(np.unique(values)) == len(values)


def _whole_numbers(column: Column) -> npt.NDArray[np.int64] | None:
    """The values of a column, if they are whole numbers and most are not zero."""
    held = column.values
    if column.is_category or (isinstance(held, np.ndarray) and 2 * np.count_nonzero(held) <= len(held)):
        return None
    numbers = column.numbers
    if numbers is None or 2 * np.count_nonzero(numbers) <= len(numbers):
        return None
    present = numbers[np.isfinite(numbers)]
    if not len(present) or np.abs(present).max() >= 2**53 or (present != np.round(present)).any():
        return None
    return present.astype(np.int64)
