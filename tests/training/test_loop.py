"""The training loop: every run is trained as if it were alone."""

import dataclasses
from itertools import count

import numpy as np
import pytest
import torch
from tests.training.small import assert_same, jobs, make_task, settings, small_dataset
from tests.training.tiny import Constant, Diverging, Linear, quick, tiny_dataset

from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.training.loop import train, train_jobs, train_runs
from asgat.training.metrics import majority_share
from asgat.training.objective import evaluate
from asgat.training.run_state import SCORES, DivergedError, Epoch, Job, Run, RunResult, State, member_seed

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DTYPES = [torch.float32, torch.float64]


def run(build, dataset=None, config=None, seed=0, y=None, split=None, progress=None):
    """Trains the model that ``build`` makes, a class or a function without arguments."""
    dataset = dataset or tiny_dataset()
    y = torch.from_numpy(dataset.y if y is None else y)
    split = split or dataset.splits[0]
    inputs = (torch.from_numpy(dataset.x),)
    return train(lambda _: build(), inputs, y, split, config or quick(), seed, dataset.metric, progress)


def in_turn(*builds):
    """A build function that makes another model at every attempt."""
    remaining = iter(builds)
    return lambda: next(remaining)()


def train_all(model, chosen, dtype=torch.float64, metric="micro_f1", device="cpu", **options):
    """The results of jobs on the small data set, in their order."""
    task = make_task(model, chosen[0].config, dtype, metric, device)
    found = dict(train_jobs(task, chosen, **options))
    return [found[i] for i in range(len(chosen))]


def test_same_seed_same_result_to_the_last_bit():
    first, other = run(Linear, seed=3), run(Linear, seed=4)
    torch.manual_seed(99)  # what was drawn before has no influence
    torch.randn(7)
    assert_same(first, run(Linear, seed=3))
    assert (first.seed, other.seed) == (3, 4)
    assert first.history[0].train_loss != other.history[0].train_loss


# -- what is reported -------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["micro_f1", "roc_auc"])
def test_the_kept_weights_give_the_reported_scores(metric):
    dataset = tiny_dataset(metric=metric)
    result = run(Linear, dataset)
    model = Linear()
    model.load_state_dict(result.state)
    found = evaluate(model, (torch.from_numpy(dataset.x),), torch.from_numpy(dataset.y), dataset.splits[0], metric)
    assert found == {key: getattr(result, key) for key in SCORES}
    assert (result.roc_auc is None) == (metric == "micro_f1")
    assert all(not value.requires_grad and value.device.type == "cpu" for value in result.state.values())


def test_the_kept_epoch_is_that_of_early_stopping():
    result = run(Linear, config=quick(lr=0.3, epochs=60, patience=60))
    best = [
        e.epoch
        for i, e in enumerate(result.history)
        if all(e.val_loss <= o.val_loss and e.val_score >= o.val_score for o in result.history[:i])
    ]
    assert result.best_epoch == best[-1] < result.epochs  # it overfits, so the last epoch is not the best
    kept = result.history[result.best_epoch - 1]
    assert (kept.epoch, kept.val_loss, kept.val_score) == (result.best_epoch, result.val_loss, result.val_score)


def test_learning_lowers_the_loss_and_beats_the_majority_without_restart():
    dataset = tiny_dataset(noise=0.2)
    result = run(Linear, dataset, quick(lr=0.1, epochs=60, max_restarts=3))
    split = dataset.splits[0]
    assert result.history[-1].train_loss < 0.5 * result.history[0].train_loss
    assert result.micro_f1 > majority_share(dataset.y[split.train], dataset.y[split.test])
    assert result.restarts == 0


# -- what has no influence --------------------------------------------------------------------------


def test_labels_of_test_nodes_have_no_influence():
    dataset = tiny_dataset()
    test = dataset.splits[0].test
    swapped = dataset.y.copy()
    swapped[test] = 1 - swapped[test]
    honest, blind = run(Linear, dataset), run(Linear, dataset, y=swapped)
    assert honest.micro_f1 == pytest.approx(1 - blind.micro_f1)
    same = {"micro_f1": 0.0, "macro_f1": 0.0}
    assert_same(dataclasses.replace(honest, **same), dataclasses.replace(blind, **same))


def test_test_labels_decide_neither_restarts_nor_which_attempt_counts():
    """The second attempt is better on validation, the first on every test node: the second counts."""
    dataset = tiny_dataset()
    tempting = dataset.y.copy()
    tempting[dataset.splits[0].test] = 1
    for y, score in ((dataset.y, None), (tempting, 0.0)):
        attempts = in_turn(lambda: Constant((-1.0, 1.0)), Constant)
        result = run(attempts, dataset, quick(epochs=2, max_restarts=1), y=y)
        assert torch.equal(result.state["logits"], torch.tensor([1.0, -1.0]))
        assert result.restarts == 1
        assert score is None or result.micro_f1 == score


def test_labels_of_validation_nodes_choose_but_do_not_teach():
    dataset = tiny_dataset()
    val = dataset.splits[0].val
    swapped = dataset.y.copy()
    swapped[val] = 1 - swapped[val]
    honest, misled = run(Linear, dataset), run(Linear, dataset, y=swapped)
    assert [e.train_loss for e in honest.history] == [e.train_loss for e in misled.history]
    assert honest.history[0].val_loss != misled.history[0].val_loss


def test_nodes_outside_the_split_need_no_label():
    dataset = tiny_dataset()
    split = dataset.splits[0]
    smaller = Split(split.train[2:], split.val, split.test)
    unlabelled = dataset.y.copy()
    unlabelled[split.train[:2]] = -1
    assert_same(run(Linear, dataset, split=smaller), run(Linear, dataset, split=smaller, y=unlabelled))


# -- epochs and attempts ----------------------------------------------------------------------------


def test_progress_is_called_with_every_epoch_as_it_happens():
    seen: list[Epoch] = []
    result = run(Linear, config=quick(epochs=3), progress=seen.append)
    assert seen == result.history
    assert [e.epoch for e in seen] == [1, 2, 3]
    seen.clear()
    result = run(Constant, config=quick(epochs=2, max_restarts=2), progress=seen.append)
    assert [(e.attempt, e.epoch) for e in seen] == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert seen == result.history


@pytest.mark.parametrize("allowed", [0, 3])
@pytest.mark.parametrize("metric", ["micro_f1", "roc_auc"])
def test_a_model_that_learns_nothing_restarts_with_other_seeds(allowed, metric):
    seeds = []

    def build():
        seeds.append(torch.initial_seed())
        return Constant()

    result = run(build, tiny_dataset(metric=metric), quick(epochs=2, max_restarts=allowed))
    assert result.restarts == allowed
    assert len(set(seeds[-allowed - 1 :])) == allowed + 1
    assert result.epochs == 2 * (allowed + 1)
    if metric == "roc_auc":
        assert (result.val_score, result.roc_auc) == (0.5, 0.5)


@pytest.mark.parametrize("epoch", [1, 4])
def test_divergence_in_every_attempt_is_an_error_that_names_epoch_and_learning_rate(epoch):
    built = count()

    def build():
        next(built)
        return Diverging(epoch)

    with pytest.raises(AsgatError, match=rf"epoch {epoch}: the loss is nan.*lr is 0\.125"):
        run(build, config=quick(lr=0.125, max_restarts=2))
    assert next(built) == 3


def test_a_model_that_diverges_once_recovers():
    result = run(in_turn(lambda: Diverging(3), Linear), tiny_dataset(noise=0.2), quick(lr=0.1, max_restarts=3))
    assert result.restarts == 1
    assert result.val_score > 0.9
    assert [e.epoch for e in result.history if e.attempt == 0] == [1, 2]
    assert np.isfinite([[e.train_loss, e.val_loss] for e in result.history]).all()


def test_divergence_on_validation_alone_and_by_huge_features():
    class BadOutside(Linear):
        def forward(self, x):
            return super().forward(x) * (1.0 if self.training else float("inf"))

    with pytest.raises(AsgatError, match=r"epoch 1.* on validation (nan|inf)"):
        run(BadOutside, config=quick())
    dataset = tiny_dataset()
    with pytest.raises(AsgatError, match="diverged"):
        run(Linear, dataclasses.replace(dataset, x=dataset.x * np.float32(1e38)))


# -- many runs --------------------------------------------------------------------------------------

MIXED = [{}, {"lr": 0.1}, {"dropout": 0.2}, {"weight_decay": 0.02, "dropout": 0.0}, {"lr": 0.1, "dropout": 0.1}]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("model", ["asgat-cheb", "asgat-plus", "asgat-deep", "gcn"])
def test_a_run_does_not_depend_on_those_before_it(model, dtype):
    chosen = jobs(model, MIXED, **{"epochs": 12, "patience": 3, "hidden": 6, "form": "table"} if model != "gcn" else {})
    results = train_all(model, chosen, dtype)
    for one, job in zip(results, chosen, strict=True):
        assert_same(one, train_all(model, [job], dtype)[0])


def test_restarts_of_a_run_disturb_no_other():
    # With a learning rate this small nothing is learned, so that runs restart, some more often than others.
    rates = [{"lr": lr} for lr in (1e-6, 0.05, 1e-3)]
    chosen = jobs("asgat-cheb", rates, epochs=8, patience=4, max_restarts=2, dropout=0.3)
    results = train_all("asgat-cheb", chosen)
    for one, job in zip(results, chosen, strict=True):
        assert_same(one, train_all("asgat-cheb", [job])[0])
    assert len({result.restarts for result in results}) > 1


def test_a_run_that_diverges_disturbs_no_other():
    chosen = jobs("asgat-cheb", [{}, {"lr": 1e200}, {"lr": 0.05}], epochs=15)
    first, wild, third = train_all("asgat-cheb", chosen)
    assert_same(first, train_all("asgat-cheb", chosen[:1])[0])
    assert_same(third, train_all("asgat-cheb", chosen[2:])[0])
    assert isinstance(wild, DivergedError)
    assert str(wild) == str(train_all("asgat-cheb", chosen[1:2])[0])
    assert "lr is 1e+200" in str(wild)


def test_progress_names_the_job_and_every_run_has_its_seconds():
    seen: dict[int, list[Epoch]] = {0: [], 1: [], 2: []}
    chosen = jobs("asgat-cheb", [{}, {"lr": 1e-9}, {"lr": 0.05}], epochs=12, max_restarts=1)
    results = train_all("asgat-cheb", chosen, progress=lambda job, epoch: seen[job.run].append(epoch))
    assert [result.history for result in results] == list(seen.values())
    assert all(result.seconds > 0 for result in results)


def test_one_split_without_validation_nodes_is_refused_before_training():
    first, second = jobs("asgat-cheb", [{}, {}])
    empty = Split(second.split.train, second.split.val[:0], second.split.test)
    with pytest.raises(AsgatError, match="no validation nodes"):
        train_all("asgat-cheb", [first, Job(empty, 0, second.config)], progress=lambda *_: pytest.fail("trained"))


def test_settings_of_runs_may_differ():
    mixed = jobs("gcn", [{"epochs": 2}, {"epochs": 3, "hidden": 9}])
    assert [result.epochs for result in train_all("gcn", mixed)] == [2, 3]


# -- ensembles --------------------------------------------------------------------------------------


def test_members_of_an_ensemble_are_trained_as_if_they_were_alone():
    data = small_dataset()
    config = settings("asgat-plus", form="table", members=3, epochs=8, order=4, dropout=0.2)
    task = make_task("asgat-plus", config, torch.float32)
    whole = train(task.build, task.inputs, task.y, data.splits[0], config, 5)
    one = config.replace(members=1)
    apart = [train(task.build, task.inputs, task.y, data.splits[0], one, member_seed(5, i)) for i in range(3)]
    assert len({result.val_loss for result in apart}) == 3
    for i, alone in enumerate(apart):
        own = {n.removeprefix(f"members.{i}."): v for n, v in whole.state.items() if n.startswith(f"members.{i}.")}
        assert own.keys() == alone.state.keys()
        assert all(torch.equal(own[name], value) for name, value in alone.state.items())
    assert whole.epochs == len(whole.history) == sum(result.epochs for result in apart)
    assert [e.attempt for e in whole.history] == [i for i, result in enumerate(apart) for _ in result.history]
    net = task.build(config)
    net.load_state_dict(whole.state)
    found = evaluate(net, task.inputs, task.y, data.splits[0], "micro_f1")
    assert found == {key: getattr(whole, key) for key in SCORES}


def test_an_ensemble_of_which_a_member_diverged_diverged():
    chosen = jobs("asgat-plus", [{}, {"lr": 1e200}], members=2, epochs=4)
    calm, wild = train_all("asgat-plus", chosen)
    assert isinstance(calm, RunResult)
    assert isinstance(wild, DivergedError)


# -- on a GPU ---------------------------------------------------------------------------------------


@needs_gpu
def test_recorded_epochs_are_those_of_the_cpu():
    """Without dropout: up to rounding the same losses."""
    chosen = jobs("asgat-plus", [{}, {"lr": 0.05}, {"weight_decay": 0.02}], dropout=0.0)
    found = train_all("asgat-plus", chosen, device="cuda")
    for one, other in zip(found, train_all("asgat-plus", chosen), strict=True):
        for a, b in zip(one.history[:3], other.history[:3], strict=True):
            assert a.train_loss == pytest.approx(b.train_loss, abs=1e-9)
            assert a.val_loss == pytest.approx(b.val_loss, abs=1e-9)


@needs_gpu
def test_recorded_epochs_with_dropout_repeat_themselves():
    chosen = jobs("asgat-plus", [{"dropout": 0.5}], epochs=20)
    first, second = (train_all("asgat-plus", chosen, torch.float64, device="cuda")[0] for _ in range(2))
    assert len({epoch.train_loss for epoch in first.history}) == len(first.history), "every replay draws other numbers"
    for one, other in zip(first.history, second.history, strict=True):
        assert one.train_loss == pytest.approx(other.train_loss, abs=1e-9)


@needs_gpu
def test_runs_learn_on_cuda():
    chosen = jobs("asgat-plus", [{}] * 4, epochs=60, patience=40, lr=0.05)
    found = train_all("asgat-plus", chosen, torch.float32, device="cuda")
    assert np.mean([result.val_score for result in found]) > 0.7


# -- pauses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["gcn", "asgat-plus"])
def test_a_paused_run_goes_on_as_if_it_had_never_stopped(model):
    """One run, or two of which one ends before the other."""
    chosen = jobs(model, [{"dropout": 0.5}, {"dropout": 0.2}] if model == "asgat-plus" else [{}], epochs=20)
    task = make_task(model, chosen[0].config)
    whole = [Run(job, 0.0) for job in chosen]
    list(train_runs(task, whole))
    runs, snapshots = [Run(job, 0.0) for job in chosen], dict[int, State]()

    def train_until(epochs):
        return list(train_runs(task, runs, paused=lambda run: len(run.history) >= epochs, snapshots=snapshots))

    for limit in (3, 3, 8, 99):
        ended = train_until(limit)
        assert {len(run.history) for run in runs if not run.finished} <= {limit}
        assert set(snapshots) == {place for place, run in enumerate(runs) if not run.finished}
    assert len(ended) == len(runs)
    for one, other in zip(runs, whole, strict=True):
        assert_same(one.outcome(), other.outcome())
