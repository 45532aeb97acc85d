import json
import sys
import tomllib

import pytest
from tests.training.tiny import tiny_dataset

from asgat.cli.tune import command, fast_sentence, recipe_text
from asgat.errors import AsgatError
from asgat.recipe import check_recipe, load_config, read_recipe_file

pytest.importorskip("optuna")
import optuna

from asgat.tuning.evaluation import TrialScore

QUICK = ["--splits", "0-1", "--set", "epochs=8", "--set", "hidden=4", "--set", "max_restarts=0"]
SCORES = ("micro_f1", "macro_f1", "roc_auc", "test")


@pytest.fixture
def done(asgat):
    """A function that runs a command which must succeed and returns what it printed."""

    def call(*arguments):
        code, output, errors = asgat(*arguments)
        assert code == 0, errors
        return output

    return call


def read_log(folder):
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]


def read_found(folder, model="mlp"):
    return tomllib.loads((folder / "recipe.toml").read_text())[model]["found"]


@pytest.mark.parametrize("model", ["gcn", "asgat-plus", "asgat-deep"])
def test_a_search_writes_a_log_and_a_recipe(model, done, place):
    out = place / "out"
    own = ["--set", "heads=2", "--set", "k=3"] if model != "gcn" else []
    search = ["tune", "karate", "--model", model, *QUICK, *own, "--out", "out", "--json", "j.json"]
    assert "Best trials" in done(*search, "--trials", 3)
    result, log = json.loads((place / "j.json").read_text()), read_log(out)
    assert [row["trial"] for row in log] == [row["trial"] for row in result["rows"]] == [0, 1, 2]
    best = max(log, key=lambda row: row["value"])
    recipe = tomllib.loads((out / "recipe.toml").read_text())
    found = recipe[model].pop("found")
    assert recipe == {"model": model, model: best["settings"]}
    assert found["val_micro_f1"] == pytest.approx(best["value"], abs=1e-6)
    assert (found["seed"], found["trials"]) == (0, 3)
    assert found["command"].startswith(f"asgat tune karate --model {model} --trials 3 --seed 0 --splits 0-1 --set epo")

    done(*search, "--trials", 5)
    more = read_log(out)
    assert more[:3] == log
    assert len(more) == 5

    study = optuna.load_study(study_name=None, storage=f"sqlite:///{out}/study.db")
    known = [study.user_attrs, *({**trial.params, **trial.user_attrs} for trial in study.trials)]
    texts = [
        json.dumps(known),
        *((place / name).read_text() for name in ("out/trials.jsonl", "j.json", "out/recipe.toml")),
    ]
    for text in texts:
        for words in ("val_micro_f1", '"metric": "micro_f1"', "test nodes were not used"):
            text = text.replace(words, "")
        assert not [word for word in SCORES if word in text], "no test score"

    done("train", "karate", "--recipe", "out/recipe.toml", "--splits", "0-1", "--out", "run", "--json", "trained.json")
    again = json.loads((place / "trained.json").read_text())
    assert again["model"] == model
    assert again["val_micro_f1"] == pytest.approx(max(row["value"] for row in more), abs=1e-6)


def test_of_trials_as_good_as_the_best_the_fastest_is_taken(done, place, monkeypatch):
    scores = iter([(0.80, 9.0), (0.60, 1.0), (0.799, 3.0)])

    class Fake:
        splits = range(4)

        def __init__(self, *_):
            pass

        def __call__(self, config):
            value, seconds = next(scores)
            return TrialScore(value, 0.02, value, value, 5.0, 0, 0, seconds)

    monkeypatch.setattr("asgat.tuning.evaluation.Evaluation", Fake)
    search = ["tune", "karate", "--model", "mlp", *QUICK, "--trials", 3, "--out", "out", "--json", "j.json"]
    output = done(*search, "--prefer-fast")
    assert "Trial 2 trains in 3.0 s instead of 9.0 s, and is within half a standard error of the best: 79.90" in output
    found, result = read_found(place / "out"), json.loads((place / "j.json").read_text())
    assert (found["trial"], found["val_micro_f1"]) == (2, 0.799)
    assert "--prefer-fast" in found["command"]
    assert (result["best"]["trial"], result["fast"]["trial"]) == (0, 2)
    assert "Trial 2 trains" not in done(*search), "only where it was asked for"
    assert read_found(place / "out")["trial"] == 0


def test_the_best_may_be_the_fastest():
    row = {"trial": 4, "value": 0.8, "seconds": 2.0}
    assert fast_sentence(row, row).startswith("Trial 4 is both the best and the fastest")


def test_a_search_by_another_metric_says_so(done, place, monkeypatch):
    monkeypatch.setattr("asgat.data.load_dataset", lambda *_: tiny_dataset(metric="roc_auc"))
    done("tune", "minesweeper", "--model", "mlp", *QUICK, "--trials", 2, "--out", place)
    found = read_found(place)
    assert 0 < found["val_roc_auc"] <= 1
    assert "val_micro_f1" not in found


def test_a_search_by_macro_f1_says_so(done, place):
    output = done("tune", "karate", "--model", "mlp", *QUICK, "--trials", 2, "--out", place, "--macro")
    assert "validation nodes, mean of score and macro-F1" in output
    log, found = read_log(place), read_found(place)
    assert all(row["with_macro"] for row in log)
    assert all(row["value"] == pytest.approx((row["val"] + row["macro"]) / 2) for row in log)
    assert found["val_micro_f1_and_macro"] == pytest.approx(max(row["value"] for row in log), abs=1e-6)
    assert "--macro" in found["command"]


def test_a_search_by_held_out_and_validation_nodes_says_so(done, place):
    output = done("tune", "karate", "--model", "mlp", *QUICK, "--trials", 2, "--folds", 2, "--both", "--out", place)
    assert "held-out training nodes and validation nodes" in output
    log = read_log(place)
    assert all(row["with_validation"] and row["folds"] == 2 for row in log)
    best = max(row["value"] for row in log)
    assert read_found(place)["held_out_and_val_micro_f1"] == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch"], "There is no data set 'nosuch'"),
        (["karate", "--model", "gnc"], "Unknown model 'gnc'"),
        (["karate", "--both"], "--both needs --folds"),
        (["karate", "--set", "root=true"], "asgat-cheb fixes root"),
        (["karate", "--set", "nosuch=1"], "Unknown setting 'nosuch'"),
        (["karate", "--splits", "0-99"], "karate has splits 0 to 9"),
        (["karate", "--storage", "nosuch://there"], "--storage nosuch://… is not a URL of a database"),
    ],
)
def test_bad_input_is_a_sentence(arguments, words, refused):
    assert words in refused("tune", *arguments)


def test_a_search_of_an_earlier_version_is_kept(refused, place):
    (place / "journal.log").write_text("{}")
    words = refused("tune", "karate", "--model", "mlp", *QUICK, "--out", place)
    assert "holds a search of an earlier version, which cannot go on; choose another --out." in words


def test_an_interrupted_search_goes_on_in_a_storage_of_any_url(asgat, done, place, monkeypatch):
    search = ["tune", "karate", "--model", "mlp", *QUICK, "--trials", 2, "--out", "out"]
    search += ["--storage", f"sqlite:///{place}/mine.db"]
    with monkeypatch.context() as patch:
        patch.setattr("asgat.tuning.evaluation.Evaluation.__call__", interrupt)
        code, _, errors = asgat(*search)
    assert (code, errors) == (130, "Interrupted. Finished trials are saved; run the same command again to resume.\n")
    done(*search)
    assert [row["trial"] for row in read_log(place / "out")] == [0, 1]
    assert (place / "mine.db").is_file()
    assert not (place / "out" / "study.db").exists()


def interrupt(*_):
    raise KeyboardInterrupt


def test_a_search_has_at_least_one_trial(asgat):
    code, _, errors = asgat("tune", "karate", "--trials", 0)
    assert code == 2
    assert "--trials" in errors


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "r.toml cannot be read: No such file"),
        ("[gcn\n", "r.toml cannot be read as TOML"),
        ("[gcn]\nheads = 3\n", "r.toml, gcn: gcn has no setting 'heads'"),
    ],
)
def test_a_bad_recipe_file_is_refused(content, words, refused, place):
    if content is not None:
        (place / "r.toml").write_text(content)
    assert words in refused("train", "karate", "--recipe", "r.toml")


def test_the_command_names_the_options_that_are_not_the_default():
    given = {"model": "gcn", "trials": 40, "seed": 0, "splits": False, "folds": 0, "both": False, "protocol": None}
    assert command(["texas"], given, []) == "asgat tune texas --model gcn --trials 40 --seed 0"
    given |= {"splits": "0,2", "folds": 5, "both": True, "protocol": "full"}
    end = "--seed 0 --splits 0,2 --folds 5 --both --protocol full --set lr=1"
    assert command(["texas"], given, ["lr=1"]).endswith(end)


FOUND = {"command": "asgat tune texas", "seed": 0, "trials": 3, "val_micro_f1": 0.8}


def test_a_recipe_can_be_written_and_read(tmp_path):
    settings = {"lr": 0.02, "k": None, "filter_hidden": (5, 6), "mix": True, "elu": "none"}
    path = tmp_path / "recipe.toml"
    path.write_text(recipe_text("asgat-plus", settings, FOUND))
    recipe = read_recipe_file(path)
    assert recipe["model"] == "asgat-plus"
    assert recipe["asgat-plus"]["found"] == FOUND
    config = load_config("texas", "asgat-plus", file=path)
    assert {key: getattr(config, key) for key in settings} == settings
    check_recipe(tomllib.loads(path.read_text()), "here")


def test_unknown_settings_are_refused():
    with pytest.raises(AsgatError, match="gcn has no setting 'heads'"):
        recipe_text("gcn", {"heads": 3}, FOUND)


def test_without_optuna_the_extra_is_named(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "asgat.tuning.storage")
    assert "pip install 'asgat[tune]'" in refused("tune", "karate")
