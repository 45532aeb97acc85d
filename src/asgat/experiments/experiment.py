"""An experiment and how it is run: numbers, tables and figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from asgat.experiments.plotting import save_figure
from asgat.experiments.reproduction import NoResultError, Reproduction
from asgat.files.atomic import to_json, write_atomic
from asgat.training.result import versions

Result = dict[str, Any]
Row = dict[str, Any]
ABOUT = ("quick", "about")  # the entries of every result that describe how it was made


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes:
        name: name in the command and of the files.
        question: what it asks, in a sentence.
        collect: computes the numbers.
        tables: shows them, next to the paper's.
        draw: figures by the name of their file.
    """

    name: str
    question: str
    collect: Callable[[Reproduction], Result]
    tables: Callable[[Result], list[Table]]
    draw: Callable[[Result], dict[str, Any]]


def run_experiment(experiment: Experiment, reproduction: Reproduction) -> tuple[list[Table], list[Path]]:
    """Runs an experiment; returns its tables and the files it wrote."""
    reproduction.skipped.clear()
    reproduction.failed.clear()
    found = experiment.collect(reproduction)
    if not found or found.get("rows") == []:
        reason = next(iter(reproduction.failed.items()), ("nothing was selected", "name other --models or --datasets"))
        raise NoResultError(f"{experiment.name} has no result: {': '.join(reason)}")
    result: Result = {
        "quick": reproduction.quick,
        "about": {
            "experiment": experiment.name,
            "question": experiment.question,
            "seeds": list(reproduction.seeds),
            "device": device_name(reproduction.device),
            "skipped": dict(reproduction.skipped),
            "failed": dict(reproduction.failed),
            "versions": versions(),
        },
        **found,
    }
    files = [reproduction.out / f"{experiment.name}.json"]
    write_atomic(files[0], to_json(result))
    for name, figure in experiment.draw(result).items():
        files.append(save_figure(figure, reproduction.out / f"{name}.png", reproduction.quick))
    return experiment.tables(result), files


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, threads: {torch.get_num_threads()}"


def datasets_of(result: Result) -> list[str]:
    """The data sets of a result's rows, each once."""
    return list(dict.fromkeys(row["dataset"] for row in result["rows"]))


def rows_of(result: Result, **entries: Any) -> list[Row]:
    """The rows that have these entries, such as a data set."""
    return [row for row in result["rows"] if entries.items() <= row.items()]


def row_of(result: Result, **entries: Any) -> Row | None:
    """The first row that has these entries."""
    return next(iter(rows_of(result, **entries)), None)
