"""Which finalists are averaged."""

import numpy as np
import pytest
import torch

from asgat.leaderboard.choice import MAYBE, FoldPredictions, choose, prefer_simple, standard_error

TRUTH = {0: torch.tensor([0, 1, 1, 0]), 1: torch.tensor([1, 0])}


def predictions(metric="micro_f1", **right):
    """Predictions of candidates that give each true class the listed probability, of the nodes of both folds."""
    logits = {}
    for number, shares in enumerate(right.values()):
        for fold, part in enumerate((shares[:4], shares[4:])):
            p = torch.tensor(part, dtype=torch.float64)
            own = torch.stack([p, 1 - p], dim=1)
            logits[number, fold] = torch.where(TRUTH[fold][:, None] == 0, own, own.flip(1)).log()
    return FoldPredictions(metric, TRUTH, logits)


A, OTHER_HALF, WORSE = [0.9, 0.9, 0.2, 0.9, 0.9, 0.3], [0.3, 0.4, 0.9, 0.6, 0.6, 0.9], [0.8, 0.8, 0.1, 0.8, 0.8, 0.2]


def test_an_average_is_validated_fold_by_fold():
    held = predictions(a=A, b=OTHER_HALF)
    joined = (np.array(A) + OTHER_HALF) / 2
    score, loss = held.validate([0, 1])
    assert score == pytest.approx(np.mean([(joined[:4] > 0.5).mean(), (joined[4:] > 0.5).mean()]))
    assert loss == pytest.approx(np.mean([-np.log(joined[:4]).mean(), -np.log(joined[4:]).mean()]))
    assert predictions("log_loss", a=A).validate([0])[0] == pytest.approx(-predictions(a=A).validate([0])[1])


def test_what_lowers_the_loss_of_the_average_is_added():
    held = predictions(a=A, worse=WORSE, b=OTHER_HALF)
    assert held.validate([0, 2])[1] < held.validate([0])[1] < held.validate([0, 1])[1]
    assert choose([0, 1, 2], [0.8, 0.8, 0.7], 1.0, held) == [0, 2]
    assert choose([1, 0, 2], [0.8, 0.8, 0.7], 1.0, held)[0] == 1, "the best by the metric is always there"


def test_what_is_clearly_worse_is_left_out():
    held = predictions(a=A, b=OTHER_HALF)
    assert choose([0, 1], [0.80, 0.70], 0.101 / MAYBE, held) == [0, 1]
    assert choose([0, 1], [0.80, 0.70], 0.099 / MAYBE, held) == [0]
    assert choose([0, 1], [-0.50, -0.60], 0.099 / MAYBE, held) == [0], "minus the log-loss"


def test_copies_of_the_best_add_nothing():
    assert choose([0, 1, 2], [0.8, 0.8, 0.8], 1.0, predictions(a=A, b=A, c=A)) == [0]


def test_near_ties_go_to_the_cheaper():
    assert prefer_simple([5, 2, 1], [0.80, 0.795, 0.70], 0.04) == 2
    assert prefer_simple([5, 2, 1], [0.80, 0.795, 0.70], 0.008) == 5


def test_the_standard_error_is_that_of_a_share():
    assert standard_error(0.8, 100) == pytest.approx(0.04)
    assert standard_error(1.0, 100) == standard_error(0.95, 100) > 0, "no score is beyond doubt"
    assert standard_error(-0.7, 100) > 0, "minus the log-loss"
