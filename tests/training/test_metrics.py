import math

import numpy as np
import pytest
import sklearn.metrics
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_auc_score

from asgat.training.metrics import (
    all_scores,
    calibration_error,
    guess,
    log_loss,
    macro_f1,
    majority_share,
    micro_f1,
    roc_auc,
)

LABEL_PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)


def labels(*values):
    return np.array(values, dtype=np.int64)


def f1_by_hand(truth, prediction):
    """The mean over labels seen on either side of 2 tp / (2 tp + fp + fn), in plain Python."""
    scores = []
    for label in {*truth.tolist(), *prediction.tolist()}:
        hits = sum(t == p == label for t, p in zip(truth, prediction, strict=True))
        scores.append(2 * hits / (np.sum(truth == label) + np.sum(prediction == label)))
    return float(np.mean(scores))


@settings(deadline=None, max_examples=60)
@given(LABEL_PAIRS)
def test_f1_is_scikit_learns_and_the_definition(pairs):
    truth, prediction = np.array(pairs, dtype=np.int64).T
    assert micro_f1(truth, prediction) == pytest.approx(f1_score(truth, prediction, average="micro"))
    expected = f1_score(truth, prediction, average="macro", zero_division=0)
    assert macro_f1(truth, prediction) == expected, "to the last bit"
    assert macro_f1(truth, prediction) == pytest.approx(f1_by_hand(truth, prediction))


def test_hand_values():
    truth, prediction = labels(0, 0, 0, 1), labels(0, 0, 1, 1)
    assert micro_f1(truth, prediction) == 0.75
    assert macro_f1(truth, prediction) == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_nothing_to_score_is_nan():
    assert math.isnan(micro_f1(labels(), labels()))
    assert math.isnan(macro_f1(labels(), labels()))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=30))
def test_roc_auc_is_the_chance_to_rank_a_pair_rightly(pairs):
    truth = np.array([t for t, _ in pairs], dtype=np.int64)
    score = np.array([s for _, s in pairs], dtype=np.float64)
    value = roc_auc(torch.from_numpy(truth), torch.from_numpy(score)).item()
    if truth.min() == truth.max():
        assert math.isnan(value)
        return
    differences = score[truth == 1][:, None] - score[truth == 0]
    assert value == pytest.approx(np.mean((differences > 0) + 0.5 * (differences == 0)))
    assert value == pytest.approx(roc_auc_score(truth, score))


def test_majority_share_takes_the_class_from_train_and_scores_the_other():
    assert majority_share(labels(2, 2, 0), labels(2, 0, 0, 0)) == 0.25
    assert majority_share(labels(1, 1, 0), labels(0, 2)) == 0.0
    assert majority_share(labels(3), labels(3, 3)) == 1.0


def test_majority_share_of_a_tie_is_the_lower_class():
    assert majority_share(labels(1, 0), labels(0, 0, 1)) == pytest.approx(2 / 3)


def test_log_loss_is_scikit_learns():
    rng = np.random.default_rng(0)
    truth, probability = rng.integers(0, 3, 50), rng.dirichlet(np.ones(3), 50)
    assert log_loss(truth, probability) == pytest.approx(sklearn.metrics.log_loss(truth, probability))
    assert log_loss(labels(0), np.array([[0.0, 1.0]])) == pytest.approx(-math.log(1e-15))
    assert math.isnan(log_loss(labels(), np.zeros((0, 2))))


def test_calibration_is_how_far_probabilities_are_from_how_often_they_are_right():
    sure = np.tile([0.95, 0.05], (10, 1))
    assert calibration_error(np.zeros(10, int), sure) == pytest.approx(0.05)
    assert calibration_error(np.ones(10, int), sure) == pytest.approx(0.95)
    mixed = np.concatenate([sure, np.tile([0.6, 0.4], (10, 1))])
    truth = np.concatenate([np.zeros(10, int), labels(0, 0, 0, 0, 0, 0, 1, 1, 1, 1)])
    assert calibration_error(truth, mixed) == pytest.approx((0.05 + 0.0) / 2)
    rng = np.random.default_rng(0)
    chance = rng.random(20_000)
    honest = np.stack([1 - chance, chance], axis=1)
    assert calibration_error((rng.random(20_000) < chance).astype(int), honest) < 0.01
    assert math.isnan(calibration_error(labels(), np.zeros((0, 2))))


def test_all_scores_of_two_classes_and_of_more():
    probability = np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]])
    scores = all_scores(labels(0, 1, 1), probability)
    assert scores["micro_f1"] == pytest.approx(2 / 3)
    assert scores["roc_auc"] == 1.0
    assert all_scores(labels(0, 0, 0), probability)["roc_auc"] is None, "one class alone has no order"
    assert all_scores(labels(0, 1), np.full((2, 3), 1 / 3))["roc_auc"] is None


def test_a_guess_has_the_frequencies_of_the_classes():
    guessed = guess(labels(0, 0, 1, 0), 3, 5)
    assert guessed.shape == (5, 3)
    np.testing.assert_allclose(guessed[0], np.array([4, 2, 1]) / 7)
