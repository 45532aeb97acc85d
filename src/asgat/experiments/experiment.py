"""An experiment, how it is run, and the rows and tables of its result."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import torch

from asgat.experiments.plotting import save_figure
from asgat.experiments.reproduction import NoResultError, Reproduction
from asgat.files.atomic import to_json, write_atomic
from asgat.training.result import versions

Result = dict[str, Any]
Row = dict[str, Any]
ABOUT = ("quick", "about")  # the entries of every result that describe how it was made
TEXT = {"data set", "model", "form", "layers", "head", "response"}  # headings of columns with text, not numbers
ENTRIES = tomllib.loads(resources.files(__package__).joinpath("experiments.toml").read_text("utf-8"))


class Table(NamedTuple):
    """A table to print, of texts."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    name: str  # in the command and of the files
    question: str  # what it asks, in a sentence
    datasets: Sequence[str]
    quick: Sequence[str]  # data sets of a quick run
    facts: Mapping[str, Any]  # further entries of its result, such as the paper's claim
    collect: Callable[[Reproduction, Sequence[str]], Result]  # computes the numbers of data sets
    tables: Callable[[Result], list[Table]]  # shows them, next to the paper's
    draw: Callable[[Result], dict[str, Any]]  # figures by the name of their file
    needs_data: bool = True  # whether there is no result without a data set


def experiment(name: str, rows: Any, tables: Any, draw: Any, collect: Any = None, **options: Any) -> Experiment:
    """The experiment that ``experiments.toml`` describes; unless it has ``collect``, ``rows`` yields a data set's."""

    def collect_rows(reproduction: Reproduction, datasets: Sequence[str]) -> Result:
        return {"rows": [row for dataset in datasets for row in rows(reproduction, dataset)]}

    facts = dict(ENTRIES[name])
    question, datasets, quick = (facts.pop(key) for key in ("question", "datasets", "quick"))
    return Experiment(name, question, datasets, quick, facts, collect or collect_rows, tables, draw, **options)


def run_experiment(experiment: Experiment, reproduction: Reproduction) -> tuple[list[Table], list[Path]]:
    """Runs an experiment; returns its tables and the files it wrote."""
    reproduction.skipped.clear()
    reproduction.failed.clear()
    datasets = reproduction.select_datasets(experiment.datasets, experiment.quick, experiment.needs_data)
    found = experiment.collect(reproduction, datasets)
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
        **experiment.facts,
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
    return [row for row in result["rows"] if entries.items() <= row.items()]


def row_of(result: Result, **entries: Any) -> Row | None:
    return next(iter(rows_of(result, **entries)), None)


def mean_std(mean: float | None, std: float | None = None) -> str:
    """A score in percent with its standard deviation, if there is one; a dash for None."""
    if mean is None:
        return "–"
    return f"{100 * mean:.1f}" + ("" if std is None else f" ± {100 * std:.1f}")


def difference(ours: float | None, theirs: float | None) -> str:
    """The difference of two scores in points, with its sign; a dash if one is None."""
    return "–" if ours is None or theirs is None else f"{100 * (ours - theirs):+.1f}"
