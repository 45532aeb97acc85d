"""A user's graph as data that any model is trained on: read from files, or from a run directory of ``asgat fit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asgat.config import TrainConfig
from asgat.data.dataset import METRICS, Dataset
from asgat.data.digest import dataset_digest
from asgat.errors import AsgatError
from asgat.estimator.classifier import ASGATClassifier
from asgat.estimator.encoded_graph import encode_user_graph
from asgat.estimator.health import Health, examine
from asgat.estimator.trained_run import HEALTH_FILE, encode_files, load_run, read_encoder
from asgat.files.atomic import write_all
from asgat.files.lock import locked
from asgat.files.user_file import read_user_file
from asgat.nn.registry import model_spec
from asgat.tabular.user_graph import UserGraph
from asgat.training.run_directory import RunDirectory, read_metadata
from asgat.training.runner import split_number

DEFAULT_MODEL, DEFAULT_METRIC = "asgat-plus", "micro_f1"


@dataclass(frozen=True, eq=False)
class UserData:
    """A user's graph, encoded and split, and its figures.

    Args:
        dataset: the given splits, or one for every run; where there is one, runs differ by their seed.
        ids: of the nodes, as the user has them.
        encoding: content of ``encoder.json``: how its columns became features and its labels classes.
        model: the model of the run directory it was read from.
        given: whether the splits are the user's.
    """

    dataset: Dataset
    health: Health
    ids: Sequence[str]
    encoding: Mapping[str, Any]
    model: str = DEFAULT_MODEL
    given: bool = False

    @classmethod
    def from_graph(cls, graph: UserGraph, seed: int = 0, runs: int = 1, metric: str | None = None) -> UserData:
        """The graph with the splits that ``asgat fit`` with this seed and as many repeats has, each once."""
        encoded = encode_user_graph(graph, seed=seed, repeats=runs, metric=metric or DEFAULT_METRIC)
        health = examine(graph, encoded.dataset, encoded.encoding.class_names, encoded.notes)
        dataset, given = encoded.dataset, bool(encoded.user_graph.splits)
        if given:
            different = {tuple(part.tobytes() for part in split.parts().values()): split for split in dataset.splits}
            dataset = replace(dataset, splits=tuple(different.values()))
        return cls(dataset, health, list(graph.ids), encoded.encoding.to_dict(), given=given)

    @classmethod
    def from_run(cls, path: Path | str, metric: str | None = None) -> UserData:
        """The graph, split and metric of a run directory of ``asgat fit``."""
        run = load_run(path)
        if not run.is_user_graph:
            raise AsgatError(f"{path} is a run on the data set {run.dataset.name}; give that name instead.")
        result, folder = RunDirectory(path).read_result(), Path(path)
        held = next((name for name in METRICS if result.get(f"val_{name}") is not None), DEFAULT_METRIC)
        health = Health.from_dict(read_user_file(folder / HEALTH_FILE).json_object())
        dataset, ids = replace(run.dataset, metric=metric or held), [str(name) for name in run.ids]
        return cls(dataset, health, ids, read_encoder(folder), run.name)

    @property
    def digest(self) -> str:
        """The digest of the data with the given splits, or the first, which a run directory of ``asgat fit`` holds."""
        splits = self.dataset.splits if self.given else self.dataset.splits[:1]
        return dataset_digest(replace(self.dataset, splits=splits))

    def config(self, model: str, settings: Mapping[str, Any] | None = None) -> TrainConfig:
        """The settings ``asgat fit --model`` has for this graph."""
        return ASGATClassifier(model, settings=settings).make_config(self.health)

    def dataset_for(self, model: str) -> Dataset:
        """The data set; without directions of edges for a model that cannot use them."""
        if not self.dataset.directed or model_spec(model).directed:
            return self.dataset
        return replace(self.dataset, graph=self.dataset.graph.undirected)

    def add_to_run(self, path: Path | str) -> None:
        """Writes the graph, with the split of the saved model, next to it, as predict, explain and report need it."""
        metadata = read_metadata(path)
        split = self.dataset.splits[split_number(self.dataset.name, metadata["run"], len(self.dataset.splits))]
        dataset = replace(self.dataset_for(metadata["model"]), splits=(split,))
        with locked(path):
            write_all(Path(path), encode_files(dataset, self.ids, self.encoding, self.health))
