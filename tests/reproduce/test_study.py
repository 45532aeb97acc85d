import dataclasses
import tomllib
from typing import Any

import numpy as np
import pytest
import torch

from asgat.config import ASGATConfig
from asgat.errors import AsgatError
from asgat.recipe import load_config, read_recipe
from asgat.training import runner
from asgat.training.metrics import micro_f1
from asgat.training.run_directory import OtherSettingsError
from reproduce import study as module
from reproduce.study import QUICK_SETTINGS, SEEDS, NoResultError, Study, study_config


def test_data_sets_are_the_experiments_own_the_quick_ones_or_those_asked_for(place):
    assert Study(place).seeds == SEEDS == (0, 1, 2)
    assert Study(place, seeds=(4, 7), quick=True).seeds == (4,)
    assert Study(place).select_datasets(["karate", "csbm"], ["csbm"]) == ["karate", "csbm"]
    assert Study(place, quick=True).select_datasets(["karate", "csbm"], ["csbm"]) == ["csbm"]
    assert Study(place, datasets=("digits",)).select_datasets(["karate"], ["csbm"]) == ["digits"]


def test_data_sets_without_files_are_skipped(place):
    study = Study(place)
    assert study.select_datasets(["karate", "cora"], []) == ["karate"]
    assert list(study.skipped) == ["cora"]
    with pytest.raises(NoResultError, match=r"cora, texas are not in .*no-data; set ASGAT_DATA_DIR or --data-dir"):
        study.select_datasets(["cora", "texas"], [])
    assert study.select_datasets(["cora"], [], needed=False) == []


def test_predictions_and_weights_of_every_run_are_kept(study):
    trained = study.train("karate", "asgat-cheb")
    assert trained.runs == [0, 1]
    inputs = trained.inputs(torch.device("cpu"))
    for row in trained.result["rows"]:
        test = trained.split(row["run"]).test
        prediction = trained.predictions(row["run"])
        assert micro_f1(trained.dataset.y[test], prediction[test]) == row["micro_f1"]
        with torch.no_grad():
            again = trained.load(row["run"])(*inputs).argmax(-1).numpy()
        np.testing.assert_array_equal(again, prediction)


def test_damaged_predictions_and_weights_are_named(study):
    trained = study.train("karate", "asgat-cheb")
    for name, read in (("predictions-0.npy", trained.predictions), ("weights-0.safetensors", trained.load)):
        content = (trained.folder / name).read_bytes()
        for damage in (b"", content[:-9], b"x" * 500):
            (trained.folder / name).write_bytes(damage)
            with pytest.raises(AsgatError, match=f"{name}.*train again with --fresh"):
                read(0)


def test_a_model_is_trained_once_unless_fresh(study, monkeypatch):
    first = study.train("karate", "gcn").result
    fresh: Any = Study(study.out, quick=True, fresh=True)
    second = fresh.train("karate", "gcn").result
    assert second["rows"][0]["seconds"] != first["rows"][0]["seconds"]
    monkeypatch.setattr("asgat.training.runner.train_jobs", None)  # another training would fail
    assert fresh.train("karate", "gcn").result == second
    fresh.fresh = False
    assert fresh.train("karate", "gcn").result == second


def test_a_folder_is_named_by_what_differs_from_the_recipe(study):
    own = study_config("karate", "asgat-cheb").to_dict()["k"]
    plain = study.train("karate", "asgat-cheb")
    assert plain.folder.name == "karate-asgat-cheb-seed0"
    assert study.train("karate", "asgat-cheb", k=own).folder == plain.folder
    changed = study.train("karate", "asgat-cheb", k=2)
    assert changed.folder.name == "karate-asgat-cheb-k=2-seed0"
    assert tomllib.loads((changed.folder / "config.toml").read_text())["config"]["k"] == 2
    long = dict(lr=0.002, weight_decay=0.0007, dropout=0.31, hidden=5, heads=2, k=3, order=4, elu="last", bias=False)
    long |= {"filter_activation": "relu", "normalize_features": False, "filter_hidden": (4,)}
    hashed = study.train("karate", "asgat-cheb", **long).folder
    assert len(hashed.name) < 60
    assert study.train("karate", "asgat-cheb", **{**long, "k": 4}).folder != hashed


def test_all_trainings_that_are_averaged_have_different_seeds(study):
    assert [row["seed"] for row in study.train("karate", "mlp", 2).result["rows"]] == [2, 2]
    data = study.load("karate")
    study._loaded["karate"] = dataclasses.replace(data, splits=data.splits[:1])
    other: Any = Study(study.out / "other", quick=True, _loaded=study._loaded)
    results = [other.train("karate", "mlp", seed).result for seed in (0, 1, 2)]
    assert [row["seed"] for result in results for row in result["rows"]] == [0, 1, 10, 11, 20, 21]


def test_a_training_that_fails_is_listed_and_its_model_not_averaged(study, monkeypatch):
    whole, study.seeds = runner.run, (0, 1)

    def fail(*arguments):
        if arguments[4] == 1:
            raise AsgatError("Training diverged at epoch 3.\nMore.")
        return whole(*arguments)

    monkeypatch.setattr(module, "run", fail)
    assert study.train_all_seeds("karate", "gcn") is None
    assert study.failed == {"gcn on karate, seed 1": "Training diverged at epoch 3."}
    monkeypatch.undo()
    assert [one.folder.name for one in study.train_all_seeds("karate", "mlp")] == [
        f"karate-mlp-seed{s}" for s in (0, 1)
    ]


def test_a_run_with_other_settings_is_an_error(study, monkeypatch):
    study.train("karate", "gcn")
    monkeypatch.setitem(QUICK_SETTINGS, "epochs", 4)
    with pytest.raises(OtherSettingsError, match=r"epochs.*--fresh"):
        study.train("karate", "gcn")
    assert study.failed == {}


def test_a_directed_graph_is_trained_by_models_that_can_use_it(study, real_data):
    study.data_dir = real_data
    name = "chameleon-filtered-directed"
    assert study.train(name, "gcn") is None
    assert "cannot use directions" in study.failed[f"gcn on {name}, seed 0"]
    assert study.train(name, "asgat-plus", hidden=4, heads=1, members=1).result["micro_f1"]["mean"] > 0


def test_a_form_without_settings_borrows_those_of_asgat_cheb(monkeypatch):
    assert study_config("texas", "asgat-arma", k=3) == load_config("texas", "asgat-arma", {"k": 3})
    recipe = read_recipe("pubmed")
    monkeypatch.setattr(module, "read_recipe", lambda _: {"asgat-cheb": recipe["asgat-cheb"]})
    cheb = load_config("pubmed", "asgat-cheb")
    linear, arma = study_config("pubmed", "asgat-linear"), study_config("pubmed", "asgat-arma")
    assert linear == cheb
    assert isinstance(arma, ASGATConfig)
    assert isinstance(cheb, ASGATConfig)
    assert (arma.heads, arma.k, arma.operator, arma.order) == (cheb.heads, cheb.k, "arma", 30)
    assert study_config("pubmed", "gcn") == load_config("pubmed", "gcn")
