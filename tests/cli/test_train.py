import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from importlib.resources import files
from typing import Any

import pytest
import torch

from asgat.data import DATASETS
from asgat.errors import AsgatError
from asgat.training import load_model, runner
from asgat.training.loop import train_jobs

QUICK = ["--set", "epochs=3", "--set", "hidden=4", "--set", "max_restarts=0"]


def timeless(result):
    return {
        **{k: v for k, v in result.items() if k not in ("ms_per_epoch", "peak_memory_mb")},
        "rows": [{k: v for k, v in row.items() if k not in ("seconds", "peak_memory_mb")} for row in result["rows"]],
    }


@pytest.mark.parametrize("command", ["train", "compare"])
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["karat"], ["'karat'", "Did you mean 'karate'?"]),
        (["zzzzzz"], ["'zzzzzz'", "Choose from: cora"]),
        (["[/karate]"], ["'[/karate]'"]),
        (["[red]karate"], ["'[red]karate'"]),
        (["karate", "--splits", "a"], ["'a'", "0-9"]),
        (["karate", "--splits", ""], ["''", "0-9"]),
        (["karate", "--splits", "5-2"], ["5-2", "smaller number first"]),
        (["karate", "--splits", "99"], ["karate has splits 0 to 9", "no split 99"]),
        (["karate", "--splits", "8-10"], ["no split 10"]),
        (["karate", "--set", "epochs"], ["key=value", "'epochs'"]),
        (["karate", "--set", "epoch=3"], ["'epoch'", "Did you mean 'epochs'?"]),
        (["karate", "--set", "epochs=many"], ["epochs must be a whole number", "'many'"]),
        (["karate", "--set", "epochs=0"], ["epochs must be at least 1", "0"]),
        (["karate", "--set", "epochs="], ["epochs must be a whole number", "''"]),
        (["karate", "--set", "dropout=1"], ["dropout must be below 1"]),
        (["karate", "--set", "lr=nan"], ["lr must be a finite number"]),
        (["karate", "--set", "self_loops=[/x]"], ["self_loops", "'[/x]'"]),
        (["karate", "--protocol", "publik"], ["publik"]),
        (["karate", "--device", "gpu"], ["'gpu'", "cpu or cuda"]),
        (["karate", "--device", "meta"], ["'meta'", "cpu or cuda"]),
    ],
)
def test_bad_input_is_a_sentence_and_leaves_nothing(refused, command, arguments, parts):
    sentence = refused(command, *arguments)
    for part in parts:
        assert part in sentence


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--model", "asgat-chebb"], ["'asgat-chebb'", "Did you mean 'asgat-cheb'?"]),
        (["--set", "k=0"], ["k must be at least 1", "0"]),
        (["--set", "k=-3"], ["k must be at least 1", "-3"]),
        (["--set", "heads=0"], ["heads must be at least 1", "0"]),
        (["--set", "order=0"], ["order must be at least 1", "0"]),
        (["--set", "sampling_points=3"], ["sampling_points is no longer a setting", "ChebyshevOperator"]),
        (["--set", "root=true"], ["asgat-cheb fixes root", "asgat-plus"]),
        (["--set", "root=perhaps"], ["root must be true or false", "'perhaps'"]),
        (["--set", "filter_hidden=8,x"], ["filter_hidden", "'8,x'"]),
        (["--model", "mlp", "--set", "heads=2"], ["'heads'", "Choose from: lr"]),
    ],
)
def test_bad_settings_of_a_model(refused, arguments, parts):
    sentence = refused("train", "karate", *arguments)
    for part in parts:
        assert part in sentence


@pytest.mark.parametrize(
    ("models", "part"),
    [("gcn,asgat-chebb", "Did you mean 'asgat-cheb'?"), (" , ", "--models is empty")],
)
def test_bad_models_to_compare(refused, models, part):
    assert part in refused("compare", "karate", "--models", models)


def test_a_setting_of_no_model_is_refused_before_training(refused):
    assert "'heads'" in refused("compare", "karate", "--models", "gcn,mlp", "--set", "heads=2")
    assert "heads must be at least 1" in refused("compare", "karate", "--models", "mlp,gat", "--set", "heads=0")


@pytest.mark.parametrize("command", ["train", "compare"])
def test_an_output_folder_that_cannot_be_made(asgat, place, command):
    (place / "file").write_text("kept")
    code, _, errors = asgat(command, "karate", "--out", "file/run", *QUICK)
    assert code == 2
    assert "file/run" in errors
    assert "Traceback" not in errors
    assert [path.name for path in place.iterdir()] == ["file"]
    assert (place / "file").read_text() == "kept"


@pytest.mark.skipif(os.geteuid() == 0, reason="to root no folder is read-only")
def test_a_read_only_output_folder(asgat, place):
    (place / "locked").mkdir(mode=0o500)
    code, _, errors = asgat("train", "karate", "--out", "locked/run", *QUICK)
    assert code == 2
    assert "locked/run" in errors
    assert list((place / "locked").iterdir()) == []


def test_other_settings_in_the_run_directory_are_named(asgat, place):
    train = ["train", "karate", "--model", "mlp", "--splits", "0", *QUICK]
    assert asgat(*train)[0] == 0
    result = (place / "runs/karate-mlp-seed0-runs0/result.json").read_bytes()
    code, _, errors = asgat(*train, "--set", "lr=0.5")
    assert code == 2
    assert "other settings (lr)" in errors
    assert "--fresh" in errors
    assert (place / "runs/karate-mlp-seed0-runs0/result.json").read_bytes() == result
    assert asgat(*train, "--set", "lr=0.5", "--fresh")[0] == 0
    written = tomllib.loads((place / "runs/karate-mlp-seed0-runs0/config.toml").read_text())
    assert written["config"]["lr"] == 0.5


@pytest.mark.parametrize("command", [["train", "texas"], ["compare", "texas"], ["datasets"]])
@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_corrupt_data_file(refused, tmp_path, monkeypatch, command, by):
    names = DATASETS["texas"].files()
    for name in names:
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_bytes(b"garbage")
    if by == "environment":
        monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "data"))
    option = ["--data-dir", tmp_path / "data"] if by == "option" else []
    sentence = refused(*command, *option)
    assert "is corrupt" in sentence
    assert str(tmp_path / "data") in sentence


def test_train_prints_a_table_writes_its_files_and_resumes(asgat, place):
    train = ["train", "karate", "--splits", "0-1", "--set", "epochs=5", "--set", "max_restarts=0"]
    code, output, _ = asgat(*train, "--out", "[a] run", "--json", "first.json")
    assert code == 0
    assert sorted(path.name for path in (place / "[a] run").iterdir()) == [
        ".lock",
        "config.toml",
        "filters.png",
        "metrics.jsonl",
        "model.safetensors",
        "result.json",
    ]
    first = json.loads((place / "first.json").read_text())
    written = json.loads((place / "[a] run/result.json").read_text())
    assert len(written.pop("model_sha256")) == 64
    assert written == first
    assert (first["dataset"], first["model"], first["runs"], first["seed"]) == (
        "karate",
        "asgat-cheb",
        [0, 1],
        0,
    )
    assert (first["config"]["epochs"], first["epochs"], first["finished"]) == (5, 5, True)
    score = first["micro_f1"]
    assert f"{100 * score['mean']:.1f} ± {100 * score['std']:.1f}" in output
    assert "learned filters: [a] run/filters.png" in output
    assert "run directory:   [a] run" in output
    assert len((place / "[a] run/metrics.jsonl").read_text().splitlines()) == 10
    assert (place / "[a] run/filters.png").read_bytes().startswith(b"\x89PNG")

    def never(*_):
        raise AssertionError("trained again")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "train_jobs", never)
        code, again, _ = asgat(*train, "--out", "[a] run", "--json", "second.json")
    assert code == 0
    assert again == output
    assert json.loads((place / "second.json").read_text()) == first


def test_settings_override_the_recipe(asgat, place, monkeypatch):
    seen: dict[str, Any] = {}

    def fake(data, model, config, *_):
        seen.update(dataset=data.name, model=model, config=config)
        raise AsgatError("enough.")

    monkeypatch.setattr(runner, "run", fake)
    assert asgat("train")[0] == 2
    recipe = tomllib.loads((files("asgat") / "recipes/csbm.toml").read_text())
    assert (seen["dataset"], seen["model"]) == ("csbm", recipe["model"])
    assert seen["config"].normalize_features is recipe["all"]["normalize_features"] is False
    assert asgat("train", "csbm", "--set", "normalize_features=yes", "--set", " lr = 0.25 ")[0] == 2
    assert (seen["config"].normalize_features, seen["config"].lr) == (True, 0.25)
    assert list(place.iterdir()) == []


def test_every_setting_can_be_given(asgat, place):
    changes = ["k=none", "dropout=0", "filter_hidden=4,4", "root=yes", "filter=polynomial", "self_loops=add"]
    pairs = [part for change in changes for part in ("--set", change)]
    code, _, errors = asgat("train", "karate", "--model", "asgat-plus", "--splits", "3", "--seed", "7", *QUICK, *pairs)
    assert code == 0, errors
    result = json.loads((place / "runs/karate-asgat-plus-seed7-runs3/result.json").read_text())
    shown = {key: result["config"][key] for key in ("k", "dropout", "filter_hidden", "root", "filter", "self_loops")}
    assert list(shown.values()) == ["none", 0.0, [4, 4], True, "polynomial", "add"]
    assert (result["seed"], result["runs"], result["options"]) == (7, [3], {"root": True})


@pytest.mark.parametrize("operator", ["exact", "chebyshev"])
@pytest.mark.parametrize("form", ["asgat-heat", "asgat-plus"])
def test_the_heat_kernel_in_every_form(asgat, place, operator, form):
    """As asgat-heat, the paper's model, and as asgat-plus with a root term; the filter itself has no parameters."""
    changes = [f"operator={operator}", "heat_scale=2.5", *(["filter=heat"] if form == "asgat-plus" else [])]
    pairs = [part for change in changes for part in ("--set", change)]
    code, _, errors = asgat("train", "karate", "--model", form, "--splits", "0", *QUICK, *pairs, "--json", "out.json")
    assert code == 0, errors
    result = json.loads((place / "out.json").read_text())
    shown = [result["config"][key] for key in ("filter", "heat_scale", "operator", "root")]
    assert shown == ["heat", 2.5, operator, form == "asgat-plus"]
    model, *_ = load_model(place / f"runs/karate-{form}-seed0-runs0")
    frequency = torch.linspace(0, 2, 5)
    response = model.convs[0].filter(frequency)  # type: ignore[union-attr, index]
    torch.testing.assert_close(response, torch.exp(-2.5 * frequency).unsqueeze(-1).expand_as(response))
    assert not any("filter" in name for name, _ in model.named_parameters())


def test_compare_prints_one_row_per_model(asgat, cells, place):
    compare = ["compare", "karate", "--splits", "0,2", *QUICK, "--out", "all", "--json", "numbers.json"]
    code, output, _ = asgat(*compare, "--models", "asgat-cheb, gcn,mlp")
    assert code == 0
    rows = json.loads((place / "numbers.json").read_text())["rows"]
    assert [row["model"] for row in rows] == ["asgat-cheb", "gcn", "mlp"]
    assert [row["parameters"] for row in rows[1:]] == [4 * 35 + 2 * 5, 4 * 35 + 2 * 5]
    for row in rows:
        folder = place / "all" / f"karate-{row['model']}-seed0-runs0,2"
        written = json.loads((folder / "result.json").read_text())
        assert {**written, "parameters": row["parameters"]} == {**row, "model_sha256": written["model_sha256"]}
        assert (folder / "filters.png").exists() == (row["model"] == "asgat-cheb")
        assert row["runs"] == [0, 2]
        shown = next(line for line in cells(output) if line[0] == row["model"])
        assert shown[1] == f"{100 * row['micro_f1']['mean']:.1f} ± {100 * row['micro_f1']['std']:.1f}"
        seconds = sum(run["seconds"] for run in row["rows"])
        assert shown[3:] == [f"{row['ms_per_epoch']:.1f}", f"{seconds:.1f}", f"{row['parameters']:,}"]
    assert output.count("Test scores on karate") == 1
    assert "comparison:      all/karate-comparison.png" in output
    assert (place / "all/karate-comparison.png").read_bytes().startswith(b"\x89PNG")


def test_a_setting_applies_to_the_models_that_have_it(asgat, place):
    settings = ["--set", "heads=2", "--set", "steps=3"]
    compare = ["compare", "karate", "--models", "mlp,gat,appnp", "--splits", "0", *QUICK, *settings, "--json", "c.json"]
    code, _, errors = asgat(*compare)
    assert code == 0, errors
    mlp, gat, appnp = (row["config"] for row in json.loads((place / "c.json").read_text())["rows"])
    assert (gat["heads"], appnp["steps"]) == (2, 3)
    assert not {"heads", "steps"} & set(mlp)
    assert all(config["hidden"] == 4 for config in (mlp, gat, appnp))


def test_train_and_compare_give_the_same_numbers(asgat, place):
    asgat("train", "karate", "--model", "gcn", "--splits", "1", *QUICK, "--json", "one.json", "--out", "one")
    asgat("compare", "karate", "--models", "gcn", "--splits", "1", *QUICK, "--json", "many.json", "--out", "many")
    one, many = (json.loads((place / name).read_text()) for name in ("one.json", "many.json"))
    assert {**timeless(one), "parameters": 150} == timeless(many["rows"][0])


def test_an_interrupted_command_says_how_to_resume(asgat, place, monkeypatch):
    train = ["train", "karate", "--model", "mlp", "--splits", "0-2", *QUICK, "--out", "run"]
    trained = []

    def interrupted(task, jobs, *others):
        for position, outcome in train_jobs(task, jobs, *others):
            yield position, outcome
            trained.append(jobs[position].run)
            if len(trained) == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(runner, "train_jobs", interrupted)
    code, output, errors = asgat(*train)
    assert code == 130
    assert "Interrupted. Finished runs are saved" in errors
    assert "±" not in output
    assert asgat(*train)[0] == 0
    assert trained == [0, 1, 2]
    result = json.loads((place / "run/result.json").read_text())
    assert (result["finished"], len(result["rows"])) == (True, 3)


def test_another_process_gives_the_same_numbers(asgat, place):
    train = ["train", "karate", "--model", "gcn", "--splits", "0", *QUICK]
    code, output, errors = asgat(*train, "--out", "there", "--json", "there.json", process=True)
    assert code == 0, errors
    assert "Test scores on karate" in output
    asgat(*train, "--out", "here", "--json", "here.json")
    there, here = (json.loads((place / name).read_text()) for name in ("there.json", "here.json"))
    assert timeless(there) == timeless(here)


def test_a_killed_command_resumes(asgat, place):
    train = ["train", "karate", "--model", "mlp", "--set", "max_restarts=0"]
    train += ["--set", "epochs=60", "--set", "patience=60", "--out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "asgat", *train, "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 100
        while not (place / "run/result.json").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    before = json.loads((place / "run/result.json").read_text())
    assert 1 <= len(before["rows"]) < 10
    assert asgat(*train, "run")[0] == 0
    after = json.loads((place / "run/result.json").read_text())
    assert after["rows"][: len(before["rows"])] == before["rows"]
    assert asgat(*train, "whole")[0] == 0
    assert timeless(after) == timeless(json.loads((place / "whole/result.json").read_text()))
    assert (place / "run/metrics.jsonl").read_bytes() == (place / "whole/metrics.jsonl").read_bytes()


@pytest.mark.parametrize(("channels", "drawn"), [("attention+filters", True), ("filters", True), ("mean", False)])
def test_the_deep_model_draws_the_heads_it_has(asgat, place, channels, drawn):
    settings = ["--set", f"channels={channels}", "--set", "epochs=2", "--set", "hidden=4", "--set", "order=3"]
    code, output, errors = asgat(
        "train",
        "karate",
        "--model",
        "asgat-deep",
        "--splits",
        "0-1",
        *settings,
        "--out",
        "run",
    )
    assert code == 0, errors
    assert (place / "run/filters.png").exists() == drawn == ("learned filters:" in output)
