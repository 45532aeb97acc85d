"""Quickly trained runs to report on, and a browser if one is installed."""

import json

import pytest
from tests.report.chromium import Chromium, find_chromium

from asgat.data import load_dataset
from asgat.estimator.graph_file import encode_graph
from asgat.estimator.trained_run import load_run
from asgat.leaderboard.standings import Leaderboard, Row
from asgat.nn.registry import make_config
from asgat.training.run_directory import RunDirectory, encode_model, load_model, read_metadata
from asgat.training.runner import run

EVIL = '</script><img src=x onerror="document.title=1">'


def made_board(name="logistic regression", **more):
    """A leaderboard of two models and guessing."""
    scores = {"micro_f1": 0.7, "macro_f1": 0.6, "roc_auc": None, "log_loss": 0.5, "calibration_error": 0.1}
    rows = [
        Row(name, "mlp", {"layers": 1}, False, 0.8, scores, (0.6, 0.8), 1.5, 70, chosen=1),
        Row("gcn", "gcn", {}, True, 0.7, scores, (0.6, 0.8), 2.5, 90, note="diverged"),
        Row("guessing", "", {}, False, 0.5, scores, (0.4, 0.6), 0.0, 0),
    ]
    values = {"members": 1, "cut": False, "sentences": ["Better than guessing: made up."], **more}
    return Leaderboard("micro_f1", "default", 1, rows, rows[0], seconds=60.0, **values)


def train(path, dataset, model="asgat-cheb", runs=(0, 1), **settings):
    config = make_config(model, **{"epochs": 6, "hidden": 8, "max_restarts": 0, **settings})
    run(dataset, model, config, runs=list(runs), out=path)
    return path


@pytest.fixture(scope="session")
def karate(tmp_path_factory):
    """The karate club: two runs, three heads and one."""
    return train(tmp_path_factory.mktemp("karate"), load_dataset("karate"), heads=3, k=5, order=6)


@pytest.fixture(scope="session")
def gcn(tmp_path_factory):
    """A model that has no spectral attention."""
    return train(tmp_path_factory.mktemp("gcn"), load_dataset("karate"), "gcn")


@pytest.fixture(scope="session")
def named(karate, tmp_path_factory):
    """The karate club as a user's own graph, with ids and class names that try to be markup."""
    path = tmp_path_factory.mktemp("named")
    dataset = load_dataset("karate")
    metadata = {**read_metadata(karate), "protocol": "own", "dataset": f"own {EVIL}"}
    (path / "model.safetensors").write_bytes(encode_model(load_model(karate)[0].state_dict(), metadata))
    for name in ("metrics.jsonl", "config.toml"):
        (path / name).write_bytes((karate / name).read_bytes())
    RunDirectory(path).write_result(RunDirectory(karate).read_result())
    ids = [EVIL, "{{data}}", "<!--", "\u2028'\"&\\", *(f"member {i}" for i in range(4, 34))]
    (path / "graph.npz").write_bytes(encode_graph(dataset, ids))
    names = {"classes": [f"left {EVIL}", "{{title}}"], "feature_names": [f"is {i}" for i in range(34)]}
    (path / "encoder.json").write_text(json.dumps(names))
    (path / "health.json").write_text(json.dumps({"changes": [f"1 row repeats another: merged {EVIL}."]}))
    return path


@pytest.fixture(scope="session")
def karate_run(karate):
    return load_run(karate)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """The system's Chromium, or a skip."""
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium is installed; `make system-extras` installs Debian's")
    with Chromium(program, tmp_path_factory.mktemp("profile")) as found:
        yield found
