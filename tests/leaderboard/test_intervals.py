"""Intervals of test scores: they cover, they narrow, and weighted scores are those of repeated nodes."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from asgat.data.dataset import METRICS, Split
from asgat.leaderboard import intervals
from asgat.leaderboard.intervals import NodePredictions, mean_scores, weighted_score


def score_interval(metric, tested):
    found = intervals.score_interval(metric, tested)
    assert found is not None
    return found


def difference_interval(metric, one, other):
    found = intervals.difference_interval(metric, one, other)
    assert found is not None
    return found


def drawn(nodes=60, classes=2, signal=1.0, seed=0, first=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, nodes)
    logits = rng.normal(size=(nodes, classes)) + signal * np.eye(classes)[truth]
    probability = torch.softmax(torch.from_numpy(logits), dim=1).numpy()
    return NodePredictions(np.arange(first, first + nodes), truth, probability)


@pytest.mark.parametrize("metric", METRICS)
def test_a_weight_counts_a_node_as_often(metric):
    one, weight = drawn(), np.random.default_rng(1).integers(0, 4, (3, 60))
    for row, found in zip(weight, weighted_score(metric, one, weight.astype(float)), strict=True):
        truth, probability = np.repeat(one.truth, row), np.repeat(one.probability, row, axis=0)
        prediction = probability.argmax(axis=1)
        expected = {
            "micro_f1": np.mean(truth == prediction),
            "macro_f1": f1_score(truth, prediction, average="macro"),
            "roc_auc": roc_auc_score(truth, probability[:, 1]),
            "log_loss": log_loss(truth, probability),
        }[metric]
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS)
def test_an_interval_holds_the_score_and_narrows_with_nodes(metric):
    widths = []
    for nodes in (60, 600):
        one = drawn(nodes)
        score, (low, high) = mean_scores([one])[metric], score_interval(metric, [one])
        assert low < score < high
        widths.append(high - low)
    assert widths[1] < 0.5 * widths[0]


@pytest.mark.parametrize("metric", METRICS)
def test_it_holds_the_true_score_most_of_the_time(metric):
    truth = mean_scores([drawn(20_000, seed=99)])[metric]
    inside = 0
    for seed in range(60):
        low, high = score_interval(metric, [drawn(150, seed=seed)])
        inside += low <= truth <= high
    assert inside >= 51  # 57 are expected


def test_a_perfect_score_is_not_certain():
    one = NodePredictions(np.arange(20), np.zeros(20, int), np.tile([1.0, 0.0], (20, 1)))
    low, high = score_interval("micro_f1", [one])
    assert 0.7 < low < 0.9
    assert high == 1.0


def test_the_same_nodes_again_do_not_make_it_surer():
    one = drawn()
    assert score_interval("micro_f1", [one, one]) == score_interval("micro_f1", [one])
    low, high = score_interval("micro_f1", [one, drawn(seed=1, first=60)])
    alone = score_interval("micro_f1", [one])
    assert high - low < alone[1] - alone[0]


def test_a_difference_is_that_of_the_same_nodes():
    good, bad = drawn(300, signal=2.0), drawn(300, signal=0.0)
    low, high = difference_interval("micro_f1", [good], [bad])
    assert 0 < low < high
    assert difference_interval("micro_f1", [bad], [good]) == pytest.approx((-high, -low))
    assert difference_interval("micro_f1", [good], [good]) == (0.0, 0.0)


def test_without_test_nodes_there_is_none():
    split = Split(np.arange(3), np.arange(3, 5), np.arange(0))
    nobody = NodePredictions.of(split, np.zeros(5, int), np.ones((5, 2)) / 2)
    assert intervals.score_interval("micro_f1", [nobody]) is None
    assert intervals.difference_interval("macro_f1", [nobody], [nobody]) is None
    assert intervals.score_interval("roc_auc", [drawn(classes=3)]) is None
