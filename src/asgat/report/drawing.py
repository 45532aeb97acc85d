"""What all figures share: an empty figure, the style of its axes, and the PNG file."""

import io
from pathlib import Path
from typing import Any

from asgat.files.atomic import write_atomic


def new_figure(width: float, height: float) -> Any:
    """An empty figure; its size is in inches."""
    from matplotlib.figure import Figure  # not pyplot, which would change a notebook's backend and open figures

    return Figure(figsize=(width, height), layout="constrained")


def style_axis(axis: Any, grid: str = "both") -> None:
    """A light grid behind the data, no frame at the top and right."""
    axis.grid(axis=grid, color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def write_png(figure: Any, path: Path, dpi: int = 150) -> Path:
    """Writes a figure as a PNG file and returns its path."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    write_atomic(path, buffer.getvalue())
    return path
