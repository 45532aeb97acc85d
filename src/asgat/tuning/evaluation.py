"""What a trial is judged by: its mean score over the runs, on validation nodes or on training nodes left out."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from asgat.config import ASGATConfig, TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.errors import AsgatError
from asgat.nn.registry import model_spec
from asgat.training.batched import runs_at_once, train_batched
from asgat.training.batched_step import Job
from asgat.training.runner import make_features, prepare_graph
from asgat.training.trainer import RunResult

OF_THE_MODEL = {"lr", "weight_decay", "dropout", "hidden", "layers", "heads", "out_heads", "k", "elu", "root", "mix"}
OF_THE_MODEL |= {"gain", "members", "jump", "adjacency", "propagate", "alpha", "balanced", "balance"}
OF_THE_MODEL |= {"normalize_features", "epochs", "patience", "max_restarts"}
OF_THE_MODEL |= {"filter", "filter_hidden", "filter_activation"}
OF_THE_MODEL |= {"heat_scale"}
"""Settings that change nothing about what a model makes of the graph."""
KEPT = 12  # operators


@dataclass(frozen=True)
class Score:
    """A trial's score: mean and spread over the runs; ``diverged`` runs count 0.

    ``macro`` is the mean macro-F1 of the same nodes, ``val`` the mean score of validation nodes; they are told besides.
    """

    mean: float
    std: float
    macro: float
    val: float
    epochs: float
    restarts: int
    diverged: int
    seconds: float


class Evaluation:
    """Trains configurations on the runs of a data set, on splits whose test nodes have been taken out.

    What a model makes of the graph, a candidate table above all, serves all configurations that share its settings.

    Args:
        dataset: the data.
        model: its name in the registry.
        runs: which runs, as for :func:`asgat.training.runner.run`.
        seed: of the first run.
        device: where to train.
        folds: into how many parts the training nodes of a run are divided. The run is then trained that often, each
            time without one part, and judged by that part: validation nodes end it and flatter what they ended. 0 for
            one training and the validation score.
        macro: judge by the mean of that score and macro-F1, in which a rare class counts as much as any.
        both: with folds, judge by the mean of the nodes left out and the validation nodes.
    """

    def __init__(
        self,
        dataset: Dataset,
        model: str,
        runs: Sequence[int],
        seed: int,
        device: torch.device | str = "cpu",
        folds: int = 0,
        macro: bool = False,
        both: bool = False,
    ) -> None:
        self.dataset, self.model, self.spec = dataset, model, model_spec(model)
        self.macro, self.both = macro, both
        self.device = torch.device(device)
        several = len(dataset.splits) > 1
        if several and max(runs) >= len(dataset.splits):
            raise AsgatError(
                f"{dataset.name} has splits 0 to {len(dataset.splits) - 1}; there is no split {max(runs)}."
            )
        splits = [(dataset.splits[i if several else 0], seed if several else seed + i) for i in runs]
        self.judged = dataset.metric if folds else "val_score"  # on what stands in the place of the test nodes
        self.blind = [(blind, seed) for split, seed in splits for blind in _without_test(dataset, split, folds, seed)]
        self.y = torch.from_numpy(dataset.y).to(self.device)
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def __call__(self, configs: Sequence[TrainConfig]) -> list[Score]:
        """The scores of configurations that differ in lr, weight_decay and dropout only."""
        jobs = [Job(split, seed, config) for config in configs for split, seed in self.blind]
        sizes = self.dataset.num_features, self.dataset.num_classes, self.dataset.num_nodes
        outcomes = train_batched(
            lambda config: self.spec.make(config, *sizes),
            self.inputs(configs[0]),
            self.y,
            jobs,
            self.dataset.metric,
            runs_at_once(self.dataset, configs[0], self.device),
        )
        each = len(self.blind)
        return [
            _score(outcomes[i * each : (i + 1) * each], self.judged, self.macro, self.both) for i in range(len(configs))
        ]

    def inputs(self, config: TrainConfig) -> tuple[Any, ...]:
        """What the model's ``forward`` takes, taken from an earlier configuration where that is the same."""
        values = config.to_dict()
        shared = {key: value for key, value in values.items() if key not in OF_THE_MODEL}
        if isinstance(config, ASGATConfig):  # the table holds as many candidates as the longest selection needs
            shared |= {"k": max(config.candidates, config.k) if config.k else None}
        graph = self._keep("graph", shared, lambda: prepare_graph(self.dataset, self.model, config, self.device))
        names = ("normalize_features", "adjacency", "self_loops", "similar", "similar_weight")
        features = self._keep(
            "features",
            {name: values.get(name) for name in names},
            lambda: make_features(self.dataset, self.model, config, self.device),
        )
        return features, *graph

    def _keep(self, kind: str, settings: dict[str, Any], make: Any) -> Any:
        key = json.dumps([kind, settings], sort_keys=True)
        if key not in self._kept:
            if len(self._kept) >= KEPT:
                self._kept.popitem(last=False)
            self._kept[key] = make()
        self._kept.move_to_end(key)
        return self._kept[key]


def _without_test(dataset: Dataset, split: Split, folds: int, seed: int) -> list[Split]:
    """The split without its test nodes: once, or for every part of the training nodes once without that part too.

    Another seed makes other parts: settings that won on some of them can be judged by others.
    """
    if not folds:
        return [replace(split, test=split.val)]
    if not 2 <= folds <= len(split.train):
        raise AsgatError(
            f"{len(split.train)} training nodes of {dataset.name} cannot be divided into {folds} folds; take 2 or "
            "more, say 5."
        )
    parts = np.array_split(np.random.default_rng(seed).permutation(split.train), folds)
    return [replace(split, train=np.setdiff1d(split.train, part), test=part) for part in parts]


def _score(outcomes: Sequence[RunResult | AsgatError], judged: str, with_macro: bool, with_val: bool) -> Score:
    done = [outcome for outcome in outcomes if isinstance(outcome, RunResult)]
    failed = [0.0] * (len(outcomes) - len(done))
    scores, macro, val = ([getattr(one, key) for one in done] + failed for key in (judged, "macro_f1", "val_score"))
    if with_macro:
        scores = [(score + rare) / 2 for score, rare in zip(scores, macro, strict=True)]
    if with_val:
        scores = [(score + other) / 2 for score, other in zip(scores, val, strict=True)]
    return Score(
        mean=float(np.mean(scores)),
        std=float(np.std(scores)),
        macro=float(np.mean(macro)),
        val=float(np.mean(val)),
        epochs=float(np.mean([outcome.epochs for outcome in done])) if done else 0.0,
        restarts=sum(outcome.restarts for outcome in done),
        diverged=len(failed),
        seconds=sum(outcome.seconds for outcome in done),
    )
