import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_auc_score

from asgat.training.metrics import macro_f1, majority_share, micro_f1, roc_auc

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
    assert macro_f1(truth, prediction) == pytest.approx(expected)
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
