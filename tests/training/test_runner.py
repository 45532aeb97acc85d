"""All runs of a model on a data set: which splits and seeds, what is written, and what a kill leaves."""

import dataclasses
import json
import os
import signal
import tomllib
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from tests.training.small import settings, small_dataset
from tests.training.tiny import quick, tiny_dataset

from asgat.data import load_dataset
from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.nn.registry import make_config, model_spec
from asgat.training.inputs import make_inputs
from asgat.training.loop import train
from asgat.training.objective import evaluate
from asgat.training.run_directory import RunDirectory, load_model
from asgat.training.run_files import UNFINISHED
from asgat.training.run_state import DivergedError
from asgat.training.runner import Callbacks, run

CPU = torch.device("cpu")
KEYS = {"dataset", "model", "config", "seed", "micro_f1", "macro_f1", "val_micro_f1", "epochs", "ms_per_epoch"}
KEYS |= {"peak_memory_mb", "certified_share", "mean_bound", "max_bound", "options", "fallback", "restarts", "versions"}


def timeless(result):
    """A result without what depends on the machine, as it is read from its file."""
    plain = json.loads(json.dumps(result, allow_nan=False))
    plain.pop("model_sha256", None)
    for part in (plain, *plain["rows"]):
        for key in ("ms_per_epoch", "peak_memory_mb", "seconds"):
            part.pop(key, None)
    return plain


def figures(row):
    return {k: row[k] for k in ("seed", "epochs", "best_epoch", "val_loss", "val_score", "micro_f1", "macro_f1")}


def directly(dataset, config, split, seed):
    """The same run without the runner."""
    inputs, y = (torch.from_numpy(dataset.x),), torch.from_numpy(dataset.y)
    return train(lambda own: model_spec("mlp").build(own, 3, 2), inputs, y, split, config, seed, dataset.metric)


def read_model(folder):
    """Tensors and metadata of the saved model, without the package."""
    with safe_open(str(folder / "model.safetensors"), framework="np") as file:
        metadata = {key: json.loads(text) for key, text in file.metadata().items()}
        return {key: file.get_tensor(key) for key in file.keys()}, metadata  # noqa: SIM118


def progress_of(seen):
    return Callbacks(progress=lambda i, epoch: seen.append((i, epoch.epoch)))


# -- which split and which seed ---------------------------------------------------------------------


@pytest.mark.parametrize(("splits", "runs", "seeds"), [(3, [0, 2], [7, 7]), (1, [0, 4], [7, 11])])
def test_run_i_is_split_i_or_with_a_single_split_seed_n_plus_i(splits, runs, seeds):
    dataset, config = tiny_dataset(splits=splits), quick(epochs=5)
    result = run(dataset, "mlp", config, runs, seed=7)
    assert [row["run"] for row in result["rows"]] == runs
    assert [row["seed"] for row in result["rows"]] == seeds
    for row, seed in zip(result["rows"], seeds, strict=True):
        split = dataset.splits[row["run"] if splits > 1 else 0]
        assert figures(row) == figures(vars(directly(dataset, config, split, seed)))
    assert result["rows"][0]["val_loss"] != result["rows"][1]["val_loss"]


@pytest.mark.parametrize("model", ["mlp", "asgat-cheb"])
def test_a_run_does_not_depend_on_the_runs_it_is_trained_with(model):
    dataset, config = small_dataset(), settings(model, epochs=5, dropout=0.3)
    alone, after = (run(dataset, model, config, runs)["rows"][-1] for runs in ([2], [2, 0, 1, 2]))
    assert figures(alone) == figures(after)


@pytest.mark.parametrize("bad", [3, 99, -1])
def test_a_split_that_does_not_exist_is_an_error(tmp_path, bad):
    with pytest.raises(AsgatError, match=rf"tiny has splits 0 to 2; there is no split {bad}"):
        run(tiny_dataset(splits=3), "mlp", quick(), [0, bad], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_single_split_has_as_many_runs_as_wanted_but_no_negative_one():
    assert run(tiny_dataset(splits=1), "mlp", quick(epochs=1), [25])["rows"][0]["seed"] == 25
    with pytest.raises(AsgatError, match="-1"):
        run(tiny_dataset(splits=1), "mlp", quick(epochs=1), [-1])


@pytest.mark.parametrize(
    ("metric", "part", "message"),
    [
        ("micro_f1", "test", "Split 1 of tiny has no test nodes"),
        ("micro_f1", "val", "no validation nodes"),
        ("roc_auc", "test", "test nodes of split 1 of tiny are of one class"),
        ("roc_auc", "val", "one class"),
    ],
)
def test_a_split_without_scores_is_an_error(metric, part, message):
    dataset = tiny_dataset(splits=2, metric=metric)
    split = dataset.splits[1]
    nodes = split.parts()[part]
    rest = nodes[dataset.y[nodes] == 0] if metric == "roc_auc" else nodes[:0]
    poor = Split(**{**split.parts(), part: rest})
    with pytest.raises(AsgatError, match=message):
        run(dataclasses.replace(dataset, splits=(dataset.splits[0], poor)), "mlp", quick(epochs=1), [1])


def test_an_unknown_model_is_an_error(tmp_path):
    with pytest.raises(AsgatError, match="Did you mean 'gcn'"):
        run(tiny_dataset(), "gcnn", quick(), [0], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("model", ["mlp", "asgat-cheb"])
def test_a_run_that_diverges_is_an_error(model):
    with pytest.raises(DivergedError, match="diverged"):
        run(small_dataset(), model, settings(model, epochs=50, lr=1e30), range(2))


# -- the result -------------------------------------------------------------------------------------


def test_the_result_has_every_promised_key(tmp_path):
    config = make_config("asgat-cheb", epochs=2, hidden=4, max_restarts=0)
    result = run(load_dataset("karate"), "asgat-cheb", config, [0, 1], seed=3, out=tmp_path)
    assert result.keys() >= KEYS
    written = json.loads((tmp_path / "result.json").read_text())
    assert written.keys() - result.keys() == {"model_sha256"}
    assert timeless(written) == timeless(result)
    assert (result["dataset"], result["model"], result["seed"]) == ("karate", "asgat-cheb", 3)
    assert result["config"] == config.to_dict()
    assert result["finished"] is True
    assert (result["certified_share"], result["mean_bound"], result["max_bound"]) == (1.0, 0.0, 0.0)
    assert (result["fallback"], result["options"], result["restarts"], result["epochs"]) == (None, {}, 0, 2)
    assert result["ms_per_epoch"] > 0


def test_options_are_named_trained_and_saved(tmp_path):
    on = {"mix": True, "adjacency": True, "jump": True, "balanced": True}
    config = make_config("asgat-plus", hidden=4, epochs=3, max_restarts=0, **on)
    karate = load_dataset("karate")
    result = run(karate, "asgat-plus", config, [0], out=tmp_path)
    assert result["options"] == {"root": True, **on}
    model, name, loaded = load_model(tmp_path)
    assert (name, loaded) == ("asgat-plus", config)
    inputs = make_inputs(karate, name, config, CPU)
    assert inputs[0].shape == (34, karate.num_features + 34)
    found = evaluate(model, inputs, torch.from_numpy(karate.y), karate.splits[0], "micro_f1")
    assert found["val_loss"] == pytest.approx(result["rows"][0]["val_loss"], rel=1e-5)


# -- callbacks --------------------------------------------------------------------------------------


def test_progress_and_counts_are_reported():
    seen: list[Any] = []
    counts: list[Any] = []
    callbacks = Callbacks(
        progress=lambda i, epoch: seen.append((i, epoch.epoch)),
        counted=lambda done, total: counts.append((done, total)),
        built=lambda needed: seen.append(("built", needed)),
    )
    run(tiny_dataset(), "mlp", quick(epochs=2), [0, 2], callbacks=callbacks)
    assert seen == [("built", 0), (0, 1), (0, 2), (2, 1), (2, 2)]
    assert counts == [(1, 2), (2, 2)]


@pytest.mark.parametrize("model", ["mlp", "asgat-cheb"])
def test_a_finished_run_is_handed_over_before_it_counts(tmp_path, model):
    data, config = small_dataset(), settings(model, epochs=3)
    seen: list[Any] = []

    def finished(i, state, inputs):
        written = json.loads((tmp_path / "result.json").read_text())["rows"] if seen else []
        assert [row["run"] for row in written] == sorted(run for run, _ in seen)
        net = model_spec(model).make(config, data.num_features, data.num_classes, data.num_nodes)
        net.load_state_dict(state)
        scores = evaluate(net, inputs, torch.from_numpy(data.y), data.splits[i], "micro_f1")
        seen.append((i, scores["micro_f1"]))

    result = run(data, model, config, [0, 2], out=tmp_path, callbacks=Callbacks(finished=finished))
    assert sorted(seen) == [(row["run"], row["micro_f1"]) for row in result["rows"]]
    run(data, model, config, [0, 2], out=tmp_path, callbacks=Callbacks(finished=finished))
    assert len(seen) == 2, "a run that is done is not handed over again"


# -- the run directory ------------------------------------------------------------------------------


def test_everything_is_readable_without_the_package(tmp_path):
    dataset, config = tiny_dataset(), quick(epochs=3)
    result = run(dataset, "mlp", config, [0, 1], seed=5, out=tmp_path)
    names = [".lock", "config.toml", "metrics.jsonl", "model.safetensors", "result.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    written = tomllib.loads((tmp_path / "config.toml").read_text())
    assert written == {k: result[k] for k in ("dataset", "model", "protocol", "seed", "runs", "data", "config")}
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    expected = [(i, 0, epoch) for i in (0, 1) for epoch in (1, 2, 3)]
    assert [(line["run"], line["attempt"], line["epoch"]) for line in lines] == expected
    assert {"train_loss", "val_loss", "val_score"} <= lines[0].keys()
    tensors, metadata = read_model(tmp_path)
    assert metadata.items() >= {"dataset": "tiny", "in_channels": 3, "out_channels": 2, "seed": 5}.items()
    assert tensors
    assert all(np.isfinite(value).all() for value in tensors.values())


def test_the_saved_model_is_the_best_on_validation_and_gives_its_runs_scores_again(tmp_path):
    dataset = tiny_dataset()
    result = run(dataset, "mlp", quick(epochs=10), range(3), out=tmp_path)
    number = read_model(tmp_path)[1]["run"]
    row = result["rows"][number]
    assert row["val_score"] == max(r["val_score"] for r in result["rows"])
    model, name, config = load_model(tmp_path)
    inputs = make_inputs(dataset, name, config, CPU)
    found = evaluate(model, inputs, torch.from_numpy(dataset.y), dataset.splits[number], "micro_f1")
    assert found.items() <= row.items()


def test_nothing_is_written_without_a_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(tiny_dataset(), "mlp", quick(epochs=1), [0])
    assert list(tmp_path.iterdir()) == []


# -- killed and started again -----------------------------------------------------------------------


class Killed(BaseException):
    """What no part of the package catches."""


def kill_in_second_run(monkeypatch, point):
    """Arranges that the second of three runs dies at the given point; returns the callbacks to run with."""
    if point == "progress":

        def progress(i, epoch):
            if (i, epoch.epoch) == (1, 3):
                raise Killed

        return Callbacks(progress=progress)
    name = point.removeprefix("after ")
    original, calls = getattr(RunDirectory, name), []

    def dies(self, *args):
        calls.append(args)
        if point.startswith("after "):
            original(self, *args)
        if len(calls) == 2:
            raise Killed
        if not point.startswith("after "):
            original(self, *args)

    monkeypatch.setattr(RunDirectory, name, dies)
    return None


def assert_same_directories(one, other):
    """Apart from times, and the checksum of a model file that holds the same tensors."""
    for name in ("config.toml", "metrics.jsonl"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    results = [timeless(json.loads((folder / "result.json").read_text())) for folder in (one, other)]
    assert results[0] == results[1]
    (tensors, metadata), (expected, its_metadata) = read_model(one), read_model(other)
    assert metadata == its_metadata
    assert tensors.keys() == expected.keys()
    assert all(np.array_equal(tensors[key], expected[key]) for key in expected)
    assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in other.iterdir())
    load_model(one)


@pytest.mark.parametrize("point", ["progress", "add_run", "after add_run", "write_result", "after write_result"])
@pytest.mark.parametrize("splits", [1, 3])
def test_a_killed_command_ends_with_the_same_numbers(tmp_path, monkeypatch, point, splits):
    dataset, config = tiny_dataset(splits), quick(epochs=5)
    undisturbed = run(dataset, "mlp", config, range(3), out=tmp_path / "whole")
    with monkeypatch.context() as patch:
        callbacks = kill_in_second_run(patch, point)
        with pytest.raises(Killed):
            run(dataset, "mlp", config, range(3), out=tmp_path / "cut", callbacks=callbacks)
    finished = 2 if point == "after write_result" else 1
    between = json.loads((tmp_path / "cut" / "result.json").read_text())
    assert (len(between["rows"]), between["finished"]) == (finished, False)
    load_model(tmp_path / "cut")
    seen: list[Any] = []
    resumed = run(dataset, "mlp", config, range(3), out=tmp_path / "cut", callbacks=progress_of(seen))
    assert {i for i, _ in seen} == set(range(finished, 3))
    assert timeless(resumed) == timeless(undisturbed)
    assert_same_directories(tmp_path / "cut", tmp_path / "whole")


@pytest.mark.parametrize(
    ("model", "changes"), [("mlp", {}), ("asgat-cheb", {}), ("asgat-plus", {"members": 2, "max_restarts": 1})], ids=str
)
def test_unfinished_runs_go_on_from_the_epoch_that_was_saved(tmp_path, monkeypatch, model, changes):
    data, config = small_dataset(3), settings(model, epochs=8, patience=5, dropout=0.4, **changes)
    whole = run(data, model, config, range(3), out=tmp_path / "whole")
    monkeypatch.setattr("asgat.training.checkpoint.SECONDS", 0.0)
    for deadline in (5, 7):
        seen: list[Any] = []

        def progress(i, epoch, seen=seen, deadline=deadline):
            seen.append((i, epoch.epoch))
            if epoch.epoch == deadline:
                raise Killed

        with pytest.raises(Killed):
            run(data, model, config, range(3), out=tmp_path / "cut", callbacks=Callbacks(progress=progress))
        assert (tmp_path / "cut" / UNFINISHED).exists()
    assert seen[0] == (0, 5), "it went on after the epoch that was saved"
    resumed = run(data, model, config, range(3), out=tmp_path / "cut")
    assert timeless(resumed) == timeless(whole)
    assert_same_directories(tmp_path / "cut", tmp_path / "whole")


def test_ctrl_c_in_the_last_epoch_leaves_a_finished_directory_and_stops(tmp_path):
    """A command that would now train another model must not."""
    dataset, config = tiny_dataset(), quick(epochs=3)

    def progress(i, epoch):
        if epoch.epoch == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(dataset, "mlp", config, [0], out=tmp_path, callbacks=Callbacks(progress=progress))
    assert RunDirectory(tmp_path).read_result()["finished"]
    assert not (tmp_path / UNFINISHED).exists()


def test_a_stale_unfinished_file_of_finished_runs_is_removed(tmp_path):
    dataset, config = tiny_dataset(), quick(epochs=2)
    first = run(dataset, "mlp", config, [0], out=tmp_path)
    (tmp_path / UNFINISHED).write_bytes(b"left by a process killed after its last result")
    assert timeless(run(dataset, "mlp", config, [0], out=tmp_path)) == timeless(first)
    assert not (tmp_path / UNFINISHED).exists()


@pytest.mark.parametrize("stopped", ["in the middle", "after a run", "at the end"])
@pytest.mark.parametrize("part", ["graph", "x", "y", "splits"])
def test_data_that_changed_since_is_refused(tmp_path, monkeypatch, part, stopped):
    data, other, config = small_dataset(2), small_dataset(2, noise=0.3), settings("mlp", epochs=4)
    changes: dict[str, Any] = {
        "graph": data.graph.with_self_loops("add"),
        "x": other.x,
        "y": 1 - data.y,
        "splits": data.splits[::-1],
    }
    changed = dataclasses.replace(data, **{part: changes[part]})
    monkeypatch.setattr("asgat.training.checkpoint.SECONDS", 0.0)
    last = {"in the middle": (0, 3), "after a run": (1, 1), "at the end": None}[stopped]

    def progress(i, epoch):
        if (i, epoch.epoch) == last:
            raise Killed

    if last is None:
        run(data, "mlp", config, [0, 1], out=tmp_path)
    else:
        with pytest.raises(Killed):
            run(data, "mlp", config, [0, 1], out=tmp_path, callbacks=Callbacks(progress=progress))
    with pytest.raises(AsgatError, match=r"other data: graph, features, labels or splits have changed.*--fresh"):
        run(changed, "mlp", config, [0, 1], out=tmp_path)
    fresh = run(changed, "mlp", config, [0, 1], out=tmp_path, fresh=True)
    assert timeless(fresh) == timeless(run(changed, "mlp", config, [0, 1]))


@pytest.mark.parametrize("model", ["mlp", "asgat-cheb"])
def test_a_finished_directory_is_not_trained_again_unless_asked(tmp_path, model):
    dataset, config = small_dataset(3), settings(model, epochs=2)
    first = run(dataset, model, config, range(3), out=tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    never = Callbacks(progress=lambda *_: pytest.fail("trained again"), building=lambda *_: pytest.fail("built again"))
    second = run(dataset, model, config, range(3), out=tmp_path, callbacks=never)
    assert second == json.loads(json.dumps(first))
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    seen: list[Any] = []
    again = run(dataset, model, config, range(3), out=tmp_path, fresh=True, callbacks=progress_of(seen))
    assert {i for i, _ in seen} == {0, 1, 2}
    assert timeless(again) == timeless(first)
