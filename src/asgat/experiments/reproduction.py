"""What every experiment is told: where to write, on what to train, and how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from asgat.data import Dataset, get_info, load_dataset
from asgat.data.download import data_directory
from asgat.errors import AsgatError

SEEDS = (0, 1, 2)  # fixed before any result was seen
RUNS = 10
QUICK_RUNS = 2
QUICK_SETTINGS: dict[str, Any] = {"epochs": 40, "max_restarts": 0}


class NoResultError(AsgatError):
    """An experiment has nothing to work on, or nothing to show; another one may."""


@dataclass
class Reproduction:
    """One call of ``asgat reproduce``.

    Args:
        out: folder of results, figures and run directories.
        device: where to train.
        seeds: of the trainings whose mean is reported.
        quick: a few runs and epochs on a few data sets: to see that everything works, not to judge anything.
        data_dir: folder with the data files.
        datasets: the data sets to take in the place of an experiment's own.
        models: the models to take in the place of an experiment's own.
        fresh: forget runs made before.
        say: called with what is being done.

    Attributes:
        skipped: data sets left out, and why.
        failed: trainings that did not end, and why.
    """

    out: Path
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seeds: tuple[int, ...] = SEEDS
    quick: bool = False
    data_dir: Path | None = None
    datasets: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    fresh: bool = False
    say: Callable[[str], None] = lambda _: None
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    begun: set[Path] = field(default_factory=set)
    _loaded: dict[str, Dataset] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.quick:
            self.seeds = self.seeds[:1]

    @property
    def runs_folder(self) -> Path:
        """The run directories, shared by all experiments."""
        return self.out / ("runs-quick" if self.quick else "runs")

    def pick(self, own: Sequence[str], quick: Sequence[str], needed: bool = True) -> list[str]:
        """The data sets of an experiment: those asked for, or its own, or the quick ones; files must be at hand.

        Raises:
            NoResultError: none of them is, and the experiment needs one.
        """
        names = list(self.datasets or (quick if self.quick else own))
        absent = [name for name in names if get_info(name).missing_files(None, self.data_dir)]
        folder = data_directory(self.data_dir)
        self.skipped.update({name: f"its files are not in {folder}" for name in absent})
        present = [name for name in names if name not in absent]
        if needed and not present:
            raise NoResultError(
                f"The files of {', '.join(names)} are not in {folder}; set ASGAT_DATA_DIR or --data-dir to the folder "
                "that has them, or fetch them with `asgat train NAME`."
            )
        return present

    def pick_models(self, own: Sequence[str]) -> list[str]:
        """The models of an experiment: those asked for, or its own."""
        return list(self.models or own)

    def load(self, name: str) -> Dataset:
        if name not in self._loaded:
            self._loaded[name] = load_dataset(name, data_dir=self.data_dir)
        return self._loaded[name]

    def runs(self, dataset: Dataset) -> list[int]:
        """The runs of a data set: its splits, or seeds where it has one split."""
        most = len(dataset.splits) if len(dataset.splits) > 1 else RUNS
        return list(range(min(most, QUICK_RUNS if self.quick else RUNS)))
