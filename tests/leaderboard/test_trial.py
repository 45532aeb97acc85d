"""Trials: kept scores and weights, inputs that are built once, and files they go on from."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from asgat.errors import AsgatError
from asgat.leaderboard.field import Candidate
from asgat.leaderboard.trial import Trial, TrialStore, Workbench, logits_of
from asgat.training.loop import train_runs
from asgat.training.objective import scores_of
from asgat.training.run_state import Job, Run, RunResult, baseline_score

SETTINGS = {"epochs": 10, "patience": 10, "hidden": 8, "max_restarts": 0}
GCN = Candidate("gcn", "gcn", SETTINGS)


@pytest.fixture
def bench(blocks):
    return Workbench({False: blocks}, torch.device("cpu"))


def start(blocks, candidate=GCN, number=0):
    job = Job(blocks.splits[0], 0, candidate.config)
    return Trial(candidate, number, 0, Run(job, baseline_score(blocks.y, job.split, blocks.metric)))


def advance(trial, task, epochs):
    snapshots = {0: trial.snapshot} if trial.snapshot else {}
    list(train_runs(task, [trial.run], paused=lambda run: len(run.history) >= epochs, snapshots=snapshots))
    trial.snapshot = {} if trial.run.finished else snapshots[0]


def test_a_trial_has_the_score_and_weights_of_its_kept_epoch(blocks, bench):
    trial, task = start(blocks), bench.task(GCN)
    assert trial.failed
    assert trial.score == -np.inf
    advance(trial, task, 5)
    assert (trial.epochs, trial.run.finished, trial.failed) == (5, False, False)
    scores = scores_of(logits_of(task, GCN.config, trial.weights()), task.y, blocks.splits[0], blocks.metric)
    assert trial.score == scores["val_score"] == trial.run.history[trial.run.best_epoch - 1].val_score
    outcome = trial.outcome(task)
    assert isinstance(outcome, RunResult)
    assert (outcome.epochs, outcome.val_score) == (5, scores["val_score"])
    assert trial.run.finished


def test_a_saved_trial_goes_on_as_if_it_had_never_stopped(blocks, bench, tmp_path):
    task, store = bench.task(GCN), TrialStore(tmp_path / "trials", "cpu", "digest")
    whole, parts = start(blocks), start(blocks)
    advance(whole, task, 99)
    advance(parts, task, 4)
    store.save([parts])
    again = store.restore(start(blocks))
    assert (again.epochs, again.run.finished) == (4, False)
    advance(again, task, 99)
    assert again.run.history == whole.run.history
    assert all(torch.equal(again.weights()[name], value) for name, value in whole.weights().items())
    store.save([again])
    ended = store.restore(start(blocks))
    assert ended.run.finished
    assert torch.equal(ended.logits(task), whole.logits(task))
    with pytest.raises(AsgatError, match="other data"):
        replace(store, data="another").restore(start(blocks))
    store.clear()
    assert not (tmp_path / "trials").exists()
    assert store.restore(start(blocks)).epochs == 0


def test_a_trial_that_was_set_aside_keeps_its_score_and_starts_again_if_need_be(blocks, bench, tmp_path):
    task, store = bench.task(GCN), TrialStore(tmp_path, "cpu", "digest")
    trial = start(blocks)
    advance(trial, task, 5)
    history, logits = list(trial.run.history), trial.logits(task)
    store.save([trial])
    size = (tmp_path / "0-0-0.safetensors").stat().st_size
    assert trial.set_aside()
    assert not trial.set_aside()
    store.save([trial])
    assert (tmp_path / "0-0-0.safetensors").stat().st_size < size
    again = store.restore(start(blocks))
    assert again.score == trial.score
    assert torch.equal(again.logits(task), logits)
    again.take_up()
    assert again.epochs == 0
    advance(again, task, 5)
    assert again.run.history == history
    again.take_up()
    assert again.epochs == 5, "it has what it goes on from"


def test_a_damaged_file_is_refused_in_a_sentence(blocks, tmp_path):
    store = TrialStore(tmp_path, "cpu", "digest")
    (tmp_path / "0-0-0.safetensors").write_bytes(b"nothing of use")
    with pytest.raises(AsgatError, match="holds no run that can go on"):
        store.restore(start(blocks))


def test_inputs_that_several_candidates_take_are_built_once(blocks, bench):
    deep = {**SETTINGS, "heads": 2, "order": 4, "k": 4}
    one = bench.task(Candidate("asgat-deep", "asgat-deep", deep))
    two = bench.task(Candidate("asgat-deep", "asgat-deep", {**deep, "layers": 1, "channels": "attention"}))
    other = bench.task(Candidate("asgat-deep", "asgat-deep", {**deep, "order": 5}))
    rows = bench.task(Candidate("asgat-deep", "asgat-deep", {**deep, "adjacency": True}))
    assert one.inputs[1] is two.inputs[1] is rows.inputs[1]
    assert one.inputs[1] is not other.inputs[1]
    assert one.inputs[0] is other.inputs[0]
    assert rows.inputs[0].size(1) == blocks.num_features + blocks.num_nodes
