"""What commands print and write: consoles, sentences, tables, the live bar of a training, and JSON files."""

import logging
import os
import re
import signal
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any, Self

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from asgat.errors import AsgatError

Row = dict[str, Any]
SCORES = {"micro_f1": "micro-F1", "macro_f1": "macro-F1", "roc_auc": "ROC-AUC"}
# Control characters except newline and tab, overrides of the writing direction, and lone surrogates.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Replaces the characters a terminal would obey by escapes such as ``\x1b``."""
    return UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class SafeConsole(Console):
    """A console for names from users' files: all text it prints, table cells included, is :func:`printable`."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def print(self, *objects: Any, **options: Any) -> None:
        if any(isinstance(one, WholeTable) for one in objects):
            options["crop"] = False
        super().print(*objects, **options)


console = SafeConsole(highlight=False, emoji=False)  # results
notes = SafeConsole(highlight=False, emoji=False, stderr=True)  # progress
details = SafeConsole(highlight=False, emoji=False, stderr=True, quiet=True)  # what --verbose adds
errors = SafeConsole(highlight=False, emoji=False, stderr=True)
STDOUT = Path("-")


class LogDetails(logging.Handler):
    """Prints what the package reports: warnings as notes, the rest, such as the number of threads, as details.

    What is repeated is printed once.
    """

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text != self.last:
            (notes if record.levelno >= logging.WARNING else details).print(text, markup=False, soft_wrap=True)
        self.last = text


log, _log_details = logging.getLogger("asgat"), LogDetails()


def begin_output(quiet: bool = False, verbose: bool = False) -> None:
    """Sets the consoles for a command: ``quiet`` prints nothing but errors, ``verbose`` prints details."""
    console.stderr = errors.quiet = False
    console.quiet = notes.quiet = quiet
    details.quiet = not verbose
    _log_details.last = ""
    log.addHandler(_log_details)
    log.setLevel(logging.INFO if verbose else logging.WARNING)


def end_output() -> None:
    """Leaves the consoles and the log as they were before a command."""
    begin_output()
    log.removeHandler(_log_details)
    log.setLevel(logging.NOTSET)


def say(text: str, wrap: bool = False) -> None:
    """Prints text without markup; only with ``wrap`` are long lines folded at words, so that a path can be copied."""
    console.print(text, markup=False, soft_wrap=not wrap)


def detail(text: str) -> None:
    """Prints what only --verbose shows."""
    details.print(text, markup=False, soft_wrap=True)


def print_error(sentence: str) -> None:
    """Prints why a command ends; where that cannot be printed, its exit code still says that it failed."""
    with suppress(OSError):
        errors.print(f"[bold red]error:[/] {escape(sentence)}", soft_wrap=True)


@contextmanager
def resumable(saved: str) -> Iterator[None]:
    """Reports what an interrupted command has saved, whatever is pressed meanwhile; Typer would exit silently."""
    try:
        yield
    except KeyboardInterrupt:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            errors.print(f"Interrupted. {saved}; run the same command again to resume.")
        finally:
            signal.signal(signal.SIGINT, before)
        raise typer.Exit(130) from None


def check_writable(path: Path | None) -> Path | None:
    """Refuses a file that cannot be written, before time is spent on its content."""
    if path is not None:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        if (path.exists() and not path.is_file()) or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise AsgatError(f"{path} cannot be written; choose another path.")
    return path


def check_json(path: Path | None) -> Path | None:
    """As :func:`check_writable`; ``-`` is standard output, and moves everything else to standard error."""
    if path == STDOUT:
        console.stderr = True
        return path
    return check_writable(path)


def write_json(path: Path | None, values: Any) -> None:
    from asgat.files.atomic import to_json, write_atomic

    if path == STDOUT:
        sys.stdout.write(to_json(values).decode())
        sys.stdout.flush()
    elif path is not None:
        write_atomic(path, to_json(values))


class ProgressBar:
    """A bar of one task, on terminals only; use it as a context."""

    def __init__(self, width: int, total: int | None = None) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("{task.description}"), BarColumn(width), MofNCompleteColumn()
        figures = TextColumn("{task.fields[figures]}"), TimeElapsedColumn()
        hidden = notes.quiet or not notes.is_terminal
        self.bar = Progress(*columns, *figures, console=notes, transient=True, disable=hidden)
        self.task = self.bar.add_task("", total=total, figures="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


class RunProgress(ProgressBar):
    """The number of finished runs and the latest epoch of any run; runs may train at the same time."""

    def __init__(self, runs: int, epochs: int, metric: str = "micro_f1") -> None:
        super().__init__(30, epochs)
        self.epochs, self.metric = epochs, metric
        self.finished(0, runs)

    def building(self, done: int, rows: int) -> None:
        self.bar.update(self.task, total=rows, completed=done, figures="rows of the candidate table")

    def finished(self, done: int, total: int) -> None:
        self.bar.update(self.task, description=f"{done}/{total} runs")

    def __call__(self, run: int, epoch: Any) -> None:
        from asgat.leaderboard.standings import shown_val

        losses = f"loss {epoch.train_loss:.3f}  validation loss {epoch.val_loss:.3f}"
        figures = f"run {run}  {losses}  score {shown_val(epoch.val_score, self.metric)}"
        self.bar.update(self.task, total=self.epochs, completed=epoch.epoch, figures=figures)


class WholeTable(Table):
    """A table of which no name and no figure is cut.

    Where the console is too narrow, headings and texts are folded at spaces, and the gaps become narrower. A table that
    still does not fit is wider than the console.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitted, wide = copy(self), options.update(width=10_000)
        fitted.columns = [copy(column) for column in self.columns]
        spans = [self._span(column, console, wide) for column in self.columns]
        least, widths = [span.minimum for span in spans], [span.maximum for span in spans]
        for gap in (1, 0):
            fitted.padding = (0, gap, 0, 0)
            room = options.max_width - (Measurement.get(console, wide, fitted).maximum - sum(widths))
            if sum(least) <= room:
                break
        while sum(widths) > max(room, sum(least)):
            widest = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
            widths[widest] -= 1
        for column, width in zip(fitted.columns, widths, strict=True):
            column.width, column.no_wrap = width, False
        texts = [text for text in (self.title, self.caption) if text]
        fitted.min_width = max((Measurement.get(console, wide, text).minimum for text in texts), default=0)
        yield from Table.__rich_console__(fitted, console, wide)

    def _span(self, column: Column, console: Console, options: ConsoleOptions) -> Measurement:
        """The least width at which nothing is cut, and the width at which nothing is folded."""
        heading = Measurement.get(console, options, column.header if self.show_header else "")
        cells = [Measurement.get(console, options, cell) for cell in column.cells]
        longest = max((cell.maximum for cell in cells), default=0)
        least = longest if column.no_wrap else max((cell.minimum for cell in cells), default=0)
        return Measurement(max(least, heading.minimum, 1), max(longest, heading.maximum, 1))


def make_table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Iterable[str]] = (),
    left: Collection[str] = (),
    no_wrap: Collection[str] = (),
    show_header: bool = True,
    caption: str | None = None,
) -> Table:
    """A table; columns are right-aligned, for figures, except those of ``left``.

    Cells are folded only in columns of ``left`` that are not in ``no_wrap``. Title and cells are rich markup, so names
    that come from files must be escaped.
    """
    table = WholeTable(title=title, caption=caption, box=SIMPLE_HEAD, pad_edge=False, show_header=show_header)
    for heading in headings:
        folded = heading in left and heading not in no_wrap
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=not folded)
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
    """One row per model; the seconds are those of training all its runs."""
    times = [
        {
            "ms per epoch": f"{row['ms_per_epoch']:.1f}",
            "seconds": f"{sum(run['seconds'] for run in row['rows']):.1f}",
            "parameters": f"{row['parameters']:,}",
        }
        for row in rows
    ]
    return _scores_table(rows, times)


def _scores_table(rows: Sequence[Row], figures: Sequence[dict[str, str]]) -> Table:
    scores = {key: heading for key, heading in SCORES.items() if key in rows[0]}
    title, left = f"Test scores on {escape(rows[0]['dataset'])}, in percent", ["model", *scores.values()]
    cells = [[f"{100 * row[key]['mean']:.1f} ± {100 * row[key]['std']:.1f}" for key in scores] for row in rows]
    shown = [(row["model"], *own, *more.values()) for row, own, more in zip(rows, cells, figures, strict=True)]
    return make_table(title, [*left, *figures[0]], shown, left, no_wrap=left)
