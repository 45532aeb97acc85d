"""The result of a leaderboard: its rows, what was chosen, and what follows from it in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from asgat.errors import AsgatError
from asgat.leaderboard.claims import is_better
from asgat.leaderboard.field import GUESSING
from asgat.leaderboard.intervals import Interval

METRIC_NAMES = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "roc_auc": "ROC-AUC",
    "log_loss": "log-loss",
    "calibration_error": "calibration error",
}
OWN = ("layers", "hidden", "dropout", "weight_decay", "channels", "adjacency")  # settings in which candidates differ
CUT = "The time limit ended the search early; a longer --time-limit with --fresh tries all of it."
AVERAGE = "average of the best"  # the row of several models whose probabilities are averaged
TRY_NEXT = (
    "what to try: label more nodes, add columns that say something about the label, --directed if edges have a "
    "direction, all models instead of one --model, or --preset best"
)


@dataclass(frozen=True)
class Row:
    """A line of the table; scores are means over repeats.

    Attributes:
        name: of the model and its kind.
        model, settings, directed: what was trained, in the first repeat, where settings may differ between them.
        uses_graph: whether the edges have an influence.
        val: validation score by the leaderboard's metric; minus the loss for log-loss.
        test: every score on the test nodes, None without any.
        interval: 95 % of the metric's test score.
        seconds: of training, over all settings, folds and repeats.
        parameters: numbers it learns, each network.
        epochs: that its network on the split itself was trained for.
        folds: divisions of the labelled nodes it was trained on, all of them to the end.
        chosen: in how many repeats it was, alone or as a part of an average.
        note: what happened to it otherwise.
    """

    name: str
    model: str
    settings: dict[str, Any]
    uses_graph: bool
    val: float | None
    test: dict[str, float | None] | None
    interval: Interval | None
    seconds: float
    parameters: int
    epochs: int = 0
    folds: int = 0
    chosen: int = 0
    directed: bool = False
    note: str = ""


@dataclass(frozen=True, repr=False)
class Leaderboard:
    """All rows, best on validation first, and guessing last. Printed, it is a table.

    Attributes:
        chosen: the model that is saved: the row of its name, as the average of ``members`` networks, or a row of its
            own for the average of several models.
        members: their number in the first repeat.
        sentences: how the models compare with guessing, and whether the graph helps.
        cut: whether the time limit changed what was trained.
        averaged: the rows that the saved model is the average of.
        choices: the rows that each repeat chose, alone or to be averaged; the saved model is that of the first.
    """

    metric: str
    preset: str
    repeats: int
    rows: list[Row]
    chosen: Row
    members: int
    seconds: float
    cut: bool
    sentences: list[str] = field(default_factory=list)
    averaged: list[str] = field(default_factory=list)
    choices: list[list[str]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Leaderboard:
        """The inverse of :meth:`to_dict`."""
        try:
            rows = [_row(row) for row in values["rows"]]
            known = {key: values[key] for key in cls.__dataclass_fields__ if key in values}
            return cls(**{**known, "rows": rows, "chosen": _row(values["chosen"])})
        except (KeyError, TypeError, ValueError) as error:
            raise AsgatError(f"The leaderboard cannot be read: {error!r}; fit again with --fresh.") from error

    @property
    def lines(self) -> list[Row]:
        """The rows of the table: the chosen model first, if it is the average of several."""
        return [*([self.chosen] if self.chosen.name == AVERAGE else []), *self.rows]

    def records(self) -> list[dict[str, Any]]:
        """The rows as flat records, for a data frame."""
        found = []
        for row in self.lines:
            low, high = row.interval or (None, None)
            scores = {f"test_{key}": value for key, value in (row.test or {}).items()}
            flat = {"model": row.name, "val": row.val, **scores, "low": low, "high": high}
            found.append({**flat, "seconds": row.seconds, "parameters": row.parameters, "chosen": row.chosen})
        return found

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame."""
        try:
            import pandas
        except ImportError:
            raise AsgatError("A data frame needs pandas: pip install 'asgat[tables]', or use records().") from None
        return pandas.DataFrame(self.records())

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        headings, cells = self.cells()
        widths = [max(len(line[i]) for line in (headings, *cells)) for i in range(len(headings))]
        lines = ["  ".join(_aligned(line, widths)).rstrip() for line in (headings, *cells)]
        return "\n".join([*lines, f"Scores are {self.unit}.", self.choice, *self.sentences])

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings and texts of the table; it fits into 80 characters."""
        headings = ["model", "val.", "test", "95 % interval", "time", "parameters"]
        several = ["chosen"] if self.repeats > 1 else []
        found = []
        for row in self.lines:
            value = None if row.test is None else row.test.get(self.metric)
            cells = [row.name, shown_val(row.val, self.metric), shown(value, self.metric)]
            cells += [shown_interval(row.interval, self.metric), duration(row.seconds)]
            cells += [f"{row.parameters:,}" if row.parameters else "–"]
            found.append([*cells, *([f"{row.chosen} of {self.repeats}" if row.chosen else ""] if several else [])])
        return [*headings, *several], found

    @property
    def unit(self) -> str:
        """What the scores of the table are."""
        over = f", mean of {self.repeats} repeats" if self.repeats > 1 else ""
        return METRIC_NAMES[self.metric] + ("" if self.metric == "log_loss" else " in percent") + over

    @property
    def choice(self) -> str:
        """What is said of the model that is saved, and of its score."""
        score, why = shown_val(self.chosen.val, self.metric), ""
        if self.chosen.name == AVERAGE:
            what = f"the average of {self.members} networks ({' + '.join(self.averaged)})"
            if any(
                row.val is not None and self.chosen.val is not None and row.val > self.chosen.val for row in self.rows
            ):
                why = " Models are averaged where that lowers the log-loss of the few validation nodes."
        else:
            settings = ", ".join(f"{key} {self.chosen.settings[key]}" for key in OWN if key in self.chosen.settings)
            average = f", the average of {self.members} networks" if self.members > 1 else ""
            what = f"{self.chosen.name} ({settings}){average}"
        if self.differ:
            return (
                f"Chosen on validation in the first repeat, and saved: {what}. Not every repeat chose the same; "
                f"{score} is the mean over what each chose.{why}"
            )
        return f"Chosen on validation: {what}; {score}.{why}"

    @property
    def differ(self) -> bool:
        """Whether the repeats chose different models, so that the scores of the chosen are no single model's."""
        return any(set(one) != set(self.choices[0]) for one in self.choices)

    @property
    def notes(self) -> list[str]:
        """What happened to rows that were not trained to the end."""
        return [f"{row.name}: {row.note}" for row in self.rows if row.note]


def _row(values: dict[str, Any]) -> Row:
    interval = values["interval"]
    return Row(**{**values, "interval": None if interval is None else (float(interval[0]), float(interval[1]))})


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.ljust(width) if i == 0 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def shown(value: float | None, metric: str) -> str:
    """A score as people read it: in percent, the loss in nats."""
    if value is None or value != value:
        return "–"
    return f"{value:.3f}" if metric == "log_loss" else f"{100 * value:.1f}"


def shown_val(value: float | None, metric: str) -> str:
    return shown(-value if metric == "log_loss" and value is not None else value, metric)


def shown_interval(interval: Interval | None, metric: str) -> str:
    return "–" if interval is None else f"{shown(interval[0], metric)} – {shown(interval[1], metric)}"


def duration(seconds: float) -> str:
    return "–" if not seconds else f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def sentences(
    board: Leaderboard,
    over_guessing: Interval | None,
    over_features: Interval | None,
    alone: str | None,
    graph: str | None,
) -> list[str]:
    """How the chosen model compares with guessing, and whether the graph helps.

    Args:
        over_guessing: the gain of what was chosen.
        over_features: the gain of the best row that uses the graph over the best that does not.
        alone, graph: the names of these rows.
    """
    pair = f"{graph} with the graph, next to {alone} on the features alone"
    about_graph = [] if over_features is None else [_about_graph(board.metric, over_features, pair)]
    return [*_about_guessing(board, over_guessing), *about_graph]


def _about_guessing(board: Leaderboard, gain: Interval | None) -> list[str]:
    guessing = next(row for row in board.rows if row.name == GUESSING)
    if guessing.test is None or board.chosen.test is None:
        return ["There are no test nodes; the scores are those of validation nodes, by which the model was chosen."]
    scores = board.chosen.test[board.metric], guessing.test[board.metric]
    return about_guessing("what each repeat chose" if board.differ else board.chosen.name, board.metric, *scores, gain)


def about_guessing(
    name: str, metric: str, score: float | None, guess: float | None, gain: Interval | None
) -> list[str]:
    """Whether a model is better on test nodes than the best guess is, and what to try if that is not certain."""
    if score is None or guess is None or gain is None:
        return []
    figures = f"test {METRIC_NAMES[metric]} of {shown(score, metric)} and guessing {shown(guess, metric)}"
    figures = f"{name} has a {figures}, a gain of {_range(gain, metric)} (95 % interval)"
    if is_better(gain):
        return [f"Better than guessing: {figures}."]
    return [f"Not significantly better than guessing: {figures}; {TRY_NEXT}."]


def _about_graph(metric: str, gain: Interval, pair: str) -> str:
    compared = f"{pair}, gains {_range(gain, metric)} in test {METRIC_NAMES[metric]} (95 % interval)"
    if is_better(gain):
        return f"The graph helps: {compared}."
    if gain[1] < 0:
        return f"The graph does not help: {compared}; the features alone are better."
    return f"It is not sure that the graph helps: {compared}."


def _range(gain: Interval, metric: str) -> str:
    return f"{shown(gain[0], metric)} to {shown(gain[1], metric)}"
