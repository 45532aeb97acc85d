"""A column of a table: texts or numbers, some of them missing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError

# What stands for a missing value in a text, as in pandas.
MISSING = frozenset(
    {"", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)
MASKS = ("train_mask", "val_mask", "test_mask")  # columns that say which part a node is in
BOOLEANS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "t": 1.0, "f": 0.0}


@dataclass(frozen=True, eq=False)
class Column:
    """Values of one kind, a list of texts or an array of booleans or numbers, under a name; some may be missing.

    Example:
        >>> Column.of_texts("age", ["31", "", "40"]).numbers
        array([31., nan, 40.])
    """

    name: str
    values: Sequence[str] | npt.NDArray[Any]
    missing: npt.NDArray[np.bool_]
    is_category: bool = False  # numbers name things too, and do not measure

    @classmethod
    def of_texts(cls, name: str, values: Sequence[str]) -> Self:
        """Texts, of which those in ``MISSING`` mean that there is no value."""
        absent = {value for value in set(values) if value.strip() in MISSING}
        return cls(name, values, np.fromiter((value in absent for value in values), bool, len(values)))

    @classmethod
    def of_array(cls, name: str, values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None = None) -> Self:
        """Numbers or booleans; NaN is missing."""
        absent = np.zeros(len(values), dtype=bool) if missing is None else missing
        return cls(name, values, absent | np.isnan(values) if values.dtype.kind == "f" else absent)

    @classmethod
    def of_objects(cls, name: str, values: Iterable[Any]) -> Self:
        """Python objects of any kind, as node attributes or a data frame's column hold them."""
        items = [None if isinstance(value, (float, np.floating)) and math.isnan(value) else value for value in values]
        kinds = {type(item) for item in items if item is not None}
        missing = np.fromiter((item is None for item in items), bool, len(items))
        if kinds and all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
            return cls(name, np.array([bool(item) for item in items]), missing)
        if kinds and all(issubclass(kind, (int, float, np.integer, np.floating)) for kind in kinds):
            whole = all(issubclass(kind, (int, np.integer)) for kind in kinds)
            try:
                return cls(name, np.array([item or 0 for item in items], np.int64 if whole else np.float64), missing)
            except OverflowError:
                pass  # ids beyond 64 bits are texts
        if any(issubclass(kind, (dict, list, tuple, set, np.ndarray)) for kind in kinds):
            raise AsgatError(f"The column {name!r} holds lists or tables; give one number or word per node.")
        words = bool(kinds) and all(issubclass(kind, str) for kind in kinds)  # a digit in quotes is a word
        return replace(cls.of_texts(name, ["" if item is None else str(item) for item in items]), is_category=words)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_text(self) -> bool:
        return not isinstance(self.values, np.ndarray)

    def take(self, nodes: npt.NDArray[np.int64]) -> Self:
        """The same column for some rows."""
        values = self.values
        part = values[nodes] if isinstance(values, np.ndarray) else [values[i] for i in nodes.tolist()]
        return type(self)(self.name, part, self.missing[nodes], self.is_category)

    @property
    def numbers(self) -> npt.NDArray[np.float64] | None:
        """The values as numbers with NaN where they are missing; None if some value is not a number."""
        if isinstance(self.values, np.ndarray):  # not kept: eight bytes a cell
            return np.where(self.missing, math.nan, self.values.astype(np.float64))
        return self._parsed

    @cached_property
    def _parsed(self) -> npt.NDArray[np.float64] | None:
        texts = set(self.values)
        known = {text: _number(text) for text in texts}
        words = {text.strip().lower() for text in texts if text.strip() not in MISSING}
        if words and words <= set(BOOLEANS):
            known = {text: BOOLEANS.get(text.strip().lower(), math.nan) for text in texts}
        if None in known.values():
            return None
        return np.fromiter((known[text] for text in self.values), np.float64, len(self.values))

    def first_text(self) -> str | None:
        """The first value that is not a number, for error messages."""
        return next((str(text) for text in self.values if self.is_text and _number(text) is None), None)

    def texts(self) -> list[str]:
        """The values as stripped texts; whole numbers without a point, "" where they are missing."""
        plain = _plain if isinstance(self.values, np.ndarray) else str.strip
        values: Any = self.values.tolist() if isinstance(self.values, np.ndarray) else self.values
        return ["" if absent else plain(v) for v, absent in zip(values, self.missing.tolist(), strict=True)]


def _number(text: str) -> float | None:
    """A text as a number, NaN where it is missing; None for any other text."""
    bare = text.strip()
    if bare in MISSING:
        return math.nan
    try:
        return float(bare) if "_" not in bare and bare.isascii() else None  # Python reads 1_000 and all scripts
    except ValueError:
        return None


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
