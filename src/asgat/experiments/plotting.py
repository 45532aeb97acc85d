"""What the figures share: colours anyone can tell apart, sizes, and the stamp of a quick run."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from asgat.files.atomic import write_atomic

# Okabe and Ito's colours, told apart whatever colours one sees.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#7F7F7F"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
OURS, PAPER, BEST = "#0072B2", "#D55E00", "#009E73"
TITLES = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "Pubmed",
    "chameleon": "Chameleon",
    "squirrel": "Squirrel",
    "wisconsin": "Wisconsin",
    "cornell": "Cornell",
    "texas": "Texas",
}


def title(dataset: str) -> str:
    """A data set's name as it is written."""
    return TITLES.get(dataset, dataset)


def new(width: float, height: float) -> Any:
    from matplotlib.figure import Figure  # not pyplot: a notebook's backend and figures stay as they are

    return Figure(figsize=(width, height), layout="constrained")


def plain(axis: Any, grid: str = "both") -> None:
    """A quiet grid behind, no frame above and to the right."""
    axis.grid(axis=grid, color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def plain_numbers(axis: Any) -> None:
    """Numbers on logarithmic axes as people write them."""
    for which in (axis.xaxis, axis.yaxis):
        which.set_major_formatter("{x:g}")
        which.set_minor_formatter("")


def save(figure: Any, path: Path, quick: bool) -> Path:
    """Writes a figure as PNG; one of a quick run says so across its face."""
    if quick:
        stamp = {"ha": "center", "va": "center", "rotation": 25, "color": "0.5", "alpha": 0.22, "weight": "bold"}
        figure.text(0.5, 0.5, "quick", fontsize=80, zorder=10, **stamp)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    write_atomic(path, buffer.getvalue())
    return path
