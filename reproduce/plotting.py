"""What the experiments' figures share: colours, names of data sets, legends, and the stamp of a quick run."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from asgat.report.figures import new_figure, style_axis, write_png

# The colours of Okabe and Ito, which can be distinguished with any colour vision.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#7F7F7F"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
OURS, PAPER, BEST = "#0072B2", "#D55E00", "#009E73"
ERROR_BARS = {"ecolor": "0.25", "lw": 0.9, "capsize": 2}


def dataset_title(dataset: str) -> str:
    """The name of a data set as it is usually written; those that are not the paper's stay as they are."""
    known = ("Cora", "CiteSeer", "Pubmed", "Chameleon", "Squirrel", "Wisconsin", "Cornell", "Texas")
    return {name.lower(): name for name in known}.get(dataset, dataset)


def panels(
    width: float, height: float, lines: int = 1, columns: int = 1, grid: str = "both", **options: Any
) -> tuple[Any, Any]:
    """A figure of a size in inches and its styled panels [lines, columns]."""
    figure = new_figure(width, height)
    axes = figure.subplots(lines, columns, squeeze=False, **options)
    for axis in axes.flat:
        style_axis(axis, grid)
    return figure, axes


def percent(rows: Iterable[dict[str, Any] | None], *keys: str) -> list[np.ndarray]:
    """The scores of each key in percent; NaN where a row or a score is missing."""
    listed = list(rows)
    return [100 * np.array([row and row[key] for row in listed], dtype=float) for key in keys]


def shared_legend(figure: Any, axes: Any, columns: int, **options: Any) -> None:
    """One legend below the panels, with the entries of the panel that has most."""
    handles, labels = max((axis.get_legend_handles_labels() for axis in axes.flat), key=lambda pair: len(pair[1]))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, **options)


def save_figure(figure: Any, path: Path, quick: bool) -> Path:
    """Writes a figure as PNG; a figure of a quick run is stamped as such."""
    if quick:
        stamp = {"ha": "center", "va": "center", "rotation": 25, "color": "0.5", "alpha": 0.22, "weight": "bold"}
        figure.text(0.5, 0.5, "quick", fontsize=80, zorder=10, **stamp)
    return write_png(figure, path)
