"""The score of a trial: the mean over runs, on validation nodes or on training nodes left out; the cheapest trial."""

import json
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from asgat.config import SpectralConfig, TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.errors import AsgatError
from asgat.training.inputs import make_features, prepare_graph
from asgat.training.loop import train_jobs
from asgat.training.run_state import Job, RunResult, run_seed
from asgat.training.runner import make_task, split_number

# Settings that do not change what a model precomputes from the graph; all others are assumed to.
GRAPH_INDEPENDENT = {"lr", "weight_decay", "dropout", "hidden", "layers", "heads", "out_heads", "k", "elu", "root"}
GRAPH_INDEPENDENT |= {"mix", "gain", "members", "jump", "adjacency", "propagate", "alpha", "balanced", "balance"}
GRAPH_INDEPENDENT |= {"normalize_features", "epochs", "patience", "max_restarts", "filter", "filter_hidden"}
GRAPH_INDEPENDENT |= {"filter_activation", "heat_scale", "channels", "input_dropout"}
FEATURE_SETTINGS = ("normalize_features", "adjacency", "self_loops", "similar", "similar_weight")
MAX_CACHED = 12  # operators and feature matrices
NEAR = 0.5  # standard errors of the best score by which a trial counts as equally good


@dataclass(frozen=True)
class TrialScore:
    """A trial's score, over its runs."""

    mean: float
    std: float
    macro: float  # mean macro-F1 of the same nodes
    val: float  # mean score of the validation nodes
    epochs: float
    restarts: int
    diverged: int  # runs that did, and count 0
    seconds: float


class Evaluation:
    """Trains configurations on the runs of a data set, on splits from which the test nodes are removed.

    What a model precomputes from the graph, mostly a candidate table, is shared by configurations with the same
    graph-dependent settings. With ``folds``, parts of the training nodes, a run is trained once without each part, and
    scored on that part: early stopping uses the validation nodes, so their score is optimistic.
    """

    def __init__(
        self,
        dataset: Dataset,
        model: str,
        runs: Sequence[int],
        seed: int,
        device: torch.device | str = "cpu",
        folds: int = 0,  # none: one training, scored on the validation nodes
        macro: bool = False,  # score by the mean of that score and macro-F1, in which all classes have the same weight
        both: bool = False,  # with folds, score by the mean of the nodes left out and the validation nodes
    ) -> None:
        self.dataset, self.model = dataset, model
        self.macro, self.both = macro, both
        self.device = torch.device(device)
        if dataset.metric == "log_loss":
            raise AsgatError("A search cannot score by log_loss; use micro_f1, macro_f1 or roc_auc.")
        count = len(dataset.splits)
        splits = [(dataset.splits[split_number(dataset.name, i, count)], run_seed(seed, i, count)) for i in runs]
        self.metric = dataset.metric if folds else "val_score"  # the nodes left out are the splits' test nodes
        self.splits = [(part, seed) for split, seed in splits for part in _without_test(dataset, split, folds, seed)]
        self._cache: OrderedDict[str, Any] = OrderedDict()

    def __call__(self, config: TrainConfig) -> TrialScore:
        jobs = [Job(split, seed, config) for split, seed in self.splits]
        task = make_task(self.dataset, self.model, config, self.device, inputs=self.inputs(config))
        outcomes = dict(train_jobs(task, jobs))
        return self._score([outcomes[number] for number in range(len(jobs))])

    def inputs(self, config: TrainConfig) -> tuple[Any, ...]:
        """The arguments of the model's ``forward``, from the cache if an earlier configuration had the same."""
        values = config.to_dict()
        shared = {key: value for key, value in values.items() if key not in GRAPH_INDEPENDENT}
        if isinstance(config, SpectralConfig):  # the table holds as many candidates as the longest selection needs
            length = max(config.candidates, config.k) if config.k else None
            shared |= {"k": length if config.attends else "no table"}
        graph = self._cached("graph", shared, lambda: prepare_graph(self.dataset, self.model, config, self.device))
        features = self._cached(
            "features",
            {name: values.get(name) for name in FEATURE_SETTINGS},
            lambda: make_features(self.dataset, config, self.device),
        )
        return features, *graph

    def _cached(self, kind: str, settings: dict[str, Any], make: Any) -> Any:
        key = json.dumps([kind, settings], sort_keys=True)
        if key not in self._cache:
            if len(self._cache) >= MAX_CACHED:
                self._cache.popitem(last=False)
            self._cache[key] = make()
        self._cache.move_to_end(key)
        return self._cache[key]

    def _score(self, outcomes: Sequence[RunResult | AsgatError]) -> TrialScore:
        done = [outcome for outcome in outcomes if isinstance(outcome, RunResult)]
        failed = [0.0] * (len(outcomes) - len(done))
        score, macro, val = (
            np.array([getattr(one, key) for one in done] + failed) for key in (self.metric, "macro_f1", "val_score")
        )
        if self.macro:
            score = (score + macro) / 2
        if self.both:
            score = (score + val) / 2
        return TrialScore(
            mean=float(score.mean()),
            std=float(score.std()),
            macro=float(macro.mean()),
            val=float(val.mean()),
            epochs=float(np.mean([outcome.epochs for outcome in done])) if done else 0.0,
            restarts=sum(outcome.restarts for outcome in done),
            diverged=len(failed),
            seconds=sum(outcome.seconds for outcome in done),
        )


def _without_test(dataset: Dataset, split: Split, folds: int, seed: int) -> list[Split]:
    """The split without its test nodes, once, or once per part of the training nodes, without that part too.

    Another seed makes other parts, so that settings that won on one division can be scored on another.
    """
    if not folds:
        return [replace(split, test=split.val)]
    if not 2 <= folds <= len(split.train):
        raise AsgatError(
            f"{len(split.train)} training nodes of {dataset.name} cannot be divided into {folds} folds; set at least "
            "2, for example 5."
        )
    parts = np.array_split(np.random.default_rng(seed).permutation(split.train), folds)
    return [replace(split, train=np.setdiff1d(split.train, part), test=part) for part in parts]


def cheapest(rows: Sequence[dict[str, Any]], runs: int) -> dict[str, Any]:
    """The trial with the shortest training among those within half a standard error of the best score.

    Args:
        rows: trials with ``trial``, ``value``, ``seconds`` and ``std``, the standard deviation of the runs' scores;
            without it only equal scores count as equally good.
        runs: number of scores that a value is the mean of.
    """
    best = max(rows, key=lambda row: (row["value"], -row["trial"]))
    least = best["value"] - NEAR * best.get("std", 0.0) / math.sqrt(runs)
    near = [row for row in rows if row["value"] >= least and "error" not in row]
    return min(near, key=lambda row: (row["seconds"], -row["value"], row["trial"]), default=best)
