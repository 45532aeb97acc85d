"""The tables and figures by name: how one is computed, written and shown.

``experiments.toml`` says what each asks and on which data sets. A module of ``reproduce.experiments`` computes it:
``rows(study, dataset)`` gives the rows of a data set, or ``collect(study, name, datasets)`` the whole result, of what
JSON can hold; ``tables(result)`` shows it, and ``draw(result)`` gives figures by the names of their files.
"""

import tomllib
from collections.abc import Sequence
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from asgat.errors import AsgatError, suggest

if TYPE_CHECKING:
    from reproduce.study import Study

Result = dict[str, Any]
Row = dict[str, Any]
ABOUT = ("quick", "about")  # the entries of every result that describe how it was made
SELECTION = ("question", "datasets", "quick", "module", "needs_data")  # entries that are not copied into the result
TEXT = {"data set", "model", "form", "layers", "head", "response"}  # headings of columns with text, not numbers
EXPERIMENTS: dict[str, dict[str, Any]] = tomllib.loads(
    resources.files(__package__).joinpath("experiments.toml").read_text("utf-8")
)


class Table(NamedTuple):
    """A table to print, of texts."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str


def run_experiment(name: str, study: "Study") -> tuple[list[Table], list[Path]]:
    """Computes a table or figure; returns its tables and the files it wrote."""
    import torch

    from asgat.files.atomic import to_json, write_atomic
    from asgat.training.result import versions
    from reproduce.plotting import save_figure
    from reproduce.study import NoResultError

    if name not in EXPERIMENTS:
        raise AsgatError(f"There is no experiment {name!r}. {suggest(name, list(EXPERIMENTS))}")
    entry = EXPERIMENTS[name]
    made = import_module(f"reproduce.experiments.{entry.get('module', name.replace('-', '_'))}")
    study.skipped.clear()
    study.failed.clear()
    datasets = study.select_datasets(entry["datasets"], entry["quick"], entry.get("needs_data", True))
    if hasattr(made, "collect"):
        found = made.collect(study, name, datasets)
    else:
        found = {"rows": [row for dataset in datasets for row in made.rows(study, dataset)]}
    if not found or found.get("rows") == []:
        reason = next(iter(study.failed.items()), ("nothing was selected", "name other --models or --datasets"))
        raise NoResultError(f"{name} has no result: {': '.join(reason)}")
    cpu = f"CPU, threads: {torch.get_num_threads()}"
    result: Result = {
        "quick": study.quick,
        "about": {
            "experiment": name,
            "question": entry["question"],
            "seeds": list(study.seeds),
            "device": cpu if study.device.type == "cpu" else torch.cuda.get_device_name(study.device),
            "skipped": dict(study.skipped),
            "failed": dict(study.failed),
            "versions": versions(),
        },
        **{key: value for key, value in entry.items() if key not in SELECTION},
        **found,
    }
    files = [study.out / f"{name}.json"]
    write_atomic(files[0], to_json(result))
    for file, figure in made.draw(result).items():
        files.append(save_figure(figure, study.out / f"{file}.png", study.quick))
    return made.tables(result), files


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
