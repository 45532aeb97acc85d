import numpy as np
import pytest
import torch
from tests.training.small import jobs, problem, settings, small_dataset

from asgat.errors import AsgatError
from asgat.nn.registry import make_config
from asgat.tables import TableOperator
from asgat.training.batched import check_configs, run_batched, runs_at_once, train_batched
from asgat.training.batched import together as runs_together
from asgat.training.batched_step import Job
from asgat.training.runner import run
from asgat.training.trainer import DivergedError, RunResult, train_run

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
MIXED = [{}, {"lr": 0.05}, {"dropout": 0.2}, {"weight_decay": 0.02, "dropout": 0.0}, {"lr": 0.05, "dropout": 0.1}, {}]


def alone(model, job, metric="micro_f1"):
    build, inputs, y = problem(model, job.config)
    return train_run(build, inputs, y, job.split, job.config, job.seed, metric)


def together(model, chosen, metric="micro_f1", **options):
    build, inputs, y = problem(model, chosen[0].config)
    return train_batched(build, inputs, y, chosen, metric, **options)


def assert_same(batched, single):
    assert isinstance(batched, RunResult)
    a, b = (
        np.array([(e.attempt, e.epoch, e.train_loss, e.val_loss, e.val_score) for e in r.history])
        for r in (batched, single)
    )
    assert a.shape == b.shape
    assert np.abs(a - b).max() <= 1e-9
    for name in ("seed", "epochs", "best_epoch", "restarts", "micro_f1", "macro_f1", "roc_auc", "val_score"):
        assert getattr(batched, name) == getattr(single, name), name
    assert batched.state.keys() == single.state.keys()
    for name, value in single.state.items():
        torch.testing.assert_close(batched.state[name], value, rtol=0, atol=1e-9)


# -- the same as alone ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "shared"),
    [
        ("asgat-cheb", {}),
        ("asgat-cheb", {"form": "table", "candidates": 6, "order": 6}),
        ("asgat-plus", {"out_heads": 2}),
        ("asgat-plus", {"mix": True, "jump": True, "adjacency": True, "balanced": True, "form": "table"}),
        ("asgat-plus", {"propagate": True, "alpha": 0.3, "form": "table"}),
        ("asgat-plus", {"members": 3, "gain": 0.5}),
        # Without it, biases whose gradient is rounding alone: Adam with weight decay blows that up. See MLPFilter.
        ("asgat-exact", {"filter_activation": "tanh"}),
        ("asgat-heat", {"heat_scale": 2.0}),
        ("asgat-cheb", {"form": "table", "exact_sums": True}),
        ("gcn", {}),
    ],
    ids=str,
)
def test_losses_and_figures_are_those_of_the_single_run(model, shared):
    if model == "gcn":  # one after the other
        config = make_config("gcn", epochs=8, hidden=4, max_restarts=0)
        chosen = [Job(small_dataset().splits[i], i, config) for i in range(2)]
    else:
        chosen = jobs(model, MIXED, **shared)
    stopped_early = 0
    for batched, job in zip(together(model, chosen), chosen, strict=True):
        single = alone(model, job)
        assert_same(batched, single)
        stopped_early += single.epochs < job.config.epochs
    if shared.get("form") == "table":
        assert isinstance(problem(model, chosen[0].config)[1][1], TableOperator)
    if model == "asgat-cheb":
        assert stopped_early  # some leave the batch before others


def test_roc_auc():
    chosen = jobs("asgat-cheb", [{}, {"lr": 0.05}], epochs=12)
    for batched, job in zip(together("asgat-cheb", chosen, "roc_auc"), chosen, strict=True):
        assert_same(batched, alone("asgat-cheb", job, "roc_auc"))
        assert batched.roc_auc is not None


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_however_many_are_trained_at_once(at_once):
    chosen = jobs("asgat-cheb", MIXED, epochs=15)
    pairs = zip(together("asgat-cheb", chosen), together("asgat-cheb", chosen, at_once=at_once), strict=True)
    for whole, parts in pairs:
        assert_same(parts, whole)


def test_restarts_are_those_of_the_single_run():
    # With a learning rate this small nothing is learned, so that runs are started anew, some more often than others.
    chosen = jobs("asgat-cheb", [{"lr": lr} for lr in (1e-6, 0.05, 1e-3, 1e-6, 3e-3)], epochs=10, max_restarts=2)
    results = together("asgat-cheb", chosen)
    for batched, job in zip(results, chosen, strict=True):
        assert_same(batched, alone("asgat-cheb", job))
    assert len({result.restarts for result in results}) > 1


def test_a_run_that_diverges_disturbs_no_other():
    chosen = jobs("asgat-cheb", [{}, {"lr": 1e200}, {"lr": 0.05}], epochs=15)
    calm, wild, quick = together("asgat-cheb", chosen)
    assert_same(calm, alone("asgat-cheb", chosen[0]))
    assert_same(quick, alone("asgat-cheb", chosen[2]))
    assert isinstance(wild, DivergedError)
    with pytest.raises(DivergedError) as single:
        alone("asgat-cheb", chosen[1])
    assert str(wild).split(":")[0] == str(single.value).split(":")[0]  # at the same epoch
    assert "lr is 1e+200" in str(wild)


def test_seconds_add_up_and_progress_counts_to_the_end():
    seen = []
    chosen = jobs("asgat-cheb", [{}, {"lr": 1e-9}, {"lr": 0.05}], epochs=12, max_restarts=1)
    results = together("asgat-cheb", chosen, progress=lambda done, total: seen.append((done, total)))
    assert all(result.seconds > 0 for result in results)
    assert seen[-1] == (3, 3)
    assert seen == sorted(seen)


def test_a_split_without_validation_nodes_is_refused():
    (job,) = jobs("asgat-cheb", [{}])
    empty = type(job.split)(job.split.train, job.split.val[:0], job.split.test)
    with pytest.raises(AsgatError, match="no validation nodes"):
        together("asgat-cheb", [Job(empty, 0, job.config)])


def test_in_single_precision_means_agree():
    dataset = small_dataset(splits=1)
    config = settings("asgat-cheb", epochs=40, lr=0.05)
    (batched,) = run_batched(dataset, "asgat-cheb", [config], runs=range(12))
    single = run(dataset, "asgat-cheb", config, runs=range(12))
    spread = max(single["micro_f1"]["std"], 0.05)
    assert abs(batched["micro_f1"]["mean"] - single["micro_f1"]["mean"]) <= spread
    for row, alone_row in zip(batched["rows"], single["rows"], strict=True):
        assert row["seed"] == alone_row["seed"]


# -- a data set -------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["asgat-cheb", "asgat-arma", "mlp"])
def test_results_are_those_of_run(model):
    dataset = small_dataset(splits=3)
    if model == "mlp":
        configs = [make_config("mlp", epochs=6, lr=lr, hidden=4, max_restarts=0) for lr in (0.01, 0.05)]
    else:
        configs = [settings(model, epochs=6, lr=lr) for lr in (0.01, 0.05)]
    results = run_batched(dataset, model, configs, runs=[0, 2], seed=5)
    for config, result in zip(configs, results, strict=True):
        expected = run(dataset, model, config, runs=[0, 2], seed=5)
        assert result.keys() == expected.keys()
        changing = {"rows", "peak_memory_mb", "ms_per_epoch", "micro_f1", "macro_f1", "val_micro_f1", "fallback"}
        changing |= {"mean_bound", "max_bound", "certified_share"}
        assert {k: v for k, v in result.items() if k not in changing} == {
            k: v for k, v in expected.items() if k not in changing
        }
        for row, single in zip(result["rows"], expected["rows"], strict=True):
            assert row.keys() == single.keys()
            assert row["val_loss"] == pytest.approx(single["val_loss"], rel=1e-3)
            assert row["run"] == single["run"]


def figures(result):
    own = ("seconds", "peak_memory_mb")
    return [{name: value for name, value in row.items() if name not in own} for row in result["rows"]]


def test_a_directory_of_runs_trained_together_goes_on_with_the_same_numbers(tmp_path):
    dataset, config = small_dataset(splits=4), settings("asgat-cheb", epochs=12, dropout=0.3)
    whole = run(dataset, "asgat-cheb", config, range(4), together=runs_together)
    alone = run(dataset, "asgat-cheb", config, range(4))
    for row, single in zip(whole["rows"], alone["rows"], strict=True):
        assert (row["run"], row["seed"]) == (single["run"], single["seed"])
        assert row["val_loss"] == pytest.approx(single["val_loss"], rel=1e-3)

    handed: list[int] = []

    def stop(i, state, inputs):
        if len(handed) == 2:
            raise KeyboardInterrupt
        handed.append(i)

    def train_it(finished):
        return run(dataset, "asgat-cheb", config, range(4), out=tmp_path, finished=finished, together=runs_together)

    with pytest.raises(KeyboardInterrupt):
        train_it(stop)
    anew: list[int] = []
    assert figures(train_it(lambda i, state, inputs: anew.append(i))) == figures(whole)
    assert sorted(handed + anew) == [0, 1, 2, 3]
    assert len(anew) == 2


def test_a_run_that_diverges_ends_those_trained_with_it():
    config = settings("asgat-cheb", epochs=4, lr=1e200)
    with pytest.raises(DivergedError, match="diverged"):
        run(small_dataset(), "asgat-cheb", config, range(2), together=runs_together)


def test_the_same_configuration_twice():
    config = settings("asgat-cheb", epochs=3)
    first, second = run_batched(small_dataset(), "asgat-cheb", [config, config], runs=[1, 0])
    assert [row["run"] for row in first["rows"]] == [0, 1]
    assert first["micro_f1"] == second["micro_f1"]
    assert first["finished"]


def test_one_split_many_seeds():
    dataset = small_dataset(splits=1)
    (result,) = run_batched(dataset, "asgat-cheb", [settings("asgat-cheb", epochs=3)], runs=range(3), seed=7)
    assert [row["seed"] for row in result["rows"]] == [7, 8, 9]
    assert result["finished"]


def test_a_diverging_configuration_is_not_finished_and_raised_alone():
    dataset = small_dataset()
    configs = [settings("asgat-cheb", epochs=4, lr=lr) for lr in (0.01, 1e200)]
    calm, wild = run_batched(dataset, "asgat-cheb", configs, runs=[0, 1])
    assert calm["finished"]
    assert not wild["finished"]
    assert wild["rows"] == []
    with pytest.raises(AsgatError, match="diverged"):
        run_batched(dataset, "asgat-cheb", configs[1:], runs=[0])


def test_settings_that_are_not_the_runs_own_must_be_equal():
    with pytest.raises(AsgatError, match="differ in lr, weight_decay, dropout only, but these differ in hidden, k;"):
        check_configs([settings("asgat-cheb"), settings("asgat-cheb", hidden=9, k=3, lr=0.3)])
    with pytest.raises(AsgatError, match="no configuration"):
        check_configs([])
    check_configs([settings("asgat-cheb", lr=0.1), settings("asgat-cheb", dropout=0.1, weight_decay=0.1)])


def test_missing_splits_are_refused():
    with pytest.raises(AsgatError, match="there is no split 9"):
        run_batched(small_dataset(), "asgat-cheb", [settings("asgat-cheb")], runs=[0, 9])


def test_as_many_at_once_as_memory_allows(monkeypatch):
    dataset, config = small_dataset(), settings("asgat-cheb")
    monkeypatch.setattr("asgat.training.batched.available_memory", lambda device: 0)
    assert runs_at_once(dataset, config, torch.device("cpu")) == 1
    monkeypatch.setattr("asgat.training.batched.available_memory", lambda device: 1 << 40)
    at_once = runs_at_once(dataset, config, torch.device("cpu"))
    assert at_once is not None
    assert at_once > 100
    monkeypatch.setattr("asgat.training.batched.available_memory", lambda device: None)
    assert runs_at_once(dataset, config, torch.device("cpu")) is None


# -- on a GPU ---------------------------------------------------------------------------------------


@needs_gpu
def test_recorded_epochs_are_those_of_the_cpu():
    """Without dropout, whose numbers a recording has drawn some of before its first epoch."""
    chosen = jobs("asgat-plus", [{}, {"lr": 0.05}, {"weight_decay": 0.02}], dropout=0.0)
    build, inputs, y = problem("asgat-plus", chosen[0].config, "cuda")
    for batched, job in zip(train_batched(build, inputs, y, chosen), chosen, strict=True):
        assert isinstance(batched, RunResult)
        single = alone("asgat-plus", job)
        for a, b in zip(batched.history[:3], single.history[:3], strict=True):
            assert a.train_loss == pytest.approx(b.train_loss, abs=1e-9)
            assert a.val_loss == pytest.approx(b.val_loss, abs=1e-9)


@needs_gpu
def test_a_batch_on_cuda_learns():
    dataset = small_dataset(noise=0.1)
    config = settings("asgat-plus", epochs=60, patience=40, lr=0.05)
    (result,) = run_batched(dataset, "asgat-plus", [config], runs=range(4), device="cuda")
    assert result["val_micro_f1"] > 0.8
    assert result["finished"]
