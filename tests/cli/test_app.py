import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from io import StringIO
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from asgat import __version__
from asgat.cli import app as cli
from asgat.cli import options as cli_options
from asgat.config import ASGATConfig, TrainConfig
from asgat.data import DATASETS, dataset_names, load_dataset
from asgat.errors import AsgatError
from asgat.nn.registry import MODELS
from asgat.training import load_model, runner, trainer

QUICK = ["--set", "epochs=3", "--set", "hidden=4", "--set", "max_restarts=0"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to work in, no data files, and lines long enough not to be folded."""
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "no-data"))
    monkeypatch.setattr(cli, "console", Console(width=200))
    monkeypatch.setattr(cli, "errors", Console(width=200, stderr=True))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # models this small are faster so
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield folder
    torch.set_num_threads(threads)


@pytest.fixture
def asgat(monkeypatch, capsys):
    """A function that runs the command line as the installed command does: exit code, output, errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["asgat", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        output, errors = capsys.readouterr()
        return ended.value.code or 0, output, errors

    return call


@pytest.fixture
def refused(asgat, place):
    """A function that runs a command which must end in one sentence, exit code 2 and no file."""

    def call(*arguments):
        code, output, errors = asgat(*arguments)
        assert code == 2, (output, errors)
        assert errors.startswith("error: ")
        assert errors.endswith((".\n", ". \n"))
        assert errors.count("\n") == 1
        assert "±" not in output
        assert list(place.iterdir()) == []
        return errors.removeprefix("error: ").strip()

    return call


def table_rows(output):
    """The cells of every line, whatever frame the table has."""
    return [re.split(r"\s{2,}|\s*[│┃|]\s*", line.strip(" │┃|")) for line in output.splitlines()]


def timeless(result):
    return {
        **{k: v for k, v in result.items() if k not in ("ms_per_epoch", "peak_memory_mb")},
        "rows": [{k: v for k, v in row.items() if k not in ("seconds", "peak_memory_mb")} for row in result["rows"]],
    }


def in_process(*arguments, **environment):
    """The same in a process of its own, as `python -m asgat`."""
    return subprocess.run(
        [sys.executable, "-m", "asgat", *arguments],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


# -- bad input --------------------------------------------------------------------------------------


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
        (["karate", "--splits", "5-2"], ["5-2", "upwards"]),
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
    [("gcn,asgat-chebb", "Did you mean 'asgat-cheb'?"), (" , ", "--models names no model")],
)
def test_bad_models_to_compare(refused, models, part):
    assert part in refused("compare", "karate", "--models", models)


def test_a_setting_no_model_has_is_told_before_any_training(refused):
    assert "'heads'" in refused("compare", "karate", "--models", "gcn,mlp", "--set", "heads=2")
    assert "heads must be at least 1" in refused("compare", "karate", "--models", "mlp,gat", "--set", "heads=0")


def test_an_unknown_model_to_describe(refused):
    assert "Did you mean 'gcn'?" in refused("models", "gcnn")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_no_gpu_where_one_was_asked_for(refused, device):
    sentence = refused("train", "karate", "--device", device)
    assert device in sentence
    assert "--device cpu" in sentence


def test_a_gpu_that_is_one_too_many(refused):
    assert "--device cpu" in refused("train", "karate", "--device", f"cuda:{torch.cuda.device_count()}")


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


def test_numbers_that_cannot_be_written(asgat, place):
    (place / "file").write_text("kept")
    code, _, errors = asgat("datasets", "--json", "file/numbers.json")
    assert code == 2
    assert "file/numbers.json cannot be written" in errors
    code, _, errors = asgat("train", "karate", "--splits", "0", *QUICK, "--model", "mlp", "--json", place)
    assert code == 2
    assert f"{place} cannot be written" in errors
    assert sorted(path.name for path in place.iterdir()) == ["file"], "told before training"


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


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--no-such-option"],
        ["train", "karate", "--seed", "one"],
        ["train", "karate", "--seed", "-1"],
        ["train", "karate", "--seed", str(2**64)],
        ["train", "karate", "gcn"],
        ["trian"],
        ["models", "--set", "lr=1"],
    ],
)
def test_wrong_usage_ends_with_2_as_well(asgat, place, arguments):
    code, output, errors = asgat(*arguments)
    assert (code, output) == (2, "")
    assert "Usage" in errors
    assert "Traceback" not in errors
    assert list(place.iterdir()) == []


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


def test_a_bug_of_ours_is_not_dressed_up_as_bad_input(monkeypatch):
    def broken(_):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "describe_datasets", broken)
    monkeypatch.setattr(sys, "argv", ["asgat", "datasets"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_errors_reach_callers_of_the_app():
    result = CliRunner().invoke(cli.app, ["train", "karat"])
    assert isinstance(result.exception, AsgatError)


# -- datasets and models ----------------------------------------------------------------------------


def test_datasets_without_files_shows_the_published_figures(asgat, place, monkeypatch):
    def no_network(*_):
        raise AssertionError("a listing fetches nothing")

    monkeypatch.setattr("asgat.data.download._download", no_network)
    code, output, _ = asgat("datasets", "--json", "out/numbers.json")
    assert code == 0
    written = json.loads((place / "out/numbers.json").read_text())
    assert list(written) == ["rows"]
    rows = {row["name"]: row for row in written["rows"]}
    assert list(rows) == dataset_names()
    for name, info in DATASETS.items():
        row, figures = rows[name], info.statistics
        assert (row["nodes"], row["edges"], row["features"]) == (
            figures.nodes,
            figures.entries,
            figures.features,
        )
        assert (row["classes"], row["beta"]) == (figures.classes, pytest.approx(figures.beta, abs=5e-4))
        assert row["protocols"][0] == info.default_protocol
        assert row["measured"] == (name in ("csbm", "digits", "karate"))
        assert f"{figures.nodes:,}" in output
    marked = {row[0].removesuffix(" ○") for row in table_rows(output) if row[0].endswith(" ○")}
    assert marked == {name for name, row in rows.items() if not row["measured"]}
    assert "copy of Texas" in output


def test_models_are_listed(asgat, place):
    code, output, _ = asgat("models")
    assert code == 0
    listed = {row[0]: row[1:] for row in table_rows(output)}
    for name, spec in MODELS.items():
        assert listed[name] == [spec.summary, spec.reference, spec.cost]
    assert list(place.iterdir()) == []
    assert asgat("models", "--json", "models.json")[0] == 0
    rows = json.loads((place / "models.json").read_text())["rows"]
    assert [row["model"] for row in rows] == list(MODELS)
    sizes = {row["model"]: row["parameters"] for row in rows}
    assert sizes["sgc"] == 5 * (1703 + 1)
    assert sizes["gcn"] == 16 * (1703 + 1) + 5 * (16 + 1)
    assert sizes["sage"] == 128 * (2 * 1703 + 1) + 5 * (2 * 128 + 1)
    assert rows[0]["parameters_for"] == {"features": 1703, "classes": 5, "nodes": 183}


def test_one_model_is_described(asgat, place):
    code, output, _ = asgat("models", "gat", "--json", "gat.json")
    assert code == 0
    for part in ("attention over neighbours; Veličković et al., ICLR 2018", "O(m·(N·F·H + E·H))"):
        assert part in output
    written = json.loads((place / "gat.json").read_text())
    assert f"{written['parameters']:,} parameters for 1,703 features and 5 classes" in output
    assert written["parameters"] == 64 * (1703 + 2 + 1) + 5 * 64 + 3 * 5
    rows = {row["setting"]: row for row in written["rows"]}
    assert (rows["heads"]["default"], rows["lr"]["default"], rows["lr"]["fixed"]) == (8, 0.005, False)
    assert asgat("models", "asgat-cheb", "--json", "cheb.json")[0] == 0
    rows = {row["setting"]: row for row in json.loads((place / "cheb.json").read_text())["rows"]}
    assert (rows["operator"]["fixed"], rows["operator"]["default"]) == (True, "chebyshev")


@pytest.mark.parametrize("name", [[], ["linkx"]])
def test_listings_fit_80_columns(asgat, monkeypatch, name):
    monkeypatch.setattr(cli, "console", Console(width=80))
    _, output, _ = asgat("models", *name)
    assert max(map(len, output.splitlines())) <= 80
    assert "…" not in output


@pytest.mark.parametrize(("name", "config"), [("asgat-cheb", ASGATConfig), ("mlp", TrainConfig)])
def test_the_settings_of_a_model_are_listed(asgat, name, config):
    code, output, _ = asgat("models", name)
    assert code == 0
    shown = {row[0]: row[1] for row in table_rows(output) if len(row) == 3 and row[0] != "setting"}
    assert set(shown) == set(config.keys())
    assert shown["patience"] == "100"
    if config is ASGATConfig:
        assert shown["filter_hidden"] == "[64, 64]"
        assert shown["operator"] == "chebyshev (fixed)"
        assert shown["order"] == "15"


# -- train and compare ------------------------------------------------------------------------------


def test_train_prints_a_table_and_writes_its_files_and_goes_on(asgat, place):
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
    assert first == json.loads((place / "[a] run/result.json").read_text())
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
        patch.setattr(runner, "train_run", never)
        code, again, _ = asgat(*train, "--out", "[a] run", "--json", "second.json")
    assert code == 0
    assert again == output
    assert json.loads((place / "second.json").read_text()) == first


def test_train_takes_the_recipe_and_puts_settings_over_it(asgat, place, monkeypatch):
    told: dict[str, Any] = {}

    def fake(data, model, config, *_):
        told.update(dataset=data.name, model=model, config=config)
        raise AsgatError("enough.")

    monkeypatch.setattr(runner, "run", fake)
    assert asgat("train")[0] == 2
    recipe = tomllib.loads((cli_recipes() / "csbm.toml").read_text())
    assert (told["dataset"], told["model"]) == ("csbm", recipe["model"])
    assert told["config"].normalize_features is recipe["all"]["normalize_features"] is False
    assert asgat("train", "csbm", "--set", "normalize_features=yes", "--set", " lr = 0.25 ")[0] == 2
    assert (told["config"].normalize_features, told["config"].lr) == (True, 0.25)
    assert list(place.iterdir()) == []


def cli_recipes():
    from importlib.resources import files

    return files("asgat") / "recipes"


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
    """Of the paper as asgat-heat, with a root term as asgat-plus; nothing of it is learned but the weights."""
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


def test_compare_puts_models_side_by_side(asgat, place):
    compare = ["compare", "karate", "--splits", "0,2", *QUICK, "--out", "all", "--json", "numbers.json"]
    code, output, _ = asgat(*compare, "--models", "asgat-cheb, gcn,mlp")
    assert code == 0
    rows = json.loads((place / "numbers.json").read_text())["rows"]
    assert [row["model"] for row in rows] == ["asgat-cheb", "gcn", "mlp"]
    assert [row["parameters"] for row in rows[1:]] == [4 * 35 + 2 * 5, 4 * 35 + 2 * 5]
    for row in rows:
        folder = place / "all" / f"karate-{row['model']}-seed0-runs0,2"
        assert {**json.loads((folder / "result.json").read_text()), "parameters": row["parameters"]} == row
        assert (folder / "filters.png").exists() == (row["model"] == "asgat-cheb")
        assert row["runs"] == [0, 2]
        shown = next(line for line in table_rows(output) if line[0] == row["model"])
        assert shown[1] == f"{100 * row['micro_f1']['mean']:.1f} ± {100 * row['micro_f1']['std']:.1f}"
        assert shown[3:] == [f"{row['ms_per_epoch']:.1f}", f"{row['parameters']:,}"]
    assert output.count("Test scores on karate") == 1
    assert "comparison:      all/karate-comparison.png" in output
    assert (place / "all/karate-comparison.png").read_bytes().startswith(b"\x89PNG")


def test_a_setting_is_that_of_the_models_which_have_it(asgat, place):
    settings = ["--set", "heads=2", "--set", "steps=3"]
    compare = ["compare", "karate", "--models", "mlp,gat,appnp", "--splits", "0", *QUICK, *settings, "--json", "c.json"]
    code, _, errors = asgat(*compare)
    assert code == 0, errors
    mlp, gat, appnp = (row["config"] for row in json.loads((place / "c.json").read_text())["rows"])
    assert (gat["heads"], appnp["steps"]) == (2, 3)
    assert not {"heads", "steps"} & set(mlp)
    assert all(config["hidden"] == 4 for config in (mlp, gat, appnp))


def test_a_comparison_fits_80_columns():
    spread = {"mean": 1.0, "std": 0.123, "per_run": [1.0]}
    row: dict[str, Any] = {"dataset": "minesweeper", "model": "asgat-exact"}
    row |= {"micro_f1": spread, "macro_f1": spread, "roc_auc": spread}
    row |= {"ms_per_epoch": 12345.6, "parameters": 123_456_789}
    print_to = StringIO()
    Console(width=80, file=print_to).print(cli.comparison_table([row]))
    figures = ["100.0 ± 12.3"] * 3
    assert [*figures, "12345.6", "123,456,789"] == table_rows(print_to.getvalue())[-2][1:]


def test_train_and_compare_give_the_same_numbers(asgat, place):
    asgat("train", "karate", "--model", "gcn", "--splits", "1", *QUICK, "--json", "one.json", "--out", "one")
    asgat(
        "compare",
        "karate",
        "--models",
        "gcn",
        "--splits",
        "1",
        *QUICK,
        "--json",
        "many.json",
        "--out",
        "many",
    )
    one, many = (json.loads((place / name).read_text()) for name in ("one.json", "many.json"))
    assert {**timeless(one), "parameters": 150} == timeless(many["rows"][0])


def test_an_interruption_says_how_to_go_on(asgat, place, monkeypatch):
    train = ["train", "karate", "--model", "mlp", "--splits", "0-2", *QUICK, "--out", "run"]
    original, calls = trainer.train_run, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(runner, "train_run", interrupted)
    code, output, errors = asgat(*train)
    assert code == 130
    assert "Interrupted. Finished runs are kept" in errors
    assert "±" not in output
    assert asgat(*train)[0] == 0
    assert len(calls) == 4  # run 0, the interrupted one, and then runs 1 and 2
    result = json.loads((place / "run/result.json").read_text())
    assert (result["finished"], len(result["rows"])) == (True, 3)


def test_progress_shows_losses():
    progress = cli.RunProgress([3, 5], epochs=10)
    epoch = type("Epoch", (), {"epoch": 4, "train_loss": 0.123, "val_loss": 4.567, "val_score": 0.89})
    progress(5, epoch)
    task = progress.bar.tasks[0]
    assert (task.completed, task.total, task.fields["run"]) == (4, 10, "2/2")
    assert all(figure in task.fields["figures"] for figure in ("0.123", "4.567", "89.0 %"))


def test_scores_are_shown_in_percent():
    spread = {"mean": 0.5, "std": 0.25, "per_run": [0.25, 0.75]}
    result = {"dataset": "d", "model": "m", "micro_f1": spread, "macro_f1": spread, "val_micro_f1": 0.625}
    result |= {"rows": [{}, {}], "restarts": 3, "epochs": 17.4, "ms_per_epoch": 2.25}
    print_to = StringIO()
    console = Console(width=200, file=print_to)
    console.print(cli.result_table([result]))
    console.print(cli.result_table([{**result, "roc_auc": {**spread, "mean": 0.75}, "val_roc_auc": 0.875}]))
    plain, auc = (row for row in table_rows(print_to.getvalue()) if row[0] == "m")
    assert plain == ["m", "50.0 ± 25.0", "50.0 ± 25.0", "62.5", "2", "3", "17", "2.2"]
    assert auc == ["m", "50.0 ± 25.0", "50.0 ± 25.0", "75.0 ± 25.0", "87.5", "2", "3", "17", "2.2"]


# -- embed ------------------------------------------------------------------------------------------


def direct_deepwalk(window=10, negative=1):
    """log max(vol/(bK) (P + … + P^K) D^-1, 1) of the karate club, from A and D alone."""
    a = load_dataset("karate").graph.adjacency.toarray()
    walk = a / a.sum(axis=1, keepdims=True)
    walks = sum(np.linalg.matrix_power(walk, r) for r in range(1, window + 1)) / a.sum(axis=1)
    return np.log(np.maximum(a.sum() / (negative * window) * walks, 1.0))


def test_embed_writes_the_factorised_matrix_and_its_factors(asgat, place):
    code, output, _ = asgat("embed", "karate", "--json", "numbers.json")
    assert code == 0
    assert "embedding: runs/karate-embedding.npz" in output
    with np.load(place / "runs/karate-embedding.npz") as file:
        written = dict(file)
    direct = direct_deepwalk()
    np.testing.assert_allclose(written["matrix"], direct, atol=1e-9)
    left, singular, _ = np.linalg.svd(direct)
    gram = (left[:, :16] * singular[:16]) @ left[:, :16].T
    np.testing.assert_allclose(written["embedding"] @ written["embedding"].T, gram, atol=1e-9)
    assert written["node"].tolist() == list(range(34))
    numbers = json.loads((place / "numbers.json").read_text())
    assert (numbers["dataset"], numbers["nodes"], numbers["dimensions"]) == ("karate", 34, 16)
    assert (numbers["window"], numbers["negative"], numbers["seed"], numbers["zero_rows"]) == (10, 1, 0, 0)
    assert [row["singular_value"] for row in numbers["rows"]] == pytest.approx(singular[:16].tolist())
    energy = (singular[:16] ** 2).sum() / (singular**2).sum()
    assert numbers["energy"] == pytest.approx(energy)
    assert numbers["file"] == "runs/karate-embedding.npz"
    assert ["34", "0", "0", "16", "10", f"{100 * energy:.1f} %"] in table_rows(output)


def test_embed_takes_its_options_and_repeats_itself(asgat, place):
    options = ["--dimensions", "3", "--window", "2", "--negative", "5", "--seed", "7"]
    for name in ("[one].csv", "two.csv"):
        code, output, _ = asgat("embed", "karate", *options, "-o", name)
        assert code == 0
        assert f"embedding: {name}" in output
    assert (place / "[one].csv").read_bytes() == (place / "two.csv").read_bytes()
    lines = (place / "two.csv").read_text().splitlines()
    assert (lines[0], len(lines)) == ("node,x0,x1,x2", 35)
    vectors = np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines[1:]])
    singular = np.linalg.svd(direct_deepwalk(2, 5), compute_uv=False)
    np.testing.assert_allclose(vectors.T @ vectors, np.diag(singular[:3]), atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["karat"], ["'karat'", "Did you mean 'karate'?"]),
        (["karate", "--dimensions", "35"], ["34 nodes", "not 35"]),
        (["karate", "--dimensions", "0"], ["34 nodes", "not 0"]),
        (["karate", "--window", "0"], ["window", "at least 1", "0"]),
        (["karate", "--negative", "-2"], ["negative must be positive", "-2"]),
        (["karate", "-o", "vectors.txt"], [".npz, .npy, .csv, .tsv", "'vectors.txt'"]),
        (["karate", "-o", "vectors"], ["'vectors'"]),
        (["karate", "-o", "/dev/null/vectors.npz"], ["/dev/null/vectors.npz cannot be written"]),
        (["karate", "--json", "/dev/null/numbers.json"], ["/dev/null/numbers.json cannot be written"]),
    ],
)
def test_embed_refuses_bad_input_in_a_sentence(refused, arguments, parts):
    sentence = refused("embed", *arguments)
    for part in parts:
        assert part in sentence


def test_embed_refuses_what_memory_does_not_hold(refused, monkeypatch):
    monkeypatch.setattr("asgat.nn.connections.available_memory", lambda: 1000)
    assert "34 × 34" in refused("embed", "karate")


# -- reading arguments ------------------------------------------------------------------------------


# -- as a process -----------------------------------------------------------------------------------


def test_exit_codes_of_the_process(place):
    bad = in_process("train", "karat")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("error: There is no data set 'karat'. Did you mean 'karate'?")
    assert "Traceback" not in bad.stderr
    assert list(place.iterdir()) == []


def test_train_as_a_process_repeats_itself(asgat, place):
    train = ["train", "karate", "--model", "gcn", "--splits", "0", *QUICK]
    done = in_process(*train, "--out", "there", "--json", "there.json")
    assert done.returncode == 0, done.stderr
    assert "Test scores on karate" in done.stdout
    asgat(*train, "--out", "here", "--json", "here.json")
    there, here = (json.loads((place / name).read_text()) for name in ("there.json", "here.json"))
    assert timeless(there) == timeless(here)


def test_a_killed_process_is_taken_up_where_it_was(asgat, place):
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


def test_a_reader_that_went_away_is_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-m", "asgat", "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    process.stderr.close()
    process.wait(60)
    assert "Traceback" not in errors


def test_help_and_version(asgat):
    assert asgat("--version") == (0, f"{__version__}\n", "")
    code, output, _ = asgat("--help")
    assert code == 0
    assert all(command in output for command in ("datasets", "models", "train", "compare", "embed"))
    code, output, _ = asgat("train", "--help")
    assert code == 0
    assert all(option in output for option in ("--splits", "--seed", "--set", "--device", "--out", "--json"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_training_is_logged_for_tensorboard(asgat, place):
    pytest.importorskip("tensorboard")
    code, _, errors = asgat("train", "karate", "--model", "mlp", "--splits", "0-1", *QUICK, "--tensorboard", "logs")
    assert code == 0, errors
    assert sorted(path.name for path in (place / "logs").iterdir()) == ["run-0", "run-1"]


def test_what_is_kept_is_said_whatever_is_pressed_meanwhile(monkeypatch, capsys):
    def pressed(words):
        os.kill(os.getpid(), signal.SIGINT)
        print(words)

    monkeypatch.setattr(cli_options.errors, "print", pressed)
    assert cli_options.interrupted("Nothing is lost").exit_code == 130
    assert capsys.readouterr().out == "Interrupted. Nothing is lost; the same command goes on from there.\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
