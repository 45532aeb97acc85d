"""Run directories read back with the graph they were trained on."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.estimator.graph_file import encode_graph
from asgat.estimator.trained_run import load_run
from asgat.graph import Graph
from asgat.nn.registry import make_config
from asgat.training.run_directory import encode_model, load_model, read_metadata
from asgat.training.runner import run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of two splits of the karate club."""
    path = tmp_path_factory.mktemp("run")
    config = make_config("asgat-plus", epochs=3, hidden=4, heads=2, k=3, order=4)
    return path, run(load_dataset("karate"), "asgat-plus", config, runs=[0, 1], out=path)


def test_a_run_on_a_data_set_by_name(trained):
    path, result = trained
    found = load_run(path)
    kept = max(result["rows"], key=lambda row: row["val_score"])
    split = load_dataset("karate").splits[kept["run"]]
    assert found.name == "asgat-plus"
    assert not found.is_user_graph
    assert found.ids == list(range(34))
    assert np.array_equal(np.flatnonzero(found.train_mask), split.train)
    assert np.array_equal(np.flatnonzero(found.val_mask), split.val)
    assert np.array_equal(np.flatnonzero(found.test_mask), split.test)
    right = found.logits().argmax(-1).numpy() == found.y
    assert right[found.test_mask].mean() == pytest.approx(kept["micro_f1"])


def own(trained, path, classes=("left", "right")):
    """The same run with the graph inside, as `asgat fit` writes it."""
    source, _ = trained
    metadata = {**read_metadata(source), "protocol": "own"}
    (path / "model.safetensors").write_bytes(encode_model(load_model(source)[0].state_dict(), metadata))
    dataset = load_dataset("karate")
    (path / "graph.npz").write_bytes(encode_graph(dataset, [f"member {i}" for i in range(34)]))
    names = {"classes": list(classes), "feature_names": [f"is {i}" for i in range(34)]}
    (path / "encoder.json").write_text(json.dumps(names))
    return path


def test_a_run_on_a_graph_of_the_users_own(trained, tmp_path):
    found = load_run(own(trained, tmp_path))
    assert found.is_user_graph
    assert found.ids[3] == "member 3"
    assert found.number_of("member 3") == 3
    assert found.class_names == ["left", "right"]
    assert found.feature_names[2] == "is 2"
    assert torch.equal(found.logits(), load_run(trained[0]).logits())
    with pytest.raises(AsgatError, match="no node 'x'"):
        found.number_of("x")


def test_files_that_do_not_match_are_refused(trained, tmp_path):
    with pytest.raises(AsgatError, match="do not match: the model has"):
        load_run(own(trained, tmp_path, classes=("a", "b", "c")))


def test_a_directed_graph_does_not_match_an_undirected_model(trained, tmp_path):
    own(trained, tmp_path)
    club = load_dataset("karate")
    directed = replace(club, graph=Graph(club.graph.adjacency, directed=True))
    (tmp_path / "graph.npz").write_bytes(encode_graph(directed, [f"member {i}" for i in range(34)]))
    with pytest.raises(AsgatError, match="do not match: either the model or the graph is directed; fit again"):
        load_run(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"classes": 3, "feature_names": []}', "[" * 100_000])
def test_a_broken_encoder_is_told(trained, tmp_path, content):
    (own(trained, tmp_path) / "encoder.json").write_text(content)
    with pytest.raises(AsgatError, match=r"encoder\.json"):
        load_run(tmp_path)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(AsgatError, match="not a run directory with a model"):
        load_run(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(AsgatError, match="is not a model of this package"):
        load_run(tmp_path)


def test_a_run_without_its_graph_is_refused(trained, tmp_path):
    (own(trained, tmp_path) / "graph.npz").unlink()
    with pytest.raises(AsgatError, match=r"has no graph.npz, the graph its model was trained on; use a run directory"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("left", "content"),
    [
        ("leaderboard.json", ""),
        ("unfinished.safetensors", ""),
        ("config.toml", 'model = "gcn"\nprotocol = "own"\nruns = [0]\n'),
    ],
)
def test_an_unfinished_training_is_told(tmp_path, left, content):
    (tmp_path / left).write_text(content)
    with pytest.raises(AsgatError, match="holds an unfinished training; start the same command again"):
        load_run(tmp_path)


@pytest.mark.parametrize("content", ["", 'model = "gcn"', "no toml"])
def test_a_folder_with_another_config_is_no_training(tmp_path, content):
    (tmp_path / "config.toml").write_text(content)
    with pytest.raises(AsgatError, match="is not a run directory with a model"):
        load_run(tmp_path)
