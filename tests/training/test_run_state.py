"""The rules of a run, without any model: when attempts end, when a run restarts and what is reported."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.training.tiny import quick, tiny_dataset

from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.training.metrics import majority_share
from asgat.training.run_state import (
    SCORES,
    DivergedError,
    Epoch,
    Job,
    Run,
    RunResult,
    attempt_seed,
    baseline_score,
    joined_history,
    member_seed,
    run_seed,
)

DATA = tiny_dataset()
SPLIT = DATA.splits[0]
NAN = math.nan


def make_run(baseline=0.6, **changes):
    return Run(Job(SPLIT, 3, quick(**changes)), baseline)


def scores(val_score, **changes):
    return {**dict.fromkeys(SCORES, 0.5), "roc_auc": None, "val_score": val_score, **changes}


def state(number):
    return {"w": torch.tensor([float(number)])}


def follow(run, figures, kept=0.0):
    """Gives a run the figures of epochs as long as it wants them, and ends attempts with the score that was kept.

    Returns the score that is kept in the middle of an attempt.
    """
    for train_loss, val_loss, val_score in figures:
        if run.finished:
            break
        if run.update(train_loss, val_loss, val_score):
            kept = val_score
        if run.attempt_ended:
            run.end_attempt(None if run.attempt_diverged else scores(kept), state(val_score))
            kept = 0.0
    return kept


# -- seeds and the baseline -------------------------------------------------------------------------


def test_every_run_attempt_and_member_has_its_own_seed():
    assert [run_seed(5, i, num_splits=1) for i in range(3)] == [5, 6, 7]
    assert [run_seed(5, i, num_splits=10) for i in range(3)] == [5, 5, 5]
    seeds = {
        attempt_seed(member_seed(run_seed(0, i, 1), member), attempt)
        for i in range(100)
        for member in range(10)
        for attempt in range(10)
    }
    assert len(seeds) == 100 * 10 * 10
    assert attempt_seed(member_seed(4, 0), 0) == 4


def test_the_baseline_is_the_majority_class_or_a_half():
    assert baseline_score(DATA.y, SPLIT, "micro_f1") == majority_share(DATA.y[SPLIT.train], DATA.y[SPLIT.val])
    assert baseline_score(DATA.y, SPLIT, "roc_auc") == 0.5


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1", "log_loss", "roc_auc"])
def test_the_baseline_does_not_depend_on_labels_of_test_nodes(metric):
    y = DATA.y.copy()
    y[SPLIT.test] = 7
    assert baseline_score(y, SPLIT, metric) == baseline_score(DATA.y, SPLIT, metric)


def test_splits_without_a_baseline_are_refused():
    with pytest.raises(AsgatError, match="no validation nodes"):
        baseline_score(DATA.y, Split(SPLIT.train, SPLIT.val[:0], SPLIT.test), "micro_f1")
    one_class = Split(SPLIT.train, SPLIT.val[DATA.y[SPLIT.val] == 0], SPLIT.test)
    with pytest.raises(AsgatError, match="one class"):
        baseline_score(DATA.y, one_class, "roc_auc")


# -- when an attempt ends ---------------------------------------------------------------------------


def test_an_attempt_ends_after_patience_epochs_without_improvement():
    run = make_run(epochs=50, patience=7)
    count = 0
    while not run.attempt_ended:
        run.update(1.0, 1.0, 0.7)
        count += 1
    assert count == run.epoch == run.best_epoch == 1 + 7  # the last of equals counts


def test_an_attempt_ends_after_the_epochs_allowed():
    run = make_run(epochs=3)
    for epoch in range(3):
        assert not run.attempt_ended
        run.update(1.0, 1.0 - epoch / 10, 0.7)
    assert run.attempt_ended


@pytest.mark.parametrize("losses", [(NAN, 1.0), (1.0, NAN), (math.inf, 1.0), (1.0, -math.inf)])
def test_an_attempt_ends_when_a_loss_is_not_finite(losses):
    run = make_run(lr=0.125)
    assert run.update(1.0, 1.0, 0.5)
    assert not run.update(*losses, 0.9)
    assert run.attempt_ended
    assert [epoch.epoch for epoch in run.history] == [1]
    run.end_attempt(None, {})
    outcome = run.outcome()
    assert isinstance(outcome, DivergedError)
    expected = f"diverged at epoch 2: the loss is {losses[0]}, on validation {losses[1]}.*lr is 0.125"
    with pytest.raises(AsgatError, match=expected):
        raise outcome


def test_weights_are_kept_when_loss_and_score_are_the_best_so_far():
    run = make_run(patience=9)
    assert [run.update(1.0, *f) for f in [(2.0, 0.5), (1.0, 0.4), (1.0, 0.5), (0.5, 0.5)]] == [True, False, True, True]
    assert run.best_epoch == 4


# -- restarts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_a_run_that_learns_nothing_restarts_as_often_as_allowed(allowed):
    run = make_run(epochs=2, max_restarts=allowed)
    seeds = []
    while not run.finished:
        seeds.append(run.seed)
        run.update(1.0, 1.0, 0.6)
        run.update(1.0, 1.0, 0.6)
        run.end_attempt(scores(0.6), state(len(seeds)))
    outcome = run.outcome()
    assert seeds == [attempt_seed(3, attempt) for attempt in range(allowed + 1)]
    assert (outcome.restarts, outcome.epochs, outcome.seed) == (allowed, 2 * (allowed + 1), 3)
    assert [(e.attempt, e.epoch) for e in outcome.history] == [(a, e) for a in range(allowed + 1) for e in (1, 2)]
    assert outcome.state["w"] == 1.0, "the first of equal attempts counts"


@pytest.mark.parametrize(
    ("baseline", "score", "restarts"), [(0.6, 0.61, 0), (0.6, 0.6, 2), (0.6, 0.5, 2), (1.0, 1.0, 0)]
)
def test_better_than_the_baseline_or_perfect_is_enough(baseline, score, restarts):
    run = make_run(baseline, epochs=1, max_restarts=2)
    follow(run, [(1.0, 1.0, score)] * 9)
    assert run.outcome().restarts == restarts


def test_the_attempt_with_the_best_validation_score_counts_whatever_its_test_score():
    run = make_run(0.9, epochs=1, max_restarts=2)
    for attempt, (val, test) in enumerate([(0.3, 1.0), (0.8, 0.0), (0.5, 1.0)]):
        run.update(1.0, 1.0, val)
        run.end_attempt(scores(val, micro_f1=test), state(attempt))
    outcome = run.outcome()
    assert (outcome.val_score, outcome.micro_f1, outcome.restarts) == (0.8, 0.0, 2)
    assert outcome.state["w"] == 1.0


def test_a_run_recovers_from_divergence():
    run = make_run(epochs=2, max_restarts=3)
    follow(run, [(1.0, 1.0, 0.5), (NAN, 1.0, 0.5), (1.0, 1.0, 0.9), (1.0, 1.0, 0.9)])
    outcome = run.outcome()
    assert (outcome.restarts, outcome.epochs, outcome.val_score) == (1, 3, 0.9)
    assert [e.attempt for e in outcome.history] == [0, 1, 1]


def test_divergence_after_an_attempt_that_learned_nothing_leaves_that_attempt():
    run = make_run(epochs=1, max_restarts=1)
    follow(run, [(1.0, 1.0, 0.4), (NAN, 1.0, 0.9)])
    outcome = run.outcome()
    assert isinstance(outcome, RunResult)
    assert (outcome.restarts, outcome.val_score) == (1, 0.4)


# -- as plain values --------------------------------------------------------------------------------

# Few different values, so that ties, returns to the best and divergence are common.
FIGURES = st.tuples(*[st.sampled_from([0.1, 0.2, 0.3, NAN])] * 2, st.sampled_from([0.4, 0.6, 0.8]))


def values_of(run):
    return {**run.to_dict(), "state": {name: value.tolist() for name, value in run.best_state.items()}}


@given(st.lists(FIGURES, min_size=1, max_size=30), st.integers(0, 29), st.integers(0, 2))
def test_a_run_restored_at_any_epoch_ends_as_if_it_had_not_stopped(figures, cut, max_restarts):
    whole, first, second = (make_run(epochs=6, patience=2, max_restarts=max_restarts) for _ in range(3))
    follow(whole, figures)
    kept = follow(first, figures[:cut])
    second.restore(json.loads(json.dumps(first.to_dict(), allow_nan=False)))
    second.best_state = first.best_state
    follow(second, figures[cut:], kept)
    assert values_of(second) == values_of(whole)
    if whole.finished:
        assert str(second.outcome()) == str(whole.outcome())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epoch": -1}, "counts are not numbers"),
        ({"attempt": True}, "counts are not numbers"),
        ({"waited": 1.5}, "counts are not numbers"),
        ({"seconds": None}, "counts are not numbers"),
        ({"seconds": 10**400}, "counts are not numbers"),
        ({"epoch": 31}, "more epochs or attempts"),
        ({"attempt": 1}, "more epochs or attempts"),
        ({"best_loss": "0"}, "best loss and score"),
        ({"best_score": []}, "best loss and score"),
        ({"history": {}}, "history is not one"),
        ({"history": [[0, 1, 0.5, 0.5]]}, "history is not one"),
        ({"history": [[0, 1, 0.5, 0.5, None]]}, "history is not one"),
        ({"history": ["12345"]}, "history is not one"),
        ({"best": {}}, "scores are not numbers"),
        ({"best": 0.5}, "scores are not numbers"),
        ({"best": dict.fromkeys(("best_epoch", *SCORES), "x")}, "scores are not numbers"),
        ({"best": {**dict.fromkeys(("best_epoch", *SCORES), 1), "more": 1}}, "scores are not numbers"),
        ({"finished": True}, "ended and has no scores"),
        ({"attempt_diverged": True}, "ended and has no scores"),
        ({"diverged": ["1", "x", "y"]}, "could not convert"),
        ({"diverged": ["1"]}, "unpack"),
    ],
)
def test_values_of_no_run_are_refused(changes, words):
    run = make_run()
    run.update(1.0, 1.0, 0.5)
    with pytest.raises(ValueError, match=words):
        make_run().restore({**run.to_dict(), **changes})


def test_histories_of_members_are_joined_with_their_attempts_numbered_on():
    def member(*attempts):
        history = [Epoch(attempt, 1, 1.0, 1.0, 0.5) for attempt in attempts]
        return RunResult(0, 1, 1, 1.0, 0.5, 0.5, 0.5, None, 0, 0.1, history, {})

    joined = joined_history([member(0, 1), member(0), member(0, 0, 1)])
    assert [epoch.attempt for epoch in joined] == [0, 1, 2, 3, 3, 4]
    assert np.unique([epoch.val_score for epoch in joined]) == [0.5]
