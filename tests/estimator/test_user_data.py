"""A user's graph as data for any model."""

from dataclasses import replace

import numpy as np
import pytest

from asgat.data import contextual_sbm
from asgat.data.digest import dataset_digest
from asgat.errors import AsgatError
from asgat.estimator.classifier import DEFAULTS, ASGATClassifier
from asgat.estimator.encoded_graph import encode_user_graph
from asgat.estimator.user_data import UserData
from asgat.nn.registry import make_config
from asgat.tabular.column import Column
from asgat.tabular.conversions import as_user_graph
from asgat.training.run_directory import RunDirectory
from asgat.training.runner import run


@pytest.fixture(scope="module")
def graph():
    data = contextual_sbm(num_nodes=80, signal=1.0, num_features=3, seed=0)
    whole = as_user_graph(data.graph, data.x)
    return replace(whole, label=Column.of_array("kind", data.y), name="blocks")


@pytest.fixture(scope="module")
def fitted(graph, tmp_path_factory):
    """A run directory of a fit with two repeats by macro-F1."""
    path = tmp_path_factory.mktemp("fitted")
    model = ASGATClassifier("gcn", epochs=4, metric="macro_f1", seed=3)
    model.fit_encoded(encode_user_graph(graph, seed=3, repeats=2, metric="macro_f1"))
    return model.save_pretrained(path)


def test_every_run_has_the_split_of_a_repeat_of_fit(graph):
    data, repeats = UserData.from_graph(graph, seed=3, runs=3).dataset, encode_user_graph(graph, seed=3, repeats=3)
    assert len(data.splits) == 3
    for split, other in zip(data.splits, repeats.dataset.splits, strict=True):
        assert all(np.array_equal(split.parts()[part], other.parts()[part]) for part in ("train", "val", "test"))
    assert not np.array_equal(data.splits[0].train, data.splits[1].train)


def test_a_given_split_is_there_once_so_that_runs_differ_by_their_seed(graph):
    parts = Column.of_objects("part", [("train", "val", "test")[i % 3] for i in range(80)])
    data = UserData.from_graph(graph.with_splits([parts]), runs=3).dataset
    assert len(data.splits) == 1
    scores = run(data, "mlp", make_config("mlp", epochs=3, hidden=4), [0, 1, 2])["rows"]
    assert len({row["val_loss"] for row in scores}) == 3


def test_several_given_splits_are_those_of_the_runs(graph):
    one, other, third = (
        Column.of_objects(name, [("train", "val", "test")[(i * step) % 3] for i in range(80)])
        for name, step in (("a", 1), ("b", 2), ("c", 4))
    )
    data = UserData.from_graph(graph.with_splits([one, other, third]), runs=10)
    assert len(data.dataset.splits) == 2, "a and c are equal, and two runs would be, too"
    assert data.digest != UserData.from_graph(graph.with_splits([one])).digest
    fitted = encode_user_graph(graph.with_splits([one, other]), repeats=2)
    assert data.digest == dataset_digest(fitted.dataset)


def test_settings_are_those_of_fit(graph):
    data = UserData.from_graph(graph)
    config = data.config("asgat-plus", {"heads": 3})
    assert config == ASGATClassifier("asgat-plus", heads=3).make_config(data.health)
    advised = {advice.setting: advice.value for advice in data.health.advice}
    values = config.to_dict()
    assert values["k"] == advised["k"]
    assert DEFAULTS.items() <= values.items()


def test_a_model_without_directions_gets_the_undirected_graph(graph):
    one_way = UserData.from_graph(replace(graph, directed=True))
    assert one_way.dataset_for("asgat-deep") is one_way.dataset
    assert one_way.dataset_for("asgat-deep").directed
    assert not one_way.dataset_for("gcn").directed
    plain = UserData.from_graph(graph)
    assert plain.dataset_for("gcn") is plain.dataset


def test_a_run_directory_has_the_same_data_metric_and_model(graph, fitted):
    given, found = UserData.from_graph(graph, 3, 2, "macro_f1"), UserData.from_run(fitted)
    assert found.model == "gcn"
    assert found.dataset.metric == "macro_f1"
    assert len(found.dataset.splits) == 1
    assert found.digest == given.digest == dataset_digest(found.dataset)
    assert found.health == given.health
    assert UserData.from_run(fitted, "micro_f1").dataset.metric == "micro_f1"


def test_a_run_without_test_nodes_has_the_default_metric(graph, tmp_path):
    ASGATClassifier("gcn", epochs=2).fit(graph).save_pretrained(tmp_path)
    assert RunDirectory(tmp_path).read_result()["test"] is None
    assert UserData.from_run(tmp_path).dataset.metric == "micro_f1"


def test_a_run_of_another_model_can_be_read_as_one_of_fit(graph, tmp_path):
    data = UserData.from_graph(replace(graph, directed=True), runs=3, metric="roc_auc")
    result = run(data.dataset_for("gcn"), "gcn", data.config("gcn", {"epochs": 4}), [0, 1, 2], out=tmp_path)
    data.add_to_run(tmp_path)
    best = max(result["rows"], key=lambda row: row["val_score"])
    again = UserData.from_run(tmp_path)
    assert np.array_equal(again.dataset.splits[0].test, data.dataset.splits[best["run"]].test)
    assert (again.model, again.dataset.metric, again.dataset.directed) == ("gcn", "roc_auc", False)
    assert (again.health, again.ids, again.encoding) == (data.health, data.ids, data.encoding)
    model = ASGATClassifier.from_pretrained(tmp_path)
    assert model.score() == pytest.approx(best["micro_f1"])
    assert np.array_equal(model.predict(graph), model.predict())


def test_runs_without_a_users_graph_are_refused(fitted, tmp_path):
    data = UserData.from_run(fitted)
    config = data.config("mlp", {"epochs": 2, "hidden": 4})
    run(data.dataset, "mlp", config, [0], out=tmp_path / "compared")
    with pytest.raises(AsgatError, match=r"compared has no graph.npz.*use a run directory of `asgat fit`"):
        UserData.from_run(tmp_path / "compared")
    named = replace(contextual_sbm(num_nodes=60, seed=0), name="csbm", protocol="random")
    run(named, "mlp", config, [0], out=tmp_path / "named")
    with pytest.raises(AsgatError, match="csbm"):
        UserData.from_run(tmp_path / "named")
    with pytest.raises(AsgatError, match="not a run directory"):
        UserData.from_run(tmp_path)
