import dataclasses
import json
import tomllib
from typing import Any

import numpy as np
import pytest
import torch
from asgat.training.trainer import RunResult, evaluate, train
from safetensors import safe_open
from tests.training.tiny import quick, tiny_dataset

from asgat.data import load_dataset
from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.nn import ASGAT
from asgat.nn.registry import make_config, model_spec
from asgat.training import runner
from asgat.training.run_directory import RunDirectory, load_model
from asgat.training.runner import make_inputs, run, summarise

RESULT_KEYS = set(
    [
        "dataset",
        "model",
        "config",
        "micro_f1",
        "macro_f1",
        "epochs",
        "ms_per_epoch",
        "peak_memory_mb",
        "val_micro_f1",
        "certified_share",
        "mean_bound",
        "max_bound",
        "options",
        "fallback",
        "restarts",
        "seed",
        "versions",
    ]
)
CPU = torch.device("cpu")


def timeless(result):
    """A result without what depends on the machine's mood."""
    plain = json.loads(json.dumps(result, allow_nan=False))
    for part in (plain, *plain["rows"]):
        for key in ("ms_per_epoch", "peak_memory_mb", "seconds"):
            part.pop(key, None)
    return plain


def figures(row):
    return {k: row[k] for k in ("seed", "epochs", "best_epoch", "val_loss", "val_score", "micro_f1", "macro_f1")}


def directly(dataset, config, split, seed):
    """The same run without the runner."""
    inputs, y = (torch.from_numpy(dataset.x),), torch.from_numpy(dataset.y)
    return train(lambda: model_spec("mlp").build(config, 3, 2), inputs, y, split, config, seed, dataset.metric)


def fake_outcome(val_score, mark=0.0, epochs=1, seconds=0.1, restarts=0):
    return RunResult(
        seed=0,
        epochs=epochs,
        best_epoch=1,
        val_loss=1.0,
        val_score=val_score,
        micro_f1=0.5,
        macro_f1=0.5,
        roc_auc=None,
        restarts=restarts,
        seconds=seconds,
        history=[],
        state={"mark": torch.tensor([mark])},
    )


def read_model(folder):
    """Tensors and metadata of the saved model, without the package."""
    with safe_open(str(folder / "model.safetensors"), framework="np") as file:
        metadata = {key: json.loads(text) for key, text in file.metadata().items()}
        return {key: file.get_tensor(key) for key in file.keys()}, metadata  # noqa: SIM118


# -- which split and which seed ---------------------------------------------------------------------


def test_run_i_is_split_i_with_the_given_seed():
    dataset, config = tiny_dataset(splits=3), quick(epochs=5)
    result = run(dataset, "mlp", config, [0, 2], seed=7)
    assert [row["run"] for row in result["rows"]] == [0, 2]
    for row in result["rows"]:
        outcome = directly(dataset, config, dataset.splits[row["run"]], 7)
        assert figures(row) == figures(vars(outcome))
    assert result["rows"][0]["val_loss"] != result["rows"][1]["val_loss"]


def test_with_a_single_split_run_i_is_seed_n_plus_i():
    dataset, config = tiny_dataset(splits=1), quick(epochs=5)
    result = run(dataset, "mlp", config, [0, 4], seed=7)
    assert [row["seed"] for row in result["rows"]] == [7, 11]
    for row in result["rows"]:
        outcome = directly(dataset, config, dataset.splits[0], 7 + row["run"])
        assert figures(row) == figures(vars(outcome))
    again = run(dataset, "mlp", config, [0], seed=11)
    assert figures(again["rows"][0]) == figures(result["rows"][1])


def test_a_run_does_not_depend_on_the_runs_before_it():
    dataset, config = tiny_dataset(), quick(epochs=5)
    alone, after = (run(dataset, "mlp", config, runs)["rows"][-1] for runs in ([2], [0, 1, 2]))
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
def test_a_split_nothing_can_be_said_about_is_an_error(metric, part, message):
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


# -- the result -------------------------------------------------------------------------------------


def test_the_result_has_every_promised_key(tmp_path):
    config = make_config("asgat-cheb", epochs=2, hidden=4, max_restarts=0)
    result = run(load_dataset("karate"), "asgat-cheb", config, [0, 1], seed=3, out=tmp_path)
    assert result.keys() >= RESULT_KEYS
    assert json.loads((tmp_path / "result.json").read_text()) == json.loads(json.dumps(result, allow_nan=False))
    assert (result["dataset"], result["model"], result["seed"]) == ("karate", "asgat-cheb", 3)
    assert result["config"] == config.to_dict()
    assert result["finished"] is True
    assert (result["certified_share"], result["mean_bound"], result["max_bound"]) == (1.0, 0.0, 0.0)
    assert (result["fallback"], result["options"], result["restarts"]) == (None, {}, 0)
    assert result["epochs"] == 2
    assert result["ms_per_epoch"] > 0
    assert result["peak_memory_mb"] > 10
    assert {"asgat", "python", "torch", "numpy"} <= result["versions"].keys()


def test_what_fell_back_to_chebyshev_is_in_the_result(tmp_path):
    config = make_config("asgat-arma", epochs=2, hidden=4, heads=3, max_restarts=0)
    short = config.replace(steps=2)
    result = run(load_dataset("karate"), "asgat-arma", short, [0], out=tmp_path)
    assert (result["rows"][0]["fallback"], result["fallback"]["form"]) == (result["fallback"], "chebyshev")
    assert 1 <= result["fallback"]["heads"] <= 3
    assert result["fallback"]["evaluations"] >= 2
    assert result["fallback"]["residual"] > 1e-4
    assert json.loads((tmp_path / "result.json").read_text())["fallback"] == result["fallback"]
    fine = run(load_dataset("karate"), "asgat-arma", config, [0])
    assert (fine["fallback"], fine["rows"][0]["fallback"]) == (None, None)


def test_fallbacks_of_several_runs_are_one():
    row = {"form": "chebyshev", "heads": 2, "evaluations": 5, "residual": 0.5}
    found = [None, row, {**row, "heads": 1, "residual": 0.75}]
    plain = {**vars(fake_outcome(0.5)), "peak_memory_mb": 1.0}
    rows: list[Any] = [{**plain, "run": i, "fallback": fallback} for i, fallback in enumerate(found)]
    settings = {"config": {}, "runs": [0, 1, 2]}
    joined = {"form": "chebyshev", "heads": 2, "evaluations": 10, "residual": 0.75}
    assert summarise(settings, tiny_dataset(), rows)["fallback"] == joined
    rows.append({**rows[0], "run": 3, "fallback": {**row, "residual": None}})
    assert summarise(settings, tiny_dataset(), rows)["fallback"] == {**joined, "evaluations": 15, "residual": None}
    del rows[0]["fallback"]  # of a run before there were any
    assert summarise(settings, tiny_dataset(), rows[:1])["fallback"] is None


def test_mean_and_standard_deviation_are_those_of_the_runs():
    result = run(tiny_dataset(), "mlp", quick(epochs=4), range(3))
    for score in ("micro_f1", "macro_f1"):
        values = [row[score] for row in result["rows"]]
        assert result[score]["per_run"] == values
        assert result[score]["mean"] == pytest.approx(sum(values) / 3)
        assert result[score]["std"] == pytest.approx(np.sqrt(np.mean(np.square(values)) - np.mean(values) ** 2))
        assert 0 <= result[score]["mean"] <= 1
    assert result["val_micro_f1"] == pytest.approx(np.mean([row["val_score"] for row in result["rows"]]))
    assert "roc_auc" not in result


def test_sums_and_means_of_what_the_runs_took(monkeypatch):
    outcomes = iter(
        [
            fake_outcome(0.5, epochs=10, seconds=1.0, restarts=1),
            fake_outcome(0.7, epochs=30, seconds=1.0, restarts=2),
        ]
    )
    monkeypatch.setattr(runner, "train_run", lambda *_: next(outcomes))
    result = run(tiny_dataset(), "mlp", quick(), [0, 1])
    assert (result["epochs"], result["restarts"]) == (20, 3)
    assert result["ms_per_epoch"] == pytest.approx(50)
    assert result["val_micro_f1"] == pytest.approx(0.6)


def test_runs_are_listed_in_order_whatever_order_they_were_finished_in():
    result = run(tiny_dataset(), "mlp", quick(epochs=2), [2, 0])
    assert [row["run"] for row in result["rows"]] == [0, 2]
    assert result["micro_f1"]["per_run"] == [row["micro_f1"] for row in result["rows"]]


def test_roc_auc_is_reported_where_the_data_set_is_judged_by_it(tmp_path):
    result = run(tiny_dataset(metric="roc_auc"), "mlp", quick(epochs=4), range(3), out=tmp_path)
    assert result["roc_auc"]["per_run"] == [row["roc_auc"] for row in result["rows"]]
    assert result["roc_auc"]["mean"] == pytest.approx(np.mean(result["roc_auc"]["per_run"]))
    assert result["val_roc_auc"] == pytest.approx(np.mean([row["val_score"] for row in result["rows"]]))
    assert result["val_micro_f1"] is None
    json.dumps(result, allow_nan=False)


def test_every_option_is_named_where_it_is_on_trains_and_is_kept(tmp_path):
    on = {"mix": True, "adjacency": True, "jump": True, "balanced": True}
    config = make_config("asgat-plus", hidden=4, epochs=3, max_restarts=0, **on)
    karate = load_dataset("karate")
    result = run(karate, "asgat-plus", config, [0], out=tmp_path)
    assert result["options"] == {"root": True, **on}
    model, name, settings = load_model(tmp_path)
    assert (name, settings) == ("asgat-plus", config)
    inputs = make_inputs(karate, name, config, CPU)
    assert inputs[0].shape == (34, karate.num_features + 34)
    figures = evaluate(model, inputs, torch.from_numpy(karate.y), karate.splits[0], "micro_f1")
    assert figures["val_loss"] == pytest.approx(result["rows"][0]["val_loss"], rel=1e-5)


def test_options_name_the_root_term_and_baselines_certify_nothing():
    settings_of = {"config": make_config("asgat-plus").to_dict(), "runs": [0]}
    assert summarise(settings_of, tiny_dataset(), [])["options"] == {"root": True}
    assert run(tiny_dataset(), "mlp", quick(epochs=1), [0])["certified_share"] is None


def test_a_summary_of_nothing_is_unfinished_and_has_no_numbers():
    result = summarise({"config": quick().to_dict(), "runs": [0]}, tiny_dataset(), [])
    assert result["finished"] is False
    assert result["micro_f1"] == {"mean": None, "std": None, "per_run": []}
    json.dumps(result, allow_nan=False)


def test_progress_is_told_run_and_epoch():
    told = []
    run(
        tiny_dataset(),
        "mlp",
        quick(epochs=2),
        [0, 2],
        progress=lambda i, epoch: told.append((i, epoch.epoch)),
    )
    assert told == [(0, 1), (0, 2), (2, 1), (2, 2)]


# -- the run directory ------------------------------------------------------------------------------


def test_everything_is_readable_without_the_package(tmp_path):
    dataset, config = tiny_dataset(), quick(epochs=3)
    result = run(dataset, "mlp", config, [0, 1], seed=5, out=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        ".lock", "config.toml", "metrics.jsonl", "model.safetensors", "result.json",
    ]  # fmt: skip
    written = tomllib.loads((tmp_path / "config.toml").read_text())
    assert written == {k: result[k] for k in ("dataset", "model", "protocol", "seed", "runs", "config")}
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["run"], line["attempt"], line["epoch"]) for line in lines] == [
        (i, 0, epoch) for i in (0, 1) for epoch in (1, 2, 3)
    ]
    assert {"train_loss", "val_loss", "val_score"} <= lines[0].keys()
    tensors, metadata = read_model(tmp_path)
    assert metadata.items() >= {"dataset": "tiny", "in_channels": 3, "out_channels": 2, "seed": 5}.items()
    assert tensors
    assert all(np.isfinite(value).all() for value in tensors.values())


def test_the_saved_model_is_the_one_that_did_best_on_validation(tmp_path, monkeypatch):
    scores = iter([0.5, 0.9, 0.7, 0.9])
    monkeypatch.setattr(runner, "train_run", lambda *_: fake_outcome(score := next(scores), mark=score))
    run(tiny_dataset(splits=4), "mlp", quick(), range(4), out=tmp_path)
    tensors, metadata = read_model(tmp_path)
    assert tensors["mark"][0] == np.float32(0.9)
    assert metadata["run"] == 1  # the first of equals


def test_the_saved_model_gives_its_runs_figures_again(tmp_path):
    dataset = tiny_dataset()
    result = run(dataset, "mlp", quick(epochs=10), range(3), out=tmp_path)
    number = read_model(tmp_path)[1]["run"]
    row = result["rows"][number]
    assert row["val_score"] == max(r["val_score"] for r in result["rows"])
    model, name, config = load_model(tmp_path)
    with torch.no_grad():
        guess = model(*make_inputs(dataset, name, config, CPU)).argmax(-1).numpy()
    split = dataset.splits[number]
    assert np.mean(guess[split.val] == dataset.y[split.val]) == row["val_score"]
    assert np.mean(guess[split.test] == dataset.y[split.test]) == row["micro_f1"]


def test_nothing_is_written_without_a_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(tiny_dataset(), "mlp", quick(epochs=1), [0])
    assert list(tmp_path.iterdir()) == []


# -- killed and started again -----------------------------------------------------------------------


class Killed(BaseException):
    """What no part of the package catches."""


def kill_in_second_run(monkeypatch, point):
    """Arranges that the second of three runs dies at the given point; returns the progress to run with."""
    if point == "progress":

        def progress(i, epoch):
            if (i, epoch.epoch) == (1, 3):
                raise Killed

        return progress
    original, calls = getattr(RunDirectory, point.removeprefix("after ")), []

    def dies(self, *args):
        calls.append(args)
        if point.startswith("after "):
            original(self, *args)
        if len(calls) == 2:
            raise Killed
        if not point.startswith("after "):
            original(self, *args)

    monkeypatch.setattr(RunDirectory, point.removeprefix("after "), dies)
    return None


@pytest.mark.parametrize(
    "point", ["progress", "add_metrics", "after add_metrics", "write_result", "after write_result"]
)
@pytest.mark.parametrize("splits", [1, 3])
def test_a_killed_command_goes_on_to_the_same_numbers(tmp_path, monkeypatch, point, splits):
    dataset, config = tiny_dataset(splits), quick(epochs=5)
    undisturbed = run(dataset, "mlp", config, range(3), out=tmp_path / "whole")
    with monkeypatch.context() as patch:
        progress = kill_in_second_run(patch, point)
        with pytest.raises(Killed):
            run(dataset, "mlp", config, range(3), out=tmp_path / "cut", progress=progress)
    finished = 2 if point == "after write_result" else 1
    between = json.loads((tmp_path / "cut" / "result.json").read_text())
    assert (len(between["rows"]), between["finished"]) == (finished, False)

    trained = set()
    resumed = run(dataset, "mlp", config, range(3), out=tmp_path / "cut", progress=lambda i, _: trained.add(i))
    assert trained == set(range(finished, 3))
    assert timeless(resumed) == timeless(undisturbed)
    assert timeless(json.loads((tmp_path / "cut" / "result.json").read_text())) == timeless(undisturbed)
    for name in ("config.toml", "metrics.jsonl"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    (tensors, metadata), (expected, its_metadata) = (read_model(tmp_path / name) for name in ("cut", "whole"))
    assert metadata == its_metadata
    assert tensors.keys() == expected.keys()
    assert all(np.array_equal(tensors[key], expected[key]) for key in expected)
    assert sorted(p.name for p in (tmp_path / "cut").iterdir()) == sorted(
        p.name for p in (tmp_path / "whole").iterdir()
    )


def test_a_better_model_of_before_the_kill_stays(tmp_path, monkeypatch):
    def outcome(*args):
        if trained and killed:
            killed.pop()
            raise Killed
        trained.append(1)
        return fake_outcome(0.9 if len(trained) == 1 else 0.6, mark=float(len(trained)))

    trained, killed = [], [True]
    monkeypatch.setattr(runner, "train_run", outcome)
    with pytest.raises(Killed):
        run(tiny_dataset(), "mlp", quick(), range(3), out=tmp_path)
    run(tiny_dataset(), "mlp", quick(), range(3), out=tmp_path)
    assert read_model(tmp_path)[0]["mark"][0] == 1.0


def test_a_finished_directory_is_not_trained_again(tmp_path):
    dataset, config = tiny_dataset(), quick(epochs=2)
    first = run(dataset, "mlp", config, range(3), out=tmp_path)
    before = {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()}

    def never(*_):
        raise AssertionError("trained again")

    second = run(dataset, "mlp", config, range(3), out=tmp_path, progress=never)
    assert second == json.loads(json.dumps(first))
    assert {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == before


def test_fresh_trains_again(tmp_path):
    dataset, config = tiny_dataset(), quick(epochs=2)
    first = run(dataset, "mlp", config, [0], out=tmp_path)
    trained = set()
    again = run(dataset, "mlp", config, [0], out=tmp_path, fresh=True, progress=lambda i, _: trained.add(i))
    assert trained == {0}
    assert timeless(first) == timeless(again)


@pytest.mark.parametrize(
    ("change", "named"),
    [({"seed": 1}, "seed"), ({"config": quick(epochs=3)}, "epochs"), ({"model": "gcn"}, "model")],
)
def test_a_directory_of_other_settings_is_refused(tmp_path, change, named):
    told: dict[str, Any] = {"model": "mlp", "config": quick(epochs=2), "seed": 0}
    run(tiny_dataset(), runs=[0], out=tmp_path, **told)
    with pytest.raises(AsgatError, match=rf"other settings \({named}\)"):
        run(tiny_dataset(), runs=[0], out=tmp_path, **{**told, **change})


# -- certificates and tolerance ---------------------------------------------------------------------


def attending(**changes):
    """Settings under which a table leaves much out and rows are not exact."""
    values = {"form": "table", "candidates": 2, "cap": 0, "k": 2, "heads": 2, "order": 6, "dropout": 0.0}
    plain = {"epochs": 4, "patience": 4, "hidden": 4, "max_restarts": 0, "normalize_features": False}
    return make_config("asgat-cheb", **{**plain, **values, **changes})


@pytest.fixture(scope="module")
def blocks():
    return load_dataset("csbm", num_nodes=150, num_features=6)


@pytest.fixture
def operators(monkeypatch):
    """The operators a trained model was certified on, in order."""
    seen = []
    original = ASGAT.certificates

    def certificates(self, operator):
        seen.append(operator)
        return original(self, operator)

    monkeypatch.setattr(ASGAT, "certificates", certificates)
    return seen


def test_a_run_on_a_table_reports_its_certificate(blocks, operators):
    result = run(blocks, "asgat-cheb", attending(), [0, 1])
    assert len(operators) == 2
    rows = result["rows"]
    assert 0 < result["certified_share"] < 1
    assert 0 < result["mean_bound"] < result["max_bound"]
    assert result["certified_share"] == pytest.approx(np.mean([row["certified_share"] for row in rows]))
    assert result["mean_bound"] == pytest.approx(np.mean([row["mean_bound"] for row in rows]))
    assert result["max_bound"] == max(row["max_bound"] for row in rows)
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize("model", ["asgat-plus", "asgat-heat", "asgat-exact", "mlp", "gcn"])
def test_models_with_attention_are_certified_and_others_are_not(blocks, model):
    values: dict[str, Any] = {"epochs": 1, "hidden": 4, "max_restarts": 0}
    if model.startswith("asgat"):
        values.update(heads=1, order=4)
    result = run(blocks, model, make_config(model, **values), [0])
    figures = [result[key] for key in ("certified_share", "mean_bound", "max_bound")]
    if model.startswith("asgat"):
        assert 0 <= figures[0] <= 1
        assert 0 <= figures[1] <= figures[2]
    else:
        assert figures == [None, None, None]
    if model == "asgat-exact":
        assert figures == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("tolerance", [0.2, 1e-2, 1e-9])
def test_with_a_tolerance_rows_over_it_are_widened(blocks, operators, tolerance):
    loose = run(blocks, "asgat-cheb", attending(), [0])
    assert loose["max_bound"] > 0.2
    operators.clear()
    result = run(blocks, "asgat-cheb", attending(tolerance=tolerance), [0])
    last = operators[-1]
    assert result["max_bound"] <= tolerance or bool(last.table.complete.all())
    assert result["max_bound"] < loose["max_bound"]
    assert result["certified_share"] >= loose["certified_share"]
    assert len(operators) > 1
    sizes = [operator.table.num_candidates for operator in operators]
    assert sizes == sorted(sizes)
    before, after = (operator.table.indptr.diff() for operator in (operators[0], last))
    assert (after >= before).all()
    if tolerance == 0.2:
        assert bool((after == before).any()), "rows within the tolerance stay as they are"


def test_a_widened_table_is_judged_anew(blocks, operators):
    """The figures are those of the trained model on the last table, not of the one it was trained on."""
    result = run(blocks, "asgat-cheb", attending(tolerance=1e-3), [0])
    (row,) = result["rows"]
    config = attending(tolerance=1e-3)
    inputs, y = make_inputs(blocks, "asgat-cheb", config, CPU), torch.from_numpy(blocks.y)
    outcome = train(lambda: model_spec("asgat-cheb").build(config, 6, 2), inputs, y, blocks.splits[0], config, 0)
    model = model_spec("asgat-cheb").build(config, 6, 2)
    model.load_state_dict(outcome.state)
    with torch.no_grad():
        narrow, wide = (model.eval()(inputs[0], operator) for operator in (inputs[1], operators[-1]))
    assert not torch.allclose(narrow, wide, atol=1e-3)
    test = torch.from_numpy(blocks.splits[0].test)
    assert row["micro_f1"] == pytest.approx(float((wide[test].argmax(-1) == y[test]).double().mean()))


def test_a_tolerance_that_is_met_changes_nothing(blocks, operators):
    loose = run(blocks, "asgat-cheb", attending(), [0])
    operators.clear()
    result = run(blocks, "asgat-cheb", attending(tolerance=1e6), [0])
    assert len(operators) == 1
    assert figures(result["rows"][0]) == figures(loose["rows"][0])
    assert result["max_bound"] == loose["max_bound"]


def test_a_tolerance_of_a_truncated_table_is_refused_before_training(blocks, monkeypatch):
    monkeypatch.setattr(runner, "train_run", lambda *_: pytest.fail("trained"))
    with pytest.raises(AsgatError, match="A tolerance needs a table that is built exactly"):
        run(blocks, "asgat-cheb", attending(builder="truncated", tolerance=0.1), [0])


def test_a_truncated_table_reports_a_sampled_certificate(blocks):
    result = run(blocks, "asgat-cheb", attending(builder="truncated", candidates=4), [0])
    assert 0 <= result["certified_share"] < 1
    assert 0 < result["mean_bound"] <= result["max_bound"]


def test_a_finished_run_is_handed_over_before_it_counts(tmp_path):
    data, config = tiny_dataset(), quick(epochs=3)
    seen: list[Any] = []

    def finished(i, state, inputs):
        written = json.loads((tmp_path / "result.json").read_text())["rows"] if seen else []
        assert [row["run"] for row in written] == [run for run, _ in seen]
        net = model_spec("mlp").make(config, data.num_features, data.num_classes, data.num_nodes)
        net.load_state_dict(state)
        figures = evaluate(net, inputs, torch.from_numpy(data.y), data.splits[i], "micro_f1")
        seen.append((i, figures["micro_f1"]))

    result = run(data, "mlp", config, [0, 2], out=tmp_path, finished=finished)
    assert seen == [(row["run"], row["micro_f1"]) for row in result["rows"]]
    run(data, "mlp", config, [0, 2], out=tmp_path, finished=finished)
    assert len(seen) == 2, "a run that is done is not handed over again"
