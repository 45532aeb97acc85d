"""How sure a test score is: 95 % intervals over the choice of test nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Split
from asgat.training.metrics import Labels, Probabilities, all_scores

RESAMPLES = 1000
CELLS = 4_000_000  # numbers drawn at once

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class NodePredictions:
    """Probabilities of the test nodes of one split; ``nodes`` are their numbers, ``truth`` their classes."""

    nodes: npt.NDArray[np.int64]
    truth: Labels
    probability: Probabilities

    @classmethod
    def of(cls, split: Split, y: Labels, probability: Probabilities) -> Self:
        """The test nodes of a split, from labels and probabilities of all nodes."""
        return cls(split.test, y[split.test], probability[split.test])


def mean_scores(tested: Sequence[NodePredictions]) -> dict[str, Any]:
    """Every score, as the mean over splits; None where one of them has no such score."""
    each = [all_scores(one.truth, one.probability) for one in tested]
    return {key: _mean([scores[key] for scores in each]) for key in each[0]}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and value == value]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def score_interval(metric: str, tested: Sequence[NodePredictions]) -> Interval | None:
    """Where the mean score over splits would be on other nodes of the same kind, with 95 % certainty.

    Micro-F1 is a share of nodes, and has Wilson's interval for as many nodes as were tested in some split. For other
    metrics nodes are drawn again with replacement, a node with all its predictions.
    """
    nodes = np.unique(np.concatenate([one.nodes for one in tested]))
    score = mean_scores(tested)[metric]
    if not len(nodes) or score is None:
        return None
    if metric == "micro_f1":
        return wilson_interval(round(score * len(nodes)), len(nodes))
    return _percentiles(_resampled(metric, tested, nodes))


def wilson_interval(right: int, number: int) -> Interval:
    """The 95 % interval of a share of nodes."""
    from scipy.stats import binomtest

    interval = binomtest(right, number).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def difference_interval(
    metric: str, one: Sequence[NodePredictions], other: Sequence[NodePredictions]
) -> Interval | None:
    """As :func:`score_interval`, of the score of ``one`` minus that of ``other`` on the same nodes."""
    if not all(len(part.nodes) for part in (*one, *other)):
        return None
    nodes = np.unique(np.concatenate([part.nodes for part in one]))
    return _percentiles(_resampled(metric, one, nodes) - _resampled(metric, other, nodes))


def _percentiles(values: npt.NDArray[np.float64]) -> Interval | None:
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def _resampled(metric: str, tested: Sequence[NodePredictions], nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The mean score over splits for each of many draws; the draws depend on the number of nodes alone."""
    rng, found = np.random.default_rng(0), []
    step = max(1, CELLS // len(nodes))
    places = [np.searchsorted(nodes, one.nodes) for one in tested]
    for first in range(0, RESAMPLES, step):
        times = rng.poisson(1.0, (min(step, RESAMPLES - first), len(nodes))).astype(np.float64)
        each = [weighted_score(metric, one, times[:, place]) for one, place in zip(tested, places, strict=True)]
        found.append(np.mean(each, axis=0))
    return np.concatenate(found)


def weighted_score(metric: str, tested: NodePredictions, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The score where every node counts as often as ``weight`` [draws, nodes] says, [draws]; NaN if there is none."""
    truth, probability = tested.truth, tested.probability
    prediction, total = probability.argmax(axis=1), weight.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        if metric == "micro_f1":
            return np.asarray(weight @ (prediction == truth) / total)
        if metric == "log_loss":
            given = probability[np.arange(len(truth)), truth]
            return np.asarray(weight @ -np.log(np.maximum(given, 1e-15)) / total)
        if metric == "macro_f1":
            names = np.arange(probability.shape[1])
            predicted, true = prediction[:, None] == names, truth[:, None] == names
            ends = weight @ predicted + weight @ true
            return np.asarray(np.nansum(2 * (weight @ (predicted & true)) / ends, axis=1) / (ends > 0).sum(axis=1))
        if metric == "roc_auc":
            return np.asarray(_weighted_area(truth, probability[:, 1], weight))
    raise AssertionError(f"there is no metric {metric!r}")


def _weighted_area(truth: Labels, score: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]) -> Any:
    """The weighted share of pairs of both classes that are ranked rightly, a tie counting half."""
    _, place = np.unique(score, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    zeros = np.add.reduceat((weight * (truth == 0))[:, order], starts, axis=1)
    ones = np.add.reduceat((weight * (truth == 1))[:, order], starts, axis=1)
    right = ones * (np.cumsum(zeros, axis=1) - zeros / 2)
    return right.sum(axis=1) / (zeros.sum(axis=1) * ones.sum(axis=1))
