"""A user's graph as data that any model is trained on: read from files, or from a run directory of ``asgat fit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from asgat.config import TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.data.digest import dataset_digest
from asgat.errors import AsgatError
from asgat.estimator.classifier import ASGATClassifier
from asgat.estimator.encoded_graph import encode_user_graph
from asgat.estimator.health import Health, examine
from asgat.estimator.trained_run import HEALTH_FILE, load_run
from asgat.files.user_file import read_user_file
from asgat.nn.registry import model_spec
from asgat.tabular.user_graph import UserGraph
from asgat.training.run_directory import RunDirectory

DEFAULT_MODEL, DEFAULT_METRIC = "asgat-plus", "micro_f1"


@dataclass(frozen=True, eq=False)
class UserData:
    """A user's graph, encoded and split, and its figures.

    Args:
        dataset: one split for every run; a single one if all are the same, so that runs differ by their seed.
        model: the model of the run directory it was read from.
    """

    dataset: Dataset
    health: Health
    model: str = DEFAULT_MODEL

    @classmethod
    def from_graph(cls, graph: UserGraph, seed: int = 0, runs: int = 1, metric: str | None = None) -> UserData:
        """The graph with the splits that ``asgat fit`` with this seed and as many repeats has."""
        encoded = encode_user_graph(graph, seed=seed, repeats=runs, metric=metric or DEFAULT_METRIC)
        health = examine(graph, encoded.dataset, encoded.encoding.class_names, encoded.notes)
        splits = encoded.dataset.splits
        if all(_same(split, splits[0]) for split in splits):
            splits = splits[:1]
        return cls(replace(encoded.dataset, splits=splits), health)

    @classmethod
    def from_run(cls, path: Path | str, metric: str | None = None) -> UserData:
        """The graph, split and metric of a run directory of ``asgat fit``."""
        run = load_run(path)
        if not run.is_user_graph:
            raise AsgatError(f"{path} is a run on the data set {run.dataset.name}; give that name instead.")
        test = RunDirectory(path).read_result().get("test")
        held = test["metric"] if isinstance(test, Mapping) and "metric" in test else DEFAULT_METRIC
        health = Health.from_dict(read_user_file(Path(path) / HEALTH_FILE).json_object())
        return cls(replace(run.dataset, metric=metric or str(held)), health, run.name)

    @property
    def digest(self) -> str:
        """The digest of the data with the first split, which a run directory of ``asgat fit`` holds, too."""
        return dataset_digest(replace(self.dataset, splits=self.dataset.splits[:1]))

    def config(self, model: str, settings: Mapping[str, Any] | None = None) -> TrainConfig:
        """The settings ``asgat fit --model`` has for this graph."""
        return ASGATClassifier(model, settings=settings).make_config(self.health)

    def dataset_for(self, model: str) -> Dataset:
        """The data set; without directions of edges for a model that cannot use them."""
        if not self.dataset.directed or model_spec(model).directed:
            return self.dataset
        return replace(self.dataset, graph=self.dataset.graph.undirected)


def _same(one: Split, other: Split) -> bool:
    pairs = zip(one.parts().values(), other.parts().values(), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)
