"""Tables of results, as the commands print them."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

Row = dict[str, Any]
SCORES = {"micro_f1": "micro-F1", "macro_f1": "macro-F1", "roc_auc": "ROC-AUC"}


def make_table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Iterable[str]] = (),
    left: Collection[str] = (),
    no_wrap: Collection[str] = (),
    compact: bool = False,
) -> Table:
    """A table; columns are right-aligned, for numbers, except those of ``left``.

    Title and cells are rich markup: names from files must be escaped. ``compact`` leaves one space between columns, so
    that eight of them fit into 80 characters.
    """
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0) if compact else (0, 1))
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=heading in no_wrap)
    for row in rows:
        table.add_row(*row)
    return table


def result_table(result: Row) -> Table:
    """The scores of one model in percent, as mean ± standard deviation over its runs."""
    validation = result["val_roc_auc" if "roc_auc" in result else "val_micro_f1"]
    figures = {
        "val.": f"{100 * validation:.1f}",
        "runs": str(len(result["rows"])),
        "restarts": str(result["restarts"]),
        "epochs": f"{result['epochs']:.0f}",
        "ms": f"{result['ms_per_epoch']:.1f}",
    }
    return _scores_table([result], [figures])


def comparison_table(rows: Sequence[Row]) -> Table:
    """One row per model; fits into 80 columns."""
    times = [{"ms per epoch": f"{row['ms_per_epoch']:.1f}", "parameters": f"{row['parameters']:,}"} for row in rows]
    return _scores_table(rows, times, compact=True)


def _scores_table(rows: Sequence[Row], figures: Sequence[dict[str, str]], compact: bool = False) -> Table:
    scores = {key: heading for key, heading in SCORES.items() if key in rows[0]}
    title, left = f"Test scores on {escape(rows[0]['dataset'])}, in percent", ["model", *scores.values()]
    cells = [[f"{100 * row[key]['mean']:.1f} ± {100 * row[key]['std']:.1f}" for key in scores] for row in rows]
    shown = [(row["model"], *own, *more.values()) for row, own, more in zip(rows, cells, figures, strict=True)]
    return make_table(title, [*left, *figures[0]], shown, left, no_wrap=left, compact=compact)
