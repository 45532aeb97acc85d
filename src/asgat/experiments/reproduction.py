"""What every experiment needs to know: where to write, on which device to train, and how much."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from asgat.data import Dataset, get_info, load_dataset
from asgat.data.download import data_directory
from asgat.errors import AsgatError
from asgat.files.atomic import to_json, write_atomic
from asgat.files.raw_file import RawFile

SEEDS = (0, 1, 2)  # fixed before any result was seen
RUNS = 10
QUICK_RUNS = 2
QUICK_SETTINGS: dict[str, Any] = {"epochs": 40, "max_restarts": 0}


class NoResultError(AsgatError):
    """An experiment has no data or no result; other experiments may have."""


@dataclass
class Reproduction:
    """One call of ``asgat reproduce``."""

    out: Path  # folder of results, figures and run directories
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seeds: tuple[int, ...] = SEEDS  # of the trainings whose mean is reported
    quick: bool = False  # a few runs and epochs, to check that everything works; the numbers are not results
    data_dir: Path | None = None
    datasets: tuple[str, ...] | None = None  # instead of an experiment's own
    models: tuple[str, ...] | None = None  # instead of an experiment's own
    fresh: bool = False  # discard earlier runs
    progress: Callable[[str], None] = lambda _: None  # called with a description of what is being done
    skipped: dict[str, str] = field(default_factory=dict)  # data sets that were left out, and the reason
    failed: dict[str, str] = field(default_factory=dict)  # trainings that failed, and the reason
    renewed: set[Path] = field(default_factory=set)  # made in this call, and not discarded again
    _loaded: dict[str, Dataset] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.quick:
            self.seeds = self.seeds[:1]

    @property
    def runs_folder(self) -> Path:
        """The run directories, shared by all experiments."""
        return self.out / ("runs-quick" if self.quick else "runs")

    def select_datasets(self, own: Sequence[str], quick: Sequence[str], needed: bool = True) -> list[str]:
        """The user's data sets, or the experiment's own, or the quick ones; only those whose files are present."""
        names = list(self.datasets or (quick if self.quick else own))
        absent = [name for name in names if get_info(name).missing_files(None, self.data_dir)]
        folder = data_directory(self.data_dir)
        self.skipped.update({name: f"its files are not in {folder}" for name in absent})
        present = [name for name in names if name not in absent]
        if needed and not present:
            raise NoResultError(
                f"The files of {', '.join(names)} are not in {folder}; set ASGAT_DATA_DIR or --data-dir to the folder "
                "that has them, or download them with `asgat train NAME`."
            )
        return present

    def load(self, name: str) -> Dataset:
        if name not in self._loaded:
            data = load_dataset(name, data_dir=self.data_dir)
            if data.graph.directed:
                raise AsgatError(f"{name} is directed, and the paper's graphs are not; leave it out.")
            self._loaded[name] = data
        return self._loaded[name]

    def runs(self, dataset: Dataset) -> list[int]:
        """The runs of a data set: its splits, or seeds if it has one split."""
        most = len(dataset.splits) if len(dataset.splits) > 1 else RUNS
        return list(range(min(most, QUICK_RUNS if self.quick else RUNS)))

    def must_renew(self, path: Path) -> bool:
        """Whether an earlier run or file must be discarded; True at most once per path."""
        renew = self.fresh and path not in self.renewed
        self.renewed.add(path)
        return renew


def cached_json(path: Path, make: Callable[[], Any], renew: bool = False) -> Any:
    """The value of ``make``, kept in a JSON file together with its SHA-256; made again if the file is damaged."""
    if not renew:
        try:
            kept = json.loads(RawFile.read(path).content)
            if kept["sha256"] == _digest(kept["value"]):
                return kept["value"]
        except (AsgatError, ValueError, LookupError, TypeError, RecursionError):
            pass  # there is no such file, or not as it was written
    value = json.loads(to_json(make()))
    write_atomic(path, to_json({"sha256": _digest(value), "value": value}))
    return value


def _digest(value: Any) -> str:
    return sha256(to_json(value)).hexdigest()
