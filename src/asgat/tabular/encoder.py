"""Features as numbers: fitted on one graph, stored, and applied to any other with the same columns."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError, listed
from asgat.graph.graph import Floats, Graph
from asgat.tabular.column import Column

Kind = Literal["number", "boolean", "category", "unused"]
MAX_CATEGORIES = 50
LARGEST = 10.0  # standard deviations from the mean at which numbers are clipped
DEGREE = ("constant", "log degree")


@dataclass(frozen=True)
class Feature:
    """How one column becomes numbers."""

    name: str
    kind: Kind  # a number is centred and scaled, a boolean is 0 or 1, a category has an output column per value
    centre: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    other: bool = False  # whether rarer values share one more output column
    flag: bool = False  # whether one more output column marks missing values

    @property
    def outputs(self) -> list[str]:
        if self.kind == "unused":
            return []
        if self.kind == "category":
            names = [f"{self.name}={value}" for value in self.categories] + ([f"{self.name}=…"] if self.other else [])
        else:
            names = [self.name]
        return names + ([f"{self.name} missing"] if self.flag else [])


class Value(NamedTuple):
    """The value of a column at a node, and how much it stands out: the largest of its encoded numbers."""

    name: str
    text: str
    size: float


@dataclass(frozen=True)
class FeatureEncoder:
    """The encoding of all columns, in their order, with notes in sentences on what was decided.

    Where no column can be used, the degree of a node is its only feature: its neighbours, whatever the directions.

    Example:
        >>> encoder = FeatureEncoder.fit([Column.of_texts("colour", ["red", "blue", "red"])])
        >>> encoder.names
        ['colour=blue', 'colour=red']
    """

    features: tuple[Feature, ...]
    degree: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def fit(cls, columns: Sequence[Column], unused: Collection[str] = ()) -> Self:
        """Decides from the values what each column is; those in ``unused`` are left out without a note."""
        found: dict[str, list[str]] = {}  # columns by what there is to report about them
        features = tuple(
            Feature(column.name, "unused") if column.name in unused else _fit(column, found) for column in columns
        )
        degree = not any(feature.outputs for feature in features)
        notes = [f"{_columns(names)}: {what}." for what, names in found.items()]
        if degree:
            notes.append(
                "There is no feature to use, so the degree of a node is its feature (its logarithm, and a constant)."
            )
        return cls(features, degree, tuple(notes))

    @property
    def names(self) -> list[str]:
        return list(DEGREE) if self.degree else [name for feature in self.features for name in feature.outputs]

    def transform(self, columns: Sequence[Column], graph: Graph) -> tuple[npt.NDArray[np.float32], list[str]]:
        """The encoded features [N, F], and notes in sentences; an error names columns that differ from the fitted."""
        given = {column.name: column for column in columns}
        fitted = {feature.name for feature in self.features}
        absent = [feature.name for feature in self.features if feature.outputs and feature.name not in given]
        extra = [name for name in given if name not in fitted]
        if absent or extra:
            parts = [f"lack {quoted(absent)}"] * bool(absent) + [f"have {quoted(extra)} as well"] * bool(extra)
            raise AsgatError(
                f"The columns differ from those the model was fitted on: these nodes {' and '.join(parts)}; "
                "give the same columns, or leave some out with --ignore."
            )
        if self.degree:
            degree = np.diff(graph.undirected.adjacency.indptr)
            return np.stack([np.ones(len(degree)), np.log1p(degree)], axis=1).astype(np.float32), []
        notes: list[str] = []
        x = np.zeros((graph.num_nodes, len(self.names)), dtype=np.float32)
        for feature, part in self._output_slices():
            _encode(feature, given[feature.name], x[:, part], notes)
        return x, notes

    def read_row(self, row: npt.NDArray[np.float32]) -> list[Value]:
        """The columns of one node from its encoded features, as a user gave them."""
        if self.degree:
            return [Value("degree", f"{np.expm1(row[1]):.0f}", float(row[1]))]
        parts = ((feature, row[part]) for feature, part in self._output_slices())
        return [Value(feature.name, _text(feature, part), float(np.abs(part).max())) for feature, part in parts]

    def _output_slices(self) -> Iterator[tuple[Feature, slice]]:
        """Every column that is used, and its places among the encoded features."""
        start = 0
        for feature in self.features:
            stop = start + len(feature.outputs)
            if stop > start:
                yield feature, slice(start, stop)
            start = stop

    def to_dict(self) -> dict[str, Any]:
        features = [{**asdict(feature), "categories": list(feature.categories)} for feature in self.features]
        return {"degree": self.degree, "features": features}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`, with checks."""
        try:
            features = tuple(_read_feature(held) for held in values["features"])
            degree = values["degree"]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise AsgatError(f"The encoding of the features cannot be read: {error!r}; fit again.") from error
        return cls(features, bool(degree))


def _read_feature(held: Mapping[str, Any]) -> Feature:
    plain = {"centre": float(held["centre"]), "scale": float(held["scale"])}
    feature = Feature(**{**held, **plain, "categories": tuple(map(str, held["categories"]))})
    if feature.kind not in ("number", "boolean", "category", "unused"):
        raise ValueError(f"kind {feature.kind!r}")
    if not (np.isfinite(feature.centre) and np.isfinite(feature.scale) and feature.scale > 0):
        raise ValueError(f"scale {feature.scale}")
    return feature


def _fit(column: Column, found: dict[str, list[str]]) -> Feature:
    """Decides what a column is, and adds it to what there is to report."""

    def report(what: str, count: str = "") -> None:
        found.setdefault(what, []).append(f"{column.name}{count}")

    def unused(reason: str) -> Feature:
        report(f"left out, as {reason}")
        return Feature(column.name, "unused")

    numbers = column.numbers
    if column.is_category and numbers is not None and not np.isin(numbers[~np.isnan(numbers)], (0.0, 1.0)).all():
        numbers = None if _repeat(column) else numbers
    missing = column.missing if numbers is None else ~np.isfinite(numbers)
    absent = int(missing.sum())
    if absent == len(column):
        return unused("there is no value")
    if absent:
        report("values are missing; an additional column marks them", f" ({absent:,})")
    if numbers is not None:
        present = numbers[~missing]
        if (present == present[0]).all() and not absent:
            return unused("the value is the same everywhere")
        if ((present == 0.0) | (present == 1.0)).all():
            return Feature(column.name, "boolean", flag=absent > 0)
        return Feature(column.name, "number", *_centre_and_scale(present), flag=absent > 0)
    counts = Counter(text for text, empty in zip(column.texts(), missing.tolist(), strict=True) if not empty)
    if len(counts) == 1 and not absent:
        return unused("the value is the same everywhere")
    if not _repeat(column):
        return unused("most texts occur once and so say nothing about other nodes")
    kept = sorted(sorted(counts), key=lambda value: -counts[value])[:MAX_CATEGORIES]
    if len(counts) > MAX_CATEGORIES:
        report(f"many values; the {MAX_CATEGORIES} most frequent have a column each", f" ({len(counts):,})")
    return Feature(column.name, "category", 0.0, 1.0, tuple(sorted(kept)), len(counts) > len(kept), absent > 0)


def _repeat(column: Column) -> bool:
    """Whether the values of a column are few or repeat, so that one says something about other nodes."""
    distinct = len({text for text in column.texts() if text})
    return distinct <= MAX_CATEGORIES or distinct <= 0.5 * int((~column.missing).sum())


def _centre_and_scale(values: Floats) -> tuple[float, float]:
    """Mean and standard deviation; the centre is zero where most values are, which keeps them zero."""
    largest = float(np.abs(values).max()) or 1.0  # relative to it, sums of squares stay within range
    relative = values / largest
    centre = 0.0 if np.mean(values == 0) >= 0.5 else float(relative.mean())
    scale = float(np.sqrt(np.mean((relative - centre) ** 2))) * largest
    return centre * largest, scale if np.isfinite(scale) and scale > 0 else 1.0


def _text(feature: Feature, row: npt.NDArray[np.float32]) -> str:
    """The value of a column from its encoded numbers."""
    if feature.flag and row[-1]:
        return "missing"
    if feature.kind == "category":
        given = [*feature.categories, "another value"]
        return given[int(row.argmax())] if row.any() else "another value"
    bound = "≥ " if row[0] >= LARGEST else "≤ " if row[0] <= -LARGEST else ""
    offset = float(row[0]) * feature.scale
    known = int(-np.log10(max(abs(offset), 1e-30) * np.finfo(np.float32).eps))  # decimals
    return f"{bound}{round(offset + feature.centre, known):.6g}"


def _encode(feature: Feature, column: Column, out: npt.NDArray[np.float32], notes: list[str]) -> None:
    numbers = column.numbers if feature.kind != "category" else None
    if feature.kind != "category" and numbers is None:
        raise AsgatError(
            f"The column {feature.name!r} held numbers when the model was fitted, but now {column.first_text()!r:.80}; "
            "give numbers."
        )
    missing = column.missing if numbers is None else ~np.isfinite(numbers)
    if missing.any() and not feature.flag:
        notes.append(f"{feature.name!r} has no value at {int(missing.sum()):,} nodes; a default is used.")
    if feature.flag:
        out[:, -1] = missing
    if numbers is not None:
        usual = 0.0 if feature.kind == "boolean" else feature.centre
        with np.errstate(over="ignore"):
            scaled = (np.where(missing, usual, numbers) - feature.centre) / feature.scale
        out[:, 0] = np.clip(scaled, -LARGEST, LARGEST)
        return
    place = {value: i for i, value in enumerate(feature.categories)}
    rest = len(place) if feature.other else -1
    texts = column.texts()
    at = np.fromiter((place.get(text, rest) for text in texts), np.int64, len(texts))
    known = np.flatnonzero((at >= 0) & ~missing)
    out[known, at[known]] = 1.0
    unknown = int(((at < 0) & ~missing).sum())
    if unknown:
        notes.append(f"{feature.name!r} has values at {unknown:,} nodes that were not seen when the model was fitted.")


def _columns(names: Sequence[str]) -> str:
    return f"Column {names[0]}" if len(names) == 1 else f"{len(names)} columns ({listed(names)})"


def quoted(names: Sequence[str]) -> str:
    return listed([repr(name) for name in names], 10)
