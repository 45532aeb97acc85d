import dataclasses
import tomllib

import numpy as np
import pytest
import torch

from asgat.config import ASGATConfig
from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.experiments import trained_models as training
from asgat.experiments.reproduction import QUICK_SETTINGS, Reproduction
from asgat.experiments.trained_models import config_of, train, try_train
from asgat.recipe import load_config, read_recipe
from asgat.training.metrics import micro_f1
from asgat.training.run_directory import OtherSettingsError


@pytest.fixture
def one_split(study):
    """The karate club with a single split, as the citation graphs have."""
    data = load_dataset("karate")
    study._loaded["karate"] = dataclasses.replace(data, splits=data.splits[:1])
    return study


def test_predictions_and_weights_of_every_run_are_kept(study):
    trained = train(study, "karate", "asgat-cheb", 0)
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


def test_it_is_trained_once(study, monkeypatch):
    first = train(study, "karate", "gcn", 0)
    monkeypatch.setattr(training, "make_inputs", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr("asgat.training.runner.train_run", lambda *_: pytest.fail("trained again"))
    assert train(study, "karate", "gcn", 0).result == first.result
    again = Reproduction(study.out, quick=True, datasets=("karate",))
    assert train(again, "karate", "gcn", 0).result == first.result


def test_fresh_trains_anew_once_a_study_and_forgets_what_was_remembered(study):
    first = train(study, "karate", "gcn", 0)
    assert first.remembered("counted", lambda: 1) == 1
    assert first.remembered("counted", lambda: 2) == 1
    anew = Reproduction(study.out, quick=True, fresh=True)
    second = train(anew, "karate", "gcn", 0)
    assert second.result["rows"][0]["seconds"] != first.result["rows"][0]["seconds"]
    assert second.remembered("counted", lambda: 3) == 3
    third = train(anew, "karate", "gcn", 0)
    assert third.remembered("counted", lambda: 4) == 3
    assert third.result == second.result


def test_a_folder_is_named_by_what_differs_from_the_recipe(study):
    own = config_of("karate", "asgat-cheb")
    assert isinstance(own, ASGATConfig)
    plain = train(study, "karate", "asgat-cheb", 0)
    assert plain.folder.name == "karate-asgat-cheb-seed0"
    assert train(study, "karate", "asgat-cheb", 0, k=own.k).folder == plain.folder
    changed = train(study, "karate", "asgat-cheb", 0, k=2)
    assert changed.folder.name == "karate-asgat-cheb-k=2-seed0"
    assert tomllib.loads((changed.folder / "config.toml").read_text())["config"]["k"] == 2
    with pytest.raises(AsgatError, match="--fresh trains anew"):
        changed.load(0)  # weights of the sweep over k are not kept
    assert train(study, "karate", "asgat-cheb", 0, k=None).config.to_dict()["k"] == "none"


def test_a_long_list_of_settings_does_not_become_a_name(study):
    changes = dict(lr=0.002, weight_decay=0.0007, dropout=0.31, hidden=5, heads=2, k=3, order=4, elu="last")
    long = {**changes, "filter_activation": "relu", "normalize_features": False, "filter_hidden": (4,)}
    folder = train(study, "karate", "asgat-cheb", 0, **long).folder
    assert len(folder.name) < 60
    other = train(study, "karate", "asgat-cheb", 0, **{**long, "k": 4}).folder
    assert other != folder
    assert tomllib.loads((other / "config.toml").read_text())["config"]["k"] == 4


@pytest.mark.parametrize(
    ("nodes", "deterministic", "together"), [(34, False, True), (33, False, False), (34, True, False)]
)
def test_runs_on_a_small_graph_are_trained_together(study, monkeypatch, nodes, deterministic, together):
    asked = []
    monkeypatch.setattr(training, "TOGETHER", nodes)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: deterministic)

    def run(*_, together, **__):
        asked.append(together is not None)
        return {"rows": []}

    monkeypatch.setattr(training, "run", run)
    train(study, "karate", "asgat-cheb", 0)
    assert asked == [together]


def test_no_two_trainings_that_are_averaged_are_the_same(one_split):
    seeds = [row["seed"] for seed in (0, 1, 2) for row in train(one_split, "karate", "mlp", seed).result["rows"]]
    assert seeds == [0, 1, 10, 11, 20, 21]


def test_splits_are_trained_with_the_seed_itself(study):
    assert [row["seed"] for row in train(study, "karate", "mlp", 2).result["rows"]] == [2, 2]


def test_one_model_that_fails_does_not_stop_the_rest(study, monkeypatch):
    def fail(*_, **__):
        raise AsgatError("Training diverged at epoch 3.\nMore.")

    monkeypatch.setattr(training, "run", fail)
    assert try_train(study, "karate", "gcn", 1) is None
    assert study.failed == {"gcn on karate, seed 1": "Training diverged at epoch 3."}


def test_a_run_with_other_settings_is_an_error_that_names_the_remedy(study, monkeypatch):
    train(study, "karate", "gcn", 0)
    monkeypatch.setitem(QUICK_SETTINGS, "epochs", 4)
    with pytest.raises(OtherSettingsError, match=r"epochs.*--fresh"):
        try_train(study, "karate", "gcn", 0)
    assert study.failed == {}


def test_a_form_without_settings_borrows_those_of_asgat_cheb(monkeypatch):
    recipe = read_recipe("pubmed")
    monkeypatch.setattr(training, "read_recipe", lambda _: {"asgat-cheb": recipe["asgat-cheb"]})
    cheb = load_config("pubmed", "asgat-cheb")
    linear, arma = config_of("pubmed", "asgat-linear"), config_of("pubmed", "asgat-arma")
    assert linear == cheb
    assert isinstance(arma, ASGATConfig)
    assert isinstance(cheb, ASGATConfig)
    assert (arma.heads, arma.k, arma.operator, arma.order) == (cheb.heads, cheb.k, "arma", 30)
    assert config_of("pubmed", "gcn") == load_config("pubmed", "gcn")


def test_its_own_settings_come_first():
    assert config_of("texas", "asgat-arma") == load_config("texas", "asgat-arma")
    assert config_of("texas", "asgat-arma", k=3) == load_config("texas", "asgat-arma", {"k": 3})
