import json

import pytest

from asgat.errors import AsgatError
from asgat.nn.registry import MODELS, ModelSpec, model_spec, register_model
from reproduce.geom_gcn import SPEC, GeomGCNConfig

QUICK = ["--splits", "0", "--set", "epochs=3", "--set", "hidden=4"]


def test_the_command_trains_it_with_the_recipe_and_published_relations(reproduce, real_data, place):
    arguments = [
        "train",
        "texas",
        "--model",
        "geom-gcn",
        *QUICK,
        "--data-dir",
        real_data,
        "--out",
        "run",
        "--json",
        "r.json",
    ]
    assert reproduce(*arguments)[0] == 0
    assert (place / "run" / "model.safetensors").is_file()
    result = json.loads((place / "r.json").read_bytes())
    assert (result["model"], result["config"]["space"], result["config"]["hidden"]) == ("geom-gcn", "poincare", 4)


def test_compare_and_a_graph_without_published_relations(reproduce, place):
    code, output, _ = reproduce("compare", "karate", "--models", "mlp,geom-gcn", *QUICK)
    assert code == 0
    assert "geom-gcn" in output


def test_the_installed_command_says_where_it_is(asgat, place):
    for arguments in (["train", "texas", "--model"], ["compare", "texas", "--models"]):
        code, _, errors = asgat(*arguments, "geom-gcn")
        assert code == 2
        assert "`python -m reproduce train DATASET --model geom-gcn`" in errors
        assert "Traceback" not in errors


def test_models_are_registered_once(monkeypatch):
    with pytest.raises(AsgatError, match="geom-gcn is not in the installed package"):
        model_spec("geom-gcn")
    monkeypatch.setitem(MODELS, "geom-gcn", SPEC)
    register_model("geom-gcn", SPEC)
    assert model_spec("geom-gcn").config is GeomGCNConfig
    with pytest.raises(AsgatError, match="There is a model 'gcn' already"):
        register_model("gcn", ModelSpec(**vars(SPEC)))
