"""The numbers printed in the paper, as fractions, read from ``paper.toml``."""

import tomllib
from importlib import resources
from typing import Any, NamedTuple


class PrintedScore(NamedTuple):
    """A printed score; ``std`` is None if the paper gives none."""

    mean: float
    std: float | None


Table = dict[str, dict[str, PrintedScore]]  # by model and data set; empty cells are left out


def _fraction(percent: str | float) -> float:
    return round(float(percent) / 100, 4)


def _score(cell: str) -> PrintedScore:
    mean, _, std = cell.partition("±")
    return PrintedScore(_fraction(mean), _fraction(std) if std else None)


def _table(printed: dict[str, str]) -> Table:
    table: Table = {}
    for line in printed["rows"].strip().splitlines():
        model, *cells = line.split()
        pairs = zip(printed["datasets"].split(), cells, strict=True)
        table[model] = {dataset: _score(cell) for dataset, cell in pairs if cell != "-"}
    return table


_PRINTED: dict[str, Any] = tomllib.loads(resources.files(__package__).joinpath("paper.toml").read_text("utf-8"))
DATASETS: list[str] = _PRINTED["micro"]["datasets"].split()
MICRO, MACRO, HEAT, PROGRAM, DIRECTED, HETEROPHILOUS = (
    _table(_PRINTED[name]) for name in ("micro", "macro", "heat", "program", "directed", "heterophilous")
)
HEADS: dict[str, dict[str, list[float]]] = {
    what: {name: [_fraction(cell) for cell in cells.split()] for name, cells in rows.items()}
    for what, rows in _PRINTED["heads"].items()
}
BEST_PUBLISHED = {dataset: _fraction(score) for dataset, score in _PRINTED["best_published"].items()}
DOUBTFUL: dict[tuple[str, str, str], str] = {tuple(entry["cell"]): entry["reason"] for entry in _PRINTED["doubtful"]}
