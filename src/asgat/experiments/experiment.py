"""What an experiment is, and how one is carried out: numbers, table, figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from asgat.experiments.plotting import save
from asgat.experiments.reproduction import NoResultError, Reproduction
from asgat.files.atomic import to_json, write_atomic
from asgat.training.result import versions

Result = dict[str, Any]
ABOUT = ("quick", "about")  # the entries of every result that say how it was made


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes:
        name: of the command and of its files.
        question: what it asks, in a sentence.
        collect: makes the numbers.
        tables: shows them, the paper's beside ours.
        draw: figures by the name of their file.
    """

    name: str
    question: str
    collect: Callable[[Reproduction], Result]
    tables: Callable[[Result], list[Table]]
    draw: Callable[[Result], dict[str, Any]]


def perform(experiment: Experiment, study: Reproduction) -> tuple[list[Table], list[Path]]:
    """Carries an experiment out; returns its tables and the files it wrote."""
    study.skipped.clear()
    study.failed.clear()
    found = experiment.collect(study)
    if not found or found.get("rows") == []:
        why = next(iter(study.failed.items()), ("nothing was asked for", "name other --models or --datasets"))
        raise NoResultError(f"{experiment.name} has no result: {': '.join(why)}")
    result: Result = {
        "quick": study.quick,
        "about": {
            "experiment": experiment.name,
            "question": experiment.question,
            "seeds": list(study.seeds),
            "device": device_name(study),
            "skipped": dict(study.skipped),
            "failed": dict(study.failed),
            "versions": versions(),
        },
        **found,
    }
    files = [study.out / f"{experiment.name}.json"]
    write_atomic(files[0], to_json(result))
    for name, figure in experiment.draw(result).items():
        files.append(save(figure, study.out / f"{name}.png", study.quick))
    return experiment.tables(result), files


def device_name(study: Reproduction) -> str:
    import torch

    if study.device.type == "cuda":
        return torch.cuda.get_device_name(study.device)
    return f"CPU, threads: {torch.get_num_threads()}"
