"""Intervals of test scores: they cover, they narrow, and weighted scores are those of repeated nodes."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from asgat.data.dataset import METRICS, Split
from asgat.leaderboard import intervals
from asgat.leaderboard.intervals import NodePredictions, guess_scores, mean_scores, weighted_score


def score_interval(metric, tested):
    found = intervals.score_interval(metric, tested)
    assert found is not None
    return found


def drawn(nodes=60, classes=2, signal=1.0, seed=0, first=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, nodes)
    logits = rng.normal(size=(nodes, classes)) + signal * np.eye(classes)[truth]
    probability = torch.softmax(torch.from_numpy(logits), dim=1).numpy()
    return NodePredictions(np.arange(first, first + nodes), truth, probability, np.ones(classes) / classes)


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
    one = NodePredictions(np.arange(20), np.zeros(20, int), np.tile([1.0, 0.0], (20, 1)), np.array([1.0, 0.0]))
    low, high = score_interval("micro_f1", [one])
    assert 0.7 < low < 0.9
    assert high == 1.0


def test_the_same_nodes_again_do_not_make_it_surer():
    one = drawn()
    assert score_interval("micro_f1", [one, one]) == score_interval("micro_f1", [one])
    low, high = score_interval("micro_f1", [one, drawn(seed=1, first=60)])
    alone = score_interval("micro_f1", [one])
    assert high - low < alone[1] - alone[0]


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1"])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.7, 0.2, 0.1)])
def test_the_best_guess_is_as_good_as_a_class_at_random_or_the_most_frequent(metric, shares):
    rng, names = np.random.default_rng(0), np.arange(len(shares))
    truth = rng.choice(names, 400, p=shares)
    one = NodePredictions(np.arange(400), truth, np.eye(len(shares))[truth], np.array(shares))
    average = "micro" if metric == "micro_f1" else "macro"
    drawn = [f1_score(truth, rng.choice(names, 400, p=shares), average=average) for _ in range(200)]
    constant = f1_score(truth, np.zeros(400, int), average=average)
    assert guess_scores([one])[metric] == pytest.approx(max(np.mean(drawn), constant), abs=0.01)


def test_the_best_guess_of_probabilities_is_the_shares_of_known_labels():
    y = np.array([0, 0, 0, 1, 0, 1, 1, 0])
    one = NodePredictions.of(Split(np.arange(2), np.arange(2, 4), np.arange(4, 8)), y, np.ones((8, 2)) / 2)
    np.testing.assert_allclose(one.shares, [4 / 6, 2 / 6])  # of three and one labels, each counted once more
    found = guess_scores([one])
    assert found["log_loss"] == pytest.approx(-np.log([4 / 6, 2 / 6]).mean())
    assert found["roc_auc"] == 0.5
    assert found["micro_f1"] == 0.5


def test_without_test_nodes_there_is_none():
    split = Split(np.arange(3), np.arange(3, 5), np.arange(0))
    nobody = NodePredictions.of(split, np.zeros(5, int), np.ones((5, 2)) / 2)
    assert intervals.score_interval("micro_f1", [nobody]) is None
    assert intervals.score_interval("roc_auc", [drawn(classes=3)]) is None
