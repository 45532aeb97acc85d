"""Tables of results, all in one style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

TEXT = {"data set", "model", "form", "layers", "head", "response"}  # headings of columns with text, not numbers


def result_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> Table:
    """A table for the terminal; columns of numbers are aligned to the right."""
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="left" if heading in TEXT else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def mean_std(mean: float | None, std: float | None = None) -> str:
    """A score in percent with its standard deviation, if there is one; a dash for None."""
    if mean is None:
        return "–"
    return f"{100 * mean:.1f}" + ("" if std is None else f" ± {100 * std:.1f}")


def difference(ours: float | None, theirs: float | None) -> str:
    """The difference of two scores in points, with its sign; a dash if one is None."""
    return "–" if ours is None or theirs is None else f"{100 * (ours - theirs):+.1f}"
