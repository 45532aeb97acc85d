"""The paper's forms with the settings of the authors' program, next to the scores of that program."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from asgat.nn.registry import make_config, model_spec
from asgat.tuning.space import published_settings
from reproduce import paper
from reproduce.experiment import Result, Row, Table, difference, mean_std
from reproduce.experiments.scores import score
from reproduce.plotting import dataset_title
from reproduce.study import Study

FIRST_SPLIT = {"squirrel"}  # where the program was run on one split only


def program_settings(dataset: str, model: str, **changes: Any) -> dict[str, Any]:
    """Every setting, none from the recipe: the published ones, and no restarts, which the authors' program has not."""
    published = published_settings(dataset, model_spec(model).fixed["operator"])
    config = make_config(model, **{**published, "max_restarts": 0, **changes}).to_dict()
    return {key: value for key, value in config.items() if key not in model_spec(model).fixed}


def rows(study: Study, dataset: str) -> Iterator[Row]:
    for model, scores in paper.PROGRAM.items():
        if dataset not in scores:
            continue
        settings = [program_settings(dataset, model, bias=bias) for bias in (False, True)]
        found = [score(study, dataset, model, "micro_f1", **own) for own in settings]
        without, biased = (None if row is None else _same_runs(dataset, row) for row in found)
        if without is not None:
            (program, program_std), row = scores[dataset], {"dataset": dataset, "model": model, "settings": settings[0]}
            yield {**row, "program": program, "program_std": program_std, **without, "biased": biased}


def _same_runs(dataset: str, row: Row) -> Row:
    """The score of a row on the runs the program was scored on."""
    if dataset not in FIRST_SPLIT:
        return row
    values = row["per_run"][:: len(row["per_run"]) // len(row["per_seed"])]
    return {**row, "mean": float(np.mean(values)), "std": float(np.std(values)), "per_run": values}


def tables(result: Result) -> list[Table]:
    rows = []
    for row in result["rows"]:
        biased = row["biased"] or {"mean": None, "std": None}
        name = dataset_title(row["dataset"]) + (", first split" if row["dataset"] in FIRST_SPLIT else "")
        scores = mean_std(row["program"], row["program_std"]), mean_std(row["mean"], row["std"])
        gap = difference(row["mean"], row["program"])
        rows.append((name, row["model"], *scores, gap, mean_std(biased["mean"], biased["std"])))
    headings = ("data set", "model", "their program", "ours", "difference", "with a bias")
    return [Table("The authors' program: micro-F1 in percent", headings, rows, result["answer"])]


def draw(result: Result) -> dict[str, Any]:
    return {}
