"""The rounds: who goes on, who is chosen, what time and Ctrl-C do."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from asgat.errors import AsgatError
from asgat.leaderboard import contest as module
from asgat.leaderboard.choice import MAYBE, standard_error
from asgat.leaderboard.contest import better_half
from asgat.leaderboard.field import Candidate
from asgat.leaderboard.trial import Workbench, to_probability
from asgat.training.interrupt import Interrupt


@pytest.fixture
def make(make_contest):
    return make_contest


def summary(contest):
    return {key: (trial.run.history, trial.score, trial.run.finished) for key, trial in contest.trials.items()}


# -- the rules --------------------------------------------------------------------------------------


def candidates(*names):
    return [Candidate(name, "mlp") for name in names]


def test_the_better_half_and_the_best_of_every_row_go_on():
    field = candidates("a", "a", "a", "b", "b", "c")
    scores = dict(enumerate([0.9, 0.8, 0.7, 0.2, 0.3, -np.inf]))
    assert better_half(field, scores) == [0, 1, 2, 4]
    assert better_half(candidates("a", "a", "a"), {0: 0.5, 1: 0.5, 2: 0.5}) == [0, 1], "of equals the cheaper"


def test_few_nodes_are_averaged_over_and_others_give_one(make, monkeypatch):
    asked = []

    def choose(ranked, scores, error, predictions):
        asked.append((scores[0], error))
        return ranked

    monkeypatch.setattr(module, "choose", choose)
    contest = make()
    assert len(contest.run()) == 2
    nodes = set().union(*(fold.val for fold in contest.folds))
    assert asked[0][1] == standard_error(asked[0][0], len(nodes)), "every node counts once"
    monkeypatch.setattr(module, "is_few", lambda split: False)
    assert len(make().run()) == 1
    assert len(asked) == 1


def test_votes_are_of_validation_nodes_of_common_folds(make, blocks):
    contest = make()
    contest._train("to the end", [(0, 0), (0, 1), (3, 0), (3, 1), (3, 2)], 1e12)
    predictions = contest.fold_predictions([3, 0])
    assert set(predictions.truth) == {0, 1}
    each = []
    for fold in (0, 1):
        val = contest.folds[fold].val
        np.testing.assert_array_equal(predictions.truth[fold], blocks.y[val])
        logits = [contest.trials[n, fold].logits(contest.bench.task(contest.candidates[n])) for n in (0, 3)]
        right = np.mean([to_probability(one)[val] for one in logits], axis=0).argmax(axis=1) == blocks.y[val]
        each.append(right.mean())
    assert predictions.validate([3, 0])[0] == pytest.approx(np.mean(each))
    assert predictions.validate([3])[0] == pytest.approx(contest.score(3, {0, 1}))


# -- training ---------------------------------------------------------------------------------------


def test_rounds_train_what_they_should(make, preset):
    contest = make()
    order = contest.run()
    assert not contest.cut
    epochs = {key: trial.epochs for key, trial in contest.trials.items()}
    assert sum(fold == 0 for _, fold in epochs) == 4
    stopped = [key for key, trial in contest.trials.items() if not trial.run.finished]
    assert stopped in ([(1, 0)], [(2, 0)]), "one of the two settings of a row was left behind"
    assert all(epochs[key] == preset.first_epochs for key in stopped)
    assert [sum(fold == f for _, fold in epochs) for f in (1, 2)] == [3, 2]
    assert 1 <= len(order) <= 2
    scores = [contest.score(n) for n in order]
    assert contest.trials_of(order[0])[2].run.finished
    assert scores[0] == max(scores)
    assert scores[0] - scores[-1] <= MAYBE * standard_error(scores[0], len(contest.split.val))
    assert contest.score(order[0]) == np.mean([trial.score for trial in contest.trials_of(order[0])])


def test_the_same_seed_gives_the_same_rounds(make):
    one, other = make(), make()
    assert one.run() == other.run()
    assert summary(one) == summary(other)


def test_no_test_label_has_an_influence(make, blocks, monkeypatch):
    one = make()
    order = one.run()
    swapped = blocks.y.copy()
    swapped[blocks.splits[0].test] = 1 - swapped[blocks.splits[0].test]
    other = make()
    other.bench = Workbench({False: replace(blocks, y=swapped)}, torch.device("cpu"))
    other.__post_init__()
    assert other.run() == order
    assert summary(one) == summary(other)


def test_what_was_saved_is_not_trained_again(make, tmp_path, monkeypatch):
    whole = make()
    order = whole.run()

    class Killed(Exception):
        pass

    def kill(name, done, total, epoch):
        if name == "to the end" and done == 1:
            raise Killed

    with pytest.raises(Killed):
        make(folder=tmp_path, report=kill).run()
    assert len(list(tmp_path.glob("*.safetensors"))) == 4
    resumed = make(folder=tmp_path)
    assert resumed.run() == order
    assert summary(resumed) == summary(whole)
    again = make(folder=tmp_path)
    monkeypatch.setattr(module, "train_runs", None)
    assert again.run() == order, "everything is there"


def test_ctrl_c_saves_what_is_trained(make, tmp_path):
    whole = make()
    order = whole.run()
    interrupt = Interrupt()

    def press(name, done, total, epoch):
        interrupt.asked = interrupt.asked or (name == "to the end" and epoch is not None and epoch.epoch == 6)

    stopped = make(folder=tmp_path, interrupt=interrupt, report=press)
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    assert any(trial.epochs == 6 for trial in stopped.trials.values())
    resumed = make(folder=tmp_path)
    assert resumed.run() == order
    assert summary(resumed) == summary(whole)


def test_with_no_time_left_the_best_of_what_is_trained_is_taken(make, tmp_path):
    interrupt = Interrupt()

    def press(name, done, total, epoch):
        interrupt.asked = interrupt.asked or (name == "to the end" and done == 2)

    with pytest.raises(KeyboardInterrupt):
        make(folder=tmp_path, interrupt=interrupt, report=press).run()
    late = make(folder=tmp_path, seconds=0.0)
    order = late.run()
    assert late.cut
    assert max(late.score(n) for n in range(4)) == late.score(order[0])
    assert sum(trial.epochs for trial in late.trials.values()) > 12, "it was not trained again"


# -- time -------------------------------------------------------------------------------------------


def test_without_time_the_first_candidate_is_still_trained(make):
    contest = make(seconds=0.0)
    assert contest.run() == [0]
    assert contest.cut
    assert contest.trials[0, 0].epochs == 1


def test_the_time_limit_is_kept(make, small_field, preset, monkeypatch):
    ticks = itertools.count(step=0.01)  # a clock that each look at it moves on
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    slow = [Candidate("gcn", "gcn", {**small_field[1].settings, "epochs": 100_000, "patience": 100_000})]
    contest = make([small_field[0], *slow], seconds=1.0)
    contest.run()
    assert next(ticks) < 1.5
    assert contest.cut
    assert not contest.trials[1, 0].run.finished
    assert contest.trials[1, 0].epochs > preset.first_epochs


def test_time_that_later_candidates_leave_over_goes_back_to_the_earlier(make, monkeypatch):
    """The first candidate has not ended when its share is over; the others need next to nothing."""
    contest, now, asked = make(seconds=100.0), [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    contest.clock._start = 0.0
    ended: set[int] = set()
    monkeypatch.setattr(module, "is_done", lambda run, epochs: id(run) in ended)

    def advance(trial, until, epochs, tell):
        number = trial.number
        asked.append((number, until - now[0]))
        now[0] = until if number == 0 and len(asked) == 1 else now[0] + 1.0
        if not (number == 0 and len(asked) == 1):
            ended.add(id(trial.run))

    monkeypatch.setattr(contest, "_advance", advance)
    contest._train("to the end", [(0, 0), (1, 0), (2, 0)], 90.0)
    numbers, times = zip(*asked, strict=True)
    assert numbers[0] == numbers[-1] == 0
    assert times[-1] > times[0], "the second turn has all that is left"
    assert not contest.cut


def test_a_candidate_that_cannot_be_built_is_skipped(make, small_field, monkeypatch):
    contest = make()
    build = contest.bench.task

    def task(candidate, *rest):
        if candidate.model == "linkx":
            raise AsgatError("It takes too much memory.")
        return build(candidate, *rest)

    monkeypatch.setattr(contest.bench, "task", task)
    assert 3 not in contest.run()
    assert contest.skipped == {3: "It takes too much memory."}
    assert not contest.cut


def test_what_was_trained_before_a_candidate_was_skipped_counts(make, tmp_path, monkeypatch):
    whole = make(folder=tmp_path)
    whole._train("first epochs", [(3, 0)], 1e12, 4)
    resumed = make(folder=tmp_path)

    def task(*_):
        raise AsgatError("It takes too long.")

    monkeypatch.setattr(resumed.bench, "task", task)
    resumed._train("to the end", [(2, 0), (3, 0)], 1e12)
    assert resumed.score(3) == whole.score(3) > 0
    assert resumed.score(2) == -np.inf
    assert set(resumed.skipped) == {2, 3}


def test_a_table_that_takes_too_long_is_given_up(make, monkeypatch):
    contest = make()
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    watch = contest._watch(110.0)
    now[0] += 5.0  # kernels are compiled
    watch(1, 1001)
    now[0] += 2.0
    with pytest.raises(AsgatError, match="takes 2000 seconds"):
        watch(2, 1001)
    watch(901, 1001)


def test_nothing_that_could_be_trained_is_an_error(make, small_field):
    diverging = [Candidate("gcn", "gcn", {**small_field[1].settings, "lr": 1e30})]
    with pytest.raises(AsgatError, match="No model could be trained"):
        make(diverging).run()
