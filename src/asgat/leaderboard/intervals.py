"""How sure a test score is: 95 % intervals over the choice of test nodes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from asgat.data.dataset import Split
from asgat.training.metrics import Labels, Probabilities, all_scores, guess

RESAMPLES = 1000
CELLS = 4_000_000  # numbers drawn at once

Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class NodePredictions:
    """Probabilities of the test nodes of one split.

    Attributes:
        nodes: their numbers.
        truth: their classes.
        probability: of the classes, [nodes, classes].
        shares: of the classes among nodes with known labels, by which one can guess, [classes].
    """

    nodes: npt.NDArray[np.int64]
    truth: Labels
    probability: Probabilities
    shares: Floats

    @classmethod
    def of(cls, split: Split, y: Labels, probability: Probabilities) -> Self:
        """The test nodes of a split, from labels and probabilities of all nodes."""
        known = y[np.concatenate([split.train, split.val])]
        return cls(split.test, y[split.test], probability[split.test], guess(known, probability.shape[1], 1)[0])


Score = Callable[[str, NodePredictions, Floats], Floats]  # of a metric, for every row of weights


def mean_scores(tested: Sequence[NodePredictions]) -> dict[str, Any]:
    """Every score, as the mean over splits; None where one of them has no such score."""
    each = [all_scores(one.truth, one.probability) for one in tested]
    return {key: _mean([scores[key] for scores in each]) for key in each[0]}


def guess_scores(tested: Sequence[NodePredictions]) -> dict[str, Any]:
    """Every score of the best guess for it on the same nodes, as :func:`mean_scores`."""
    found = mean_scores([replace(one, probability=np.tile(one.shares, (len(one.nodes), 1))) for one in tested])
    return found | {metric: mean_score(metric, tested, guess_score) for metric in ("micro_f1", "macro_f1")}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and value == value]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def score_interval(metric: str, tested: Sequence[NodePredictions], score: Score | None = None) -> Interval | None:
    """Where the mean score over splits would be on other nodes of the same kind, with 95 % certainty.

    Micro-F1 is a share of nodes, and has Wilson's interval for as many nodes as were tested in some split. For other
    metrics nodes are drawn again with replacement, a node with all its predictions.
    """
    score = score or weighted_score
    if (value := mean_score(metric, tested, score)) is None:
        return None
    if metric == "micro_f1":
        number = len(tested_nodes(tested))
        return wilson_interval(round(value * number), number)
    return percentiles(bootstrap(metric, tested, score))


def wilson_interval(right: int, number: int) -> Interval:
    """The 95 % interval of a share of nodes."""
    from scipy.stats import binomtest

    interval = binomtest(right, number).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def percentiles(values: Floats) -> Interval | None:
    """The middle 95 % of some values."""
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def tested_nodes(tested: Sequence[NodePredictions]) -> npt.NDArray[np.int64]:
    """The nodes that are tested in some split, in order."""
    return np.unique(np.concatenate([one.nodes for one in tested]))


def bootstrap(metric: str, tested: Sequence[NodePredictions], score: Score) -> Floats:
    """The mean score over splits for each of many draws; the draws depend on the number of nodes alone."""
    nodes = tested_nodes(tested)
    places = [np.searchsorted(nodes, one.nodes) for one in tested]

    def draw(rng: np.random.Generator, count: int) -> Floats:
        times = rng.poisson(1.0, (count, len(nodes))).astype(np.float64)
        each = [score(metric, one, times[:, place]) for one, place in zip(tested, places, strict=True)]
        return np.asarray(np.mean(each, axis=0))

    return resampled(draw, len(nodes))


def resampled(draw: Callable[[np.random.Generator, int], Floats], nodes: int) -> Floats:
    """Many draws, a part at a time where each needs a number for every node."""
    rng, step = np.random.default_rng(0), max(1, CELLS // nodes)
    return np.concatenate([draw(rng, min(step, RESAMPLES - first)) for first in range(0, RESAMPLES, step)])


def mean_score(metric: str, tested: Sequence[NodePredictions], score: Score) -> float | None:
    """The mean over splits; None where one of them has no such score."""
    if not all(len(one.nodes) for one in tested):
        return None
    return _mean([float(score(metric, one, np.ones((1, len(one.nodes))))[0]) for one in tested])


def weighted_score(metric: str, tested: NodePredictions, weight: Floats) -> Floats:
    """The score where every node counts as often as ``weight`` [draws, nodes] says, [draws]; NaN if there is none.

    The truth may be that of every draw too, [draws, nodes].
    """
    truth, probability = tested.truth, tested.probability
    prediction, total = probability.argmax(axis=1), weight.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        if metric == "micro_f1":
            return np.asarray((weight * (prediction == truth)).sum(axis=1) / total)
        if metric == "log_loss":
            loss = -np.log(np.maximum(probability, 1e-15))[np.arange(len(prediction)), truth]
            return np.asarray((weight * loss).sum(axis=1) / total)
        if metric == "macro_f1":
            classes = probability.shape[1]
            true, predicted, hits = (
                _class_weights(names, weights, classes)
                for names, weights in ((truth, weight), (prediction, weight), (truth, weight * (truth == prediction)))
            )
            ends = true + predicted
            return np.asarray(np.nansum(2 * hits / ends, axis=1) / (ends > 0).sum(axis=1))
        if metric == "roc_auc":
            if probability.shape[1] != 2:
                return np.full(len(weight), np.nan)
            return np.asarray(_weighted_area(truth, probability[:, 1], weight))
    raise AssertionError(f"there is no metric {metric!r}")


def guess_score(metric: str, tested: NodePredictions, weight: Floats) -> Floats:
    """As :func:`weighted_score`, of the guess that is the better one on these nodes.

    The most frequent class for every node has the best micro-F1 to be had without information, and a random class by
    the shares of known labels, of which this is the expected score, the best macro-F1. Both rank no node above another,
    and the probabilities with the best log-loss are the shares themselves.
    """
    constant = replace(tested, probability=np.tile(tested.shares, (len(tested.nodes), 1)))
    if metric in ("micro_f1", "macro_f1"):
        once = np.ones((1, len(tested.nodes)))
        if _random_score(metric, tested, once) >= weighted_score(metric, constant, once):
            return _random_score(metric, tested, weight)
    return weighted_score(metric, constant, weight)


def _random_score(metric: str, tested: NodePredictions, weight: Floats) -> Floats:
    """The F1 to be expected from random classes; macro-F1 over the classes that there are."""
    guessed, true = tested.shares, _class_weights(tested.truth, weight, len(tested.shares))
    with np.errstate(invalid="ignore"):
        true /= true.sum(axis=1, keepdims=True)
        if metric == "micro_f1":
            return np.asarray(true @ guessed)
        return np.asarray((2 * true * guessed / (true + guessed)).sum(axis=1) / (true > 0).sum(axis=1))


def _class_weights(names: Labels, weight: Floats, classes: int) -> Floats:
    """The weight of the nodes of every class, [draws, classes]; the nodes' classes may differ between draws."""
    names, weight = np.broadcast_arrays(names, weight)
    place = np.arange(len(weight))[:, None] * classes + names
    found = np.bincount(place.ravel(), weight.ravel(), len(weight) * classes)
    return np.asarray(found, dtype=np.float64).reshape(-1, classes)


def _weighted_area(truth: Labels, score: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]) -> Any:
    """The weighted share of pairs of both classes that are ranked rightly, a tie counting half."""
    _, place = np.unique(score, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    zeros = np.add.reduceat((weight * (truth == 0))[:, order], starts, axis=1)
    ones = np.add.reduceat((weight * (truth == 1))[:, order], starts, axis=1)
    right = ones * (np.cumsum(zeros, axis=1) - zeros / 2)
    return right.sum(axis=1) / (zeros.sum(axis=1) * ones.sum(axis=1))
