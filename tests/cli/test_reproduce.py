import json
from functools import partial

import pytest

from asgat.cli.reproduce import NAMES
from asgat.experiments import approximations, k_sweep, sparsity


@pytest.fixture
def reproduce(asgat, few_epochs):
    return partial(asgat, "reproduce")


def test_all_in_one(reproduce, place, monkeypatch):
    monkeypatch.setattr(k_sweep, "QUICK_KS", [1])
    monkeypatch.setattr(sparsity, "QUICK_KS", [1])
    monkeypatch.setattr(approximations, "ORDERS", [5])
    monkeypatch.setattr(approximations, "QUICK_EXPANSIONS", [20])
    code, output, _ = reproduce("all", "--quick", "--datasets", "karate", "--models", "asgat-cheb,mlp", "--out", "here")
    assert code == 0
    *others, authors = NAMES.split(", ")
    assert f"skipped: {authors}: {authors} has no result" in output, (
        "its authors have not published settings for karate"
    )
    for name in others:
        assert (place / "here" / f"{name}.png").is_file()
        assert json.loads((place / "here" / f"{name}.json").read_bytes())["quick"] is True
        assert f"here/{name}.json" in output
    assert "these numbers are not results" in output
    assert set(json.loads((place / "here" / "micro.json").read_bytes())["karate"]) == {"asgat-cheb", "mlp", "chosen"}


def test_a_second_call_reuses_the_runs(reproduce, monkeypatch):
    arguments = ["micro", "--quick", "--datasets", "karate", "--models", "mlp"]
    assert reproduce(*arguments)[0] == 0
    monkeypatch.setattr("asgat.training.runner.train_jobs", None)
    assert reproduce(*arguments)[0] == 0


def test_missing_data_sets_are_skipped_and_reported(reproduce):
    code, output, _ = reproduce("micro", "--quick", "--datasets", "cora, karate", "--models", "mlp")
    assert code == 0
    assert "skipped: cora: its files are not in" in output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["micr"], "There is no experiment 'micr'. Did you mean 'micro'?"),
        (["micro"], "set ASGAT_DATA_DIR or --data-dir"),
        (["all", "--quick"], "set ASGAT_DATA_DIR or --data-dir"),
        (["micro", "--datasets", "koraa"], "'koraa'"),
        (["micro", "--datasets", ","], "--datasets is empty"),
        (["micro", "--models", "gnc"], "'gnc'"),
        (["micro", "--seeds", "0,x"], "--seeds must be whole numbers such as 0-9 or 0,3,5, not '0,x'."),
        (["micro", "--device", "tpu"], "Unknown device 'tpu'"),
        (["micro", "--datasets", "minesweeper"], "minesweeper is scored by ROC-AUC"),
    ],
)
def test_bad_input_is_a_sentence_and_nothing_is_written(refused, arguments, sentence):
    assert sentence in refused("reproduce", *arguments)


def test_seeds_and_names_are_used_once(reproduce, monkeypatch):
    seen = []

    def perform(experiment, study):
        seen.append((experiment.name, study.seeds, study.datasets, study.models))
        return [], []

    monkeypatch.setattr("asgat.experiments.experiment.run_experiment", perform)
    assert reproduce("heat", "--seeds", "0, 2,2,1", "--datasets", "karate,csbm,karate", "--models", "mlp")[0] == 0
    assert seen == [("heat", (0, 1, 2), ("karate", "csbm"), ("mlp",))]
