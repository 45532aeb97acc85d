"""What is reported of runs: scores, certificates, and sums over runs."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from tests.training.tiny import quick

from asgat.data import load_dataset
from asgat.nn import ASGAT
from asgat.nn.registry import make_config
from asgat.training import runner
from asgat.training.inputs import make_inputs
from asgat.training.result import describe_settings, peak_memory_mb, result_row, summarise
from asgat.training.run_state import RunResult
from asgat.training.runner import run

CPU = torch.device("cpu")
CERTIFIED = ("certified_share", "mean_bound", "max_bound")


def plain_row(number, val_score=0.5, epochs=1, seconds=0.1, restarts=0, **more):
    outcome = RunResult(0, epochs, 1, 1.0, val_score, 0.5, 0.25, None, restarts, seconds, [], {})
    figures = {key: value for key, value in vars(outcome).items() if key not in ("history", "state")}
    return result_row(number, {**figures, "fallback": None, **more}, CPU)


def settings_of(config=None, runs=(0, 1, 2)):
    return describe_settings("tiny", "mlp", "splits", 3, runs, config or quick(), "digest")


# -- sums over runs ---------------------------------------------------------------------------------


def test_a_row_has_the_runs_number_and_the_memory_of_the_process():
    row = plain_row(4, ranks=[1])
    assert (row["run"], row["ranks"]) == (4, [1])
    assert row["peak_memory_mb"] == pytest.approx(peak_memory_mb(CPU), rel=0.1)
    assert row["peak_memory_mb"] > 10


def test_settings_and_versions_are_in_the_result():
    result = summarise(settings_of(), "micro_f1", [plain_row(0)])
    assert result.items() >= settings_of().items()
    assert settings_of()["config"] == quick().to_dict()
    assert (result["data"], result["runs"], result["finished"]) == ("digest", [0, 1, 2], False)
    assert {"asgat", "python", "torch", "torch_geometric", "numpy"} <= result["versions"].keys()


@pytest.mark.parametrize("metric", ["micro_f1", "roc_auc"])
def test_sums_means_and_deviations_over_runs(metric):
    rows = [plain_row(2, 0.7, 30, 1.0, 2), plain_row(0, 0.5, 10, 1.0, 1), plain_row(1, 0.6, 20, 1.0)]
    scores = {0: 0.9, 1: 0.5, 2: 0.4}
    for row in rows:
        row[metric] = scores[row["run"]]
    result = summarise(settings_of(), metric, rows)
    assert [row["run"] for row in result["rows"]] == [0, 1, 2], "in order, whatever order they were finished in"
    assert result[metric]["per_run"] == [0.9, 0.5, 0.4]
    assert result[metric]["mean"] == pytest.approx(0.6)
    assert result[metric]["std"] == pytest.approx(np.std([0.9, 0.5, 0.4]))
    assert (result["epochs"], result["restarts"], result["finished"]) == (20, 3, True)
    assert result["ms_per_epoch"] == pytest.approx(50)
    assert result[f"val_{metric}"] == pytest.approx(0.6)
    if metric == "micro_f1":
        assert "roc_auc" not in result
    else:
        assert result["val_micro_f1"] is None
    json.dumps(result, allow_nan=False)


def test_a_summary_of_nothing_is_unfinished_and_has_no_numbers():
    result = summarise(settings_of(), "micro_f1", [])
    assert result["finished"] is False
    assert result["micro_f1"] == {"mean": None, "std": None, "per_run": []}
    assert result["certified_share"] is None
    json.dumps(result, allow_nan=False)


def test_options_that_are_on_are_named():
    plus = describe_settings("tiny", "asgat-plus", "splits", 0, [0], make_config("asgat-plus"), "")
    assert summarise(plus, "micro_f1", [])["options"] == {"root": True}
    assert summarise(settings_of(), "micro_f1", [])["options"] == {}


def test_fallbacks_of_several_runs_are_one():
    fallback = {"form": "chebyshev", "heads": 2, "evaluations": 5, "residual": 0.5}
    found = [None, fallback, {**fallback, "heads": 1, "residual": 0.75}]
    rows: list[Any] = [{**plain_row(i), "fallback": own} for i, own in enumerate(found)]
    joined = {"form": "chebyshev", "heads": 2, "evaluations": 10, "residual": 0.75}
    assert summarise(settings_of(), "micro_f1", rows)["fallback"] == joined
    rows.append({**rows[0], "run": 3, "fallback": {**fallback, "residual": None}})
    unknown = {**joined, "evaluations": 15, "residual": None}
    assert summarise(settings_of(), "micro_f1", rows)["fallback"] == unknown
    del rows[0]["fallback"]  # of a run before there were any
    assert summarise(settings_of(), "micro_f1", rows[:1])["fallback"] is None


def test_what_fell_back_to_chebyshev_is_in_the_result(tmp_path, monkeypatch):
    karate, config = load_dataset("karate"), make_config("asgat-arma", epochs=2, hidden=4, heads=3, max_restarts=0)
    fine = run(karate, "asgat-arma", config, [0])
    assert (fine["fallback"], fine["rows"][0]["fallback"]) == (None, None)

    def with_few_steps(*args):
        inputs = make_inputs(*args)
        inputs[1].steps = 2
        return inputs

    monkeypatch.setattr(runner, "make_inputs", with_few_steps)
    result = run(karate, "asgat-arma", config, [0, 1], out=tmp_path)
    first, second = (row["fallback"] for row in result["rows"])
    assert result["fallback"]["form"] == "chebyshev"
    assert 1 <= result["fallback"]["heads"] <= 3
    assert min(first["evaluations"], second["evaluations"]) >= 2
    assert result["fallback"]["evaluations"] == first["evaluations"] + second["evaluations"], "counted run by run"
    assert result["fallback"]["residual"] > 1e-4
    assert json.loads((tmp_path / "result.json").read_text())["fallback"] == result["fallback"]


# -- certificates ----------------------------------------------------------------------------------


def attending(**changes):
    """Settings under which a table leaves much out and rows are not exact."""
    values = {"form": "table", "candidates": 2, "cap": 0, "k": 2, "heads": 2, "order": 6, "dropout": 0.0}
    plain = {"epochs": 4, "patience": 4, "hidden": 4, "max_restarts": 0, "normalize_features": False}
    return make_config("asgat-cheb", **{**plain, **values, **changes})


@pytest.fixture(scope="module")
def blocks():
    return load_dataset("csbm", num_nodes=150, num_features=6)


@pytest.fixture
def operators(monkeypatch):
    """The operators a trained model was certified on, in order."""
    seen = []
    original = ASGAT.certificates

    def certificates(self, operator):
        seen.append(operator)
        return original(self, operator)

    monkeypatch.setattr(ASGAT, "certificates", certificates)
    return seen


def test_runs_on_a_table_report_their_certificates(blocks, operators):
    result = run(blocks, "asgat-cheb", attending(), [0, 1])
    assert len(operators) == 2
    rows = result["rows"]
    assert 0 < result["certified_share"] < 1
    assert 0 < result["mean_bound"] < result["max_bound"]
    assert result["certified_share"] == pytest.approx(np.mean([row["certified_share"] for row in rows]))
    assert result["mean_bound"] == pytest.approx(np.mean([row["mean_bound"] for row in rows]))
    assert result["max_bound"] == max(row["max_bound"] for row in rows)
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize("model", ["asgat-plus", "asgat-heat", "asgat-exact", "mlp", "gcn"])
def test_models_with_attention_are_certified_and_others_are_not(blocks, model):
    values: dict[str, Any] = {"epochs": 1, "hidden": 4, "max_restarts": 0}
    if model.startswith("asgat"):
        values.update(heads=1, order=4)
    result = run(blocks, model, make_config(model, **values), [0])
    found = [result[key] for key in CERTIFIED]
    if model == "asgat-exact":
        assert found == [1.0, 0.0, 0.0]
    elif model.startswith("asgat"):
        assert 0 <= found[0] <= 1
        assert 0 <= found[1] <= found[2]
    else:
        assert found == [None, None, None]


def test_a_truncated_table_reports_a_sampled_certificate(blocks):
    result = run(blocks, "asgat-cheb", attending(builder="truncated", candidates=4), [0])
    assert 0 <= result["certified_share"] < 1
    assert 0 < result["mean_bound"] <= result["max_bound"]
