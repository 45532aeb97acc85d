import json
import tomllib

import pytest
from tests.training.tiny import tiny_dataset
from typer.testing import CliRunner

from asgat.cli.app import app
from asgat.cli.tune import command
from asgat.errors import AsgatError

pytest.importorskip("optuna")
QUICK = ["--splits", "0-1", "--set", "epochs=8", "--set", "hidden=4", "--set", "max_restarts=0"]
SCORES = ("micro_f1", "macro_f1", "roc_auc", "test")


def invoke(*arguments):
    result = CliRunner().invoke(app, list(arguments))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("model", ["gcn", "asgat-plus"])
def test_a_search_leaves_a_log_a_recipe_and_a_figure(model, tmp_path):
    out = tmp_path / "out"
    own = ["--set", "heads=2", "--set", "k=3"] if model == "asgat-plus" else []
    search = ["tune", "karate", "--model", model, *QUICK, *own, "--out", str(out), "--json", str(tmp_path / "j.json")]
    shown = invoke(*search, "--trials", "3").stdout
    assert "Best trials" in shown
    result = json.loads((tmp_path / "j.json").read_text())
    log = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
    assert [row["trial"] for row in log] == [row["trial"] for row in result["rows"]] == [0, 1, 2]
    best = max(log, key=lambda row: row["value"])
    recipe = tomllib.loads((out / "recipe.toml").read_text())
    found = recipe[model].pop("found")
    assert recipe == {"model": model, model: best["settings"]}
    assert found["val_micro_f1"] == pytest.approx(best["value"], abs=1e-6)
    assert (found["seed"], found["trials"]) == (0, 3)
    assert found["command"].startswith(f"asgat tune karate --model {model} --trials 3 --seed 0 --splits 0-1 --set epo")
    assert (out / "search.png").read_bytes().startswith(b"\x89PNG")

    invoke(*search, "--trials", "5")
    more = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
    assert more[:3] == log
    assert len(more) == 5

    texts = [(out / name).read_text() for name in ("trials.jsonl", "journal.log")]
    texts += [(tmp_path / "j.json").read_text(), (out / "recipe.toml").read_text()]
    for text in texts:
        for allowed in (
            "val_micro_f1",
            '"metric": "micro_f1"',
            '\\"metric\\": \\"micro_f1\\"',
            "test nodes were not used",
        ):
            text = text.replace(allowed, "")
        assert not [word for word in SCORES if word in text], "no test figure"

    trained = invoke(
        "train", "karate", "--recipe", str(out / "recipe.toml"), "--splits", "0-1", "--out", str(tmp_path / "run"),
        "--json", str(tmp_path / "trained.json"),
    )  # fmt: skip
    assert trained.exit_code == 0
    again = json.loads((tmp_path / "trained.json").read_text())
    assert again["model"] == model
    assert again["val_micro_f1"] == pytest.approx(max(row["value"] for row in more), abs=1e-6)


def test_a_search_of_another_metric_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("asgat.data.load_dataset", lambda *_: tiny_dataset(metric="roc_auc"))
    invoke("tune", "minesweeper", "--model", "mlp", *QUICK, "--trials", "2", "--out", str(tmp_path))
    found = tomllib.loads((tmp_path / "recipe.toml").read_text())["mlp"]["found"]
    assert 0 < found["val_roc_auc"] <= 1
    assert "val_micro_f1" not in found


def test_a_search_by_macro_f1_too_says_so(tmp_path):
    search = ["tune", "karate", "--model", "mlp", *QUICK, "--trials", "2", "--out", str(tmp_path)]
    shown = invoke(*search, "--macro").stdout
    assert "mean of score and macro-F1" in " ".join(shown.split())
    log = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    assert all(row["with_macro"] for row in log)
    assert all(row["value"] == pytest.approx((row["val"] + row["macro"]) / 2) for row in log)
    found = tomllib.loads((tmp_path / "recipe.toml").read_text())["mlp"]["found"]
    assert found["val_micro_f1_and_macro"] == pytest.approx(max(row["value"] for row in log), abs=1e-6)
    assert "--macro" in found["command"]


def test_a_search_by_both_judges_says_so(tmp_path):
    search = ["tune", "karate", "--model", "mlp", *QUICK, "--trials", "2", "--folds", "2", "--both"]
    shown = invoke(*search, "--out", str(tmp_path)).stdout
    assert "training nodes left out and validation nodes" in " ".join(shown.split())
    log = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    assert all(row["with_validation"] and row["folds"] == 2 for row in log)
    found = tomllib.loads((tmp_path / "recipe.toml").read_text())["mlp"]["found"]
    assert found["held_out_and_val_micro_f1"] == pytest.approx(max(row["value"] for row in log), abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch"], "There is no data set 'nosuch'"),
        (["karate", "--model", "gnc"], "Unknown model 'gnc'"),
        (["karate", "--trials", "0"], "--trials must be at least 1"),
        (["karate", "--both"], "--both is for --folds"),
        (["karate", "--set", "root=true"], "asgat-cheb fixes root"),
        (["karate", "--set", "nosuch=1"], "Unknown setting 'nosuch'"),
        (["karate", "--splits", "0-99"], "karate has splits 0 to 9"),
        (["karate", "--storage", "nosuch://there"], "not a supported database"),
    ],
)
def test_bad_input_is_a_sentence(arguments, words, tmp_path):
    with pytest.raises(AsgatError, match=words):
        invoke("tune", *arguments, "--out", str(tmp_path))


def test_a_recipe_that_is_none_is_told(tmp_path):
    path = tmp_path / "r.toml"
    with pytest.raises(AsgatError, match=r"r.toml cannot be read: No such file"):
        invoke("train", "karate", "--recipe", str(path), "--out", str(tmp_path / "run"))
    path.write_text("[gcn\n")
    with pytest.raises(AsgatError, match=r"r.toml cannot be read as TOML"):
        invoke("train", "karate", "--recipe", str(path), "--out", str(tmp_path / "run"))
    path.write_text("[gcn]\nheads = 3\n")
    with pytest.raises(AsgatError, match=r"r.toml, gcn: gcn has no setting 'heads'"):
        invoke("train", "karate", "--recipe", str(path), "--out", str(tmp_path / "run"))


def test_the_command_names_what_is_not_usual():
    plain = command("texas", "gcn", 40, "0-9", 0, [], 4, None)
    assert plain == "asgat tune texas --model gcn --trials 40 --seed 0"
    judged = command("texas", "gcn", 40, "0-9", 0, [], 4, None, 5, True, True)
    assert judged.endswith("--seed 0 --folds 5 --both --macro")
    full = command("texas", "gcn", 40, "0,2", 1, ["lr=1"], 2, "full")
    assert full.endswith("--seed 1 --splits 0,2 --batch 2 --protocol full --set lr=1")
