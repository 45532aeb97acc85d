"""Whether a model is better than guessing, or than another model: 95 % intervals of the gain on the same test nodes.

A gain is certain where its interval leaves out 0. The interval is that of a bootstrap over test nodes. With few nodes,
or few of a class, it leaves out 0 too often; it is then extended to 0, unless a randomisation test, which holds its
level for any number of nodes, finds the gain too large for chance as well. A lower log-loss is a gain.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from asgat.leaderboard.intervals import (
    Floats,
    Interval,
    NodePredictions,
    bootstrap,
    guess_score,
    mean_score,
    percentiles,
    resampled,
    tested_nodes,
    weighted_score,
)

ROUNDING = 1e-12  # within which two scores are the same


def is_better(gain: Interval | None) -> bool:
    """Whether a gain is certain."""
    return gain is not None and gain[0] > 0


def gain_over_guessing(metric: str, tested: Sequence[NodePredictions]) -> Interval | None:
    """How much better the mean score over splits is than that of the best guess.

    The test: what a model that learned nothing predicts does not depend on the labels of test nodes, so it scores as
    high on shuffled labels. A node keeps one label in all splits.
    """
    if (score := mean_score(metric, tested, weighted_score)) is None:
        return None
    sign, nodes = _sign(metric), tested_nodes(tested)
    places = [np.searchsorted(nodes, one.nodes) for one in tested]
    labels = np.zeros(len(nodes), dtype=np.int64)
    for one, place in zip(tested, places, strict=True):
        labels[place] = one.truth

    def shuffle(rng: np.random.Generator, count: int) -> Floats:
        truth = rng.permuted(np.tile(labels, (count, 1)), axis=1)
        each = [
            weighted_score(metric, replace(one, truth=truth[:, place]), np.ones((1, len(place))))
            for one, place in zip(tested, places, strict=True)
        ]
        return np.asarray(sign * np.mean(each, axis=0))

    gain = percentiles(sign * (bootstrap(metric, tested, weighted_score) - bootstrap(metric, tested, guess_score)))
    if gain is None or not is_better(gain) or _chance(resampled(shuffle, len(nodes)), sign * score) <= 0.025:
        return gain
    return _with_zero(gain)


def gain_over(metric: str, one: Sequence[NodePredictions], other: Sequence[NodePredictions]) -> Interval | None:
    """How much better the mean score over splits of ``one`` is than that of ``other`` on the same nodes.

    The test: of two models that are equally good, the predictions of any node can be exchanged, in all splits. And the
    better one must be better than guessing, because of two models that learned nothing one can be better too: varied
    predictions have a higher macro-F1 than a single class.
    """
    scores = [mean_score(metric, tested, weighted_score) for tested in (one, other)]
    if scores[0] is None or scores[1] is None:
        return None
    sign, nodes = _sign(metric), tested_nodes(one)
    places = [np.searchsorted(nodes, part.nodes) for part in one]
    pairs = [_stacked(metric, *pair) for pair in zip(one, other, strict=True)]

    def exchange(rng: np.random.Generator, count: int) -> Floats:
        swapped = rng.integers(0, 2, (count, len(nodes))).astype(np.float64)
        each = []
        for pair, place in zip(pairs, places, strict=True):
            swap = swapped[:, place]
            ours, theirs = np.hstack([1 - swap, swap]), np.hstack([swap, 1 - swap])
            each.append(weighted_score(metric, pair, ours) - weighted_score(metric, pair, theirs))
        return np.asarray(np.abs(np.mean(each, axis=0)))

    gain = percentiles(sign * (bootstrap(metric, one, weighted_score) - bootstrap(metric, other, weighted_score)))
    if gain is None or gain[0] <= 0 <= gain[1]:
        return gain
    if _chance(resampled(exchange, len(nodes)), abs(scores[0] - scores[1])) > 0.05:
        return _with_zero(gain)
    return gain if is_better(gain_over_guessing(metric, one if gain[0] > 0 else other)) else _with_zero(gain)


def _stacked(metric: str, one: NodePredictions, other: NodePredictions) -> NodePredictions:
    """The nodes with the predictions of one model, and once more with those of another.

    For ROC-AUC, predictions are ranks, as the scores of two models can have different scales.
    """
    from scipy.stats import rankdata

    each = [one.probability, other.probability]
    if metric == "roc_auc":
        each = [np.outer(rankdata(probability[:, 1]), [-1.0, 1.0]) for probability in each]
    return replace(one, nodes=np.tile(one.nodes, 2), truth=np.tile(one.truth, 2), probability=np.concatenate(each))


def _sign(metric: str) -> int:
    return -1 if metric == "log_loss" else 1


def _chance(scores: Floats, score: float) -> float:
    """The share of random scores that are as high, the score itself counted as one of them."""
    scores = scores[np.isfinite(scores)]
    return float((1 + (scores >= score - ROUNDING).sum()) / (1 + len(scores)))


def _with_zero(gain: Interval) -> Interval:
    return min(gain[0], 0.0), max(gain[1], 0.0)
