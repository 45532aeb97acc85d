import dataclasses
import tomllib

import numpy as np
import pytest
import torch

from asgat.config import ASGATConfig
from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.experiments import trained_model as module
from asgat.experiments.reproduction import QUICK_SETTINGS, Reproduction
from asgat.experiments.trained_model import experiment_config, load_or_train, train_all_seeds, try_load_or_train
from asgat.recipe import load_config, read_recipe
from asgat.training.metrics import micro_f1
from asgat.training.run_directory import OtherSettingsError


@pytest.fixture
def one_split(reproduction):
    """The karate club with a single split, like the citation graphs."""
    data = load_dataset("karate")
    reproduction._loaded["karate"] = dataclasses.replace(data, splits=data.splits[:1])
    return reproduction


def test_predictions_and_weights_of_every_run_are_kept(reproduction):
    trained = load_or_train(reproduction, "karate", "asgat-cheb", 0)
    assert trained.runs == [0, 1]
    inputs = trained.inputs(torch.device("cpu"))
    for row in trained.result["rows"]:
        test = trained.split(row["run"]).test
        prediction = trained.predictions(row["run"])
        assert prediction.shape == (34,)
        assert micro_f1(trained.dataset.y[test], prediction[test]) == row["micro_f1"]
        with torch.no_grad():
            again = trained.load(row["run"])(*inputs).argmax(-1).numpy()
        np.testing.assert_array_equal(again, prediction)


def test_damaged_predictions_and_weights_are_named(reproduction):
    trained = load_or_train(reproduction, "karate", "asgat-cheb", 0)
    path, weights = trained.folder / "predictions" / "0.npy", trained.folder / "weights" / "0.safetensors"
    for damage in (b"", path.read_bytes()[:-9], b"x" * 500):
        path.write_bytes(damage)
        with pytest.raises(AsgatError, match=r"0\.npy cannot be read: .*; train again with --fresh"):
            trained.predictions(0)
    for other in (np.zeros(33, np.int16), np.zeros(34), np.zeros((34, 2), np.int16)):
        np.save(path, other)
        with pytest.raises(AsgatError, match=r"0\.npy does not hold a class for each of 34 nodes; train again"):
            trained.predictions(0)
    path.unlink()
    with pytest.raises(AsgatError, match="No such file; train again with --fresh"):
        trained.predictions(0)
    for damage in (b"", weights.read_bytes()[:-9], b"x" * 500):
        weights.write_bytes(damage)
        with pytest.raises(AsgatError, match="train again with --fresh"):
            trained.load(0)


def test_a_model_is_trained_once(reproduction, monkeypatch):
    first = load_or_train(reproduction, "karate", "gcn", 0)
    monkeypatch.setattr(module, "make_inputs", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr("asgat.training.runner.train_jobs", lambda *_: pytest.fail("trained again"))
    assert load_or_train(reproduction, "karate", "gcn", 0).result == first.result
    again = Reproduction(reproduction.out, quick=True, datasets=("karate",))
    assert load_or_train(again, "karate", "gcn", 0).result == first.result


def test_fresh_trains_again_once_and_discards_cached_values(reproduction):
    first = load_or_train(reproduction, "karate", "gcn", 0)
    assert first.cached("counted", lambda: 1) == 1
    assert first.cached("counted", lambda: 2) == 1
    fresh = Reproduction(reproduction.out, quick=True, fresh=True)
    second = load_or_train(fresh, "karate", "gcn", 0)
    assert second.result["rows"][0]["seconds"] != first.result["rows"][0]["seconds"]
    assert second.cached("counted", lambda: 3) == 3
    third = load_or_train(fresh, "karate", "gcn", 0)
    assert third.cached("counted", lambda: 4) == 3
    assert third.result == second.result


def test_a_folder_is_named_by_what_differs_from_the_recipe(reproduction):
    own = experiment_config("karate", "asgat-cheb")
    assert isinstance(own, ASGATConfig)
    plain = load_or_train(reproduction, "karate", "asgat-cheb", 0)
    assert plain.folder.name == "karate-asgat-cheb-seed0"
    assert load_or_train(reproduction, "karate", "asgat-cheb", 0, k=own.k).folder == plain.folder
    changed = load_or_train(reproduction, "karate", "asgat-cheb", 0, k=2)
    assert changed.folder.name == "karate-asgat-cheb-k=2-seed0"
    assert tomllib.loads((changed.folder / "config.toml").read_text())["config"]["k"] == 2
    with pytest.raises(AsgatError, match="train again with --fresh"):
        changed.load(0)  # weights of the sweep over k are not kept
    assert load_or_train(reproduction, "karate", "asgat-cheb", 0, k=None).config.to_dict()["k"] == "none"


def test_a_long_list_of_settings_is_replaced_by_a_hash(reproduction):
    changes = dict(lr=0.002, weight_decay=0.0007, dropout=0.31, hidden=5, heads=2, k=3, order=4, elu="last")
    long = {**changes, "filter_activation": "relu", "normalize_features": False, "filter_hidden": (4,)}
    folder = load_or_train(reproduction, "karate", "asgat-cheb", 0, **long).folder
    assert len(folder.name) < 60
    other = load_or_train(reproduction, "karate", "asgat-cheb", 0, **{**long, "k": 4}).folder
    assert other != folder
    assert tomllib.loads((other / "config.toml").read_text())["config"]["k"] == 4


def test_all_trainings_that_are_averaged_have_different_seeds(one_split):
    results = [load_or_train(one_split, "karate", "mlp", seed).result for seed in (0, 1, 2)]
    assert [row["seed"] for result in results for row in result["rows"]] == [0, 1, 10, 11, 20, 21]


def test_splits_are_trained_with_the_seed_itself(reproduction):
    assert [row["seed"] for row in load_or_train(reproduction, "karate", "mlp", 2).result["rows"]] == [2, 2]


def test_a_training_that_fails_is_listed(reproduction, monkeypatch):
    def fail(*_, **__):
        raise AsgatError("Training diverged at epoch 3.\nMore.")

    monkeypatch.setattr(module, "run", fail)
    assert try_load_or_train(reproduction, "karate", "gcn", 1) is None
    assert reproduction.failed == {"gcn on karate, seed 1": "Training diverged at epoch 3."}


def test_a_model_that_fails_with_one_seed_is_not_averaged(reproduction, monkeypatch):
    reproduction.seeds = (0, 1)
    trained = train_all_seeds(reproduction, "karate", "mlp")
    assert trained is not None
    assert [one.folder.name for one in trained] == ["karate-mlp-seed0", "karate-mlp-seed1"]
    monkeypatch.setattr(module, "try_load_or_train", lambda *a, **k: None if a[3] == 1 else trained[0])
    assert train_all_seeds(reproduction, "karate", "mlp") is None


def test_a_run_with_other_settings_is_an_error(reproduction, monkeypatch):
    load_or_train(reproduction, "karate", "gcn", 0)
    monkeypatch.setitem(QUICK_SETTINGS, "epochs", 4)
    with pytest.raises(OtherSettingsError, match=r"epochs.*--fresh"):
        try_load_or_train(reproduction, "karate", "gcn", 0)
    assert reproduction.failed == {}


def test_a_form_without_settings_borrows_those_of_asgat_cheb(monkeypatch):
    recipe = read_recipe("pubmed")
    monkeypatch.setattr(module, "read_recipe", lambda _: {"asgat-cheb": recipe["asgat-cheb"]})
    cheb = load_config("pubmed", "asgat-cheb")
    linear, arma = experiment_config("pubmed", "asgat-linear"), experiment_config("pubmed", "asgat-arma")
    assert linear == cheb
    assert isinstance(arma, ASGATConfig)
    assert isinstance(cheb, ASGATConfig)
    assert (arma.heads, arma.k, arma.operator, arma.order) == (cheb.heads, cheb.k, "arma", 30)
    assert experiment_config("pubmed", "gcn") == load_config("pubmed", "gcn")


def test_settings_of_the_recipe_come_first():
    assert experiment_config("texas", "asgat-arma") == load_config("texas", "asgat-arma")
    assert experiment_config("texas", "asgat-arma", k=3) == load_config("texas", "asgat-arma", {"k": 3})
