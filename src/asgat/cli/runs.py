"""``asgat runs``: the run directories in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from asgat.cli import options
from asgat.cli.output import SCORES, console, make_table, say, write_json

if TYPE_CHECKING:
    from asgat.estimator.run_list import RunSummary

RUNS = Path("runs")  # where commands write by default
NAMES = {**SCORES, "log_loss": "log-loss"}


def runs(
    folder: Annotated[Path, typer.Argument(help="The folder to look in, and below.")] = RUNS,
    json: options.Json = None,
) -> None:
    """List the run directories in a folder: data, model, test score and date, the latest first."""
    from asgat.estimator.run_list import list_runs

    found = list_runs(folder) if folder != RUNS or folder.exists() else []
    if found:
        headings = ("run directory", "data", "model", "score", "date")
        table = make_table(f"Run directories in {escape(str(folder))}", headings, left=headings, no_wrap=headings[:4])
        for run in found:
            name = escape(str(run.path if run.path == folder else run.path.relative_to(folder)))
            data, model = escape(run.dataset or "–"), escape(run.model or "–")
            table.add_row(name, data, model, score_text(run), f"{run.date:%Y-%m-%d %H:%M}")
        console.print(table)
    else:
        say(f"There are no run directories in {folder}; `asgat fit` and `asgat train` write them.")
    for run in found:
        if run.problem:
            say(f"damaged: {run.problem}", wrap=True)
    write_json(json, {"folder": str(folder), "rows": [run.to_dict() for run in found]})


def score_text(run: RunSummary) -> str:
    """The test score of a run, in percent; or why there is none."""
    if run.problem:
        return "damaged"
    if not run.finished:
        return f"unfinished, {run.done} of {run.total}" if run.total else "unfinished"
    if run.score is None or run.metric is None:
        return "no test nodes"
    factor, digits = (1, 3) if run.metric == "log_loss" else (100, 1)
    spread = "" if run.std is None else f" ± {factor * run.std:.{digits}f}"
    name = "" if run.metric == "micro_f1" else f" {NAMES.get(run.metric, escape(run.metric))}"
    return f"{factor * run.score:.{digits}f}{spread}{name}"
