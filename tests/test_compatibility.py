"""Run directories that version 0.1.0 wrote: loaded, predicted with, explained, reported and taken over today.

``fixtures/run-0.1`` holds what the commands below wrote, without the lock files and figures:

- ``asgat fit --edges edges.csv --nodes nodes.csv --label kind --out fit`` (in ``csv``) with ``SETTINGS`` and
  ``members=2, lr=0.05, epochs=40``, then ``asgat predict fit`` and ``asgat explain fit --node n12``;
- ``asgat train csbm --splits 0-1 --model asgat-cheb --out train`` with ``SETTINGS`` and ``epochs=20``, then ``asgat
  explain train --node 79``.
"""

import csv
import json
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from asgat.cli import main
from asgat.config import ASGATConfig
from asgat.errors import AsgatError
from asgat.training import load_model
from asgat.training.run_directory import read_metadata

FIXTURE = Path(__file__).parent / "fixtures" / "run-0.1"
SETTINGS = ["hidden=4", "heads=2", "order=4", "k=4", "filter_hidden=16"]


@pytest.fixture
def old(tmp_path):
    """The old files in a folder that may be written."""
    return Path(shutil.copytree(FIXTURE, tmp_path / "old"))


@pytest.fixture
def asgat(monkeypatch, capsys):
    """A function that runs a command which must succeed, and returns its output."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["asgat", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        output = capsys.readouterr()
        assert not ended.value.code, output.err
        return output.out

    return call


@pytest.mark.parametrize(("run", "name", "members"), [("fit", "asgat-plus", 2), ("train", "asgat-cheb", 1)])
def test_the_model_loads_with_the_settings_it_was_trained_with(run, name, members):
    model, loaded, config = load_model(FIXTURE / run)
    assert isinstance(config, ASGATConfig)
    assert (loaded, config.members, config.k, config.filter_hidden) == (name, members, 4, (16,))
    assert all(value.isfinite().all() for value in model.state_dict().values())
    written = tomllib.loads((FIXTURE / run / "config.toml").read_text())["config"]
    assert config.without_pruned(written).items() <= config.to_dict().items()
    assert len(written) > len(config.without_pruned(written)), "settings that are no longer settings"


def test_predictions_are_those_of_the_old_version(old, asgat, tmp_path):
    asgat("predict", old / "fit", "-o", tmp_path / "now.csv")
    files = "--edges", old / "csv/edges.csv", "--nodes", old / "csv/nodes.csv"
    asgat("predict", old / "fit", *files, "-o", tmp_path / "files.csv")
    before = read(FIXTURE / "predictions.csv")
    assert len(before) == 40
    for name in ("now.csv", "files.csv"):
        now = read(tmp_path / name)
        assert [list(row) for row in now] == [list(row) for row in before], "the same columns"
        for row, expected in zip(now, before, strict=True):
            for key, value in expected.items():
                assert row[key] == (pytest.approx(value, abs=1e-6) if key.startswith("p(") else value)


def read(path):
    """The rows of a file of predictions, probabilities as numbers."""
    with path.open(newline="") as file:
        return [{k: float(v) if k.startswith("p(") else v for k, v in row.items()} for row in csv.DictReader(file)]


@pytest.mark.parametrize(("run", "node"), [("fit", "n12"), ("train", "79")])
def test_explanations_are_those_of_the_old_version(run, node, old, asgat, tmp_path):
    asgat("explain", old / run, "--node", node, "--json", tmp_path / "now.json")
    now = json.loads((tmp_path / "now.json").read_text())
    before = json.loads((FIXTURE / f"explain-{run}.json").read_text())
    for key in ("id", "class", "predicted", "degree"):
        assert now["node"][key] == before["node"][key]
    assert len(now["rows"]) == len(before["rows"]) == 12
    for row, expected in zip(now["rows"], before["rows"], strict=True):
        for key in ("layer", "head", "node", "hops", "class", "band"):
            assert row[key] == expected[key]
        for key in ("weight", "score", "bands"):
            assert row[key] == pytest.approx(expected[key], abs=1e-5)


@pytest.mark.parametrize("run", ["fit", "train"])
def test_a_report_is_written(run, old, asgat):
    asgat("report", old / run)
    (page,) = (old / run).glob("*.html")
    assert page.stat().st_size > 10_000


def test_finished_runs_are_taken_over(old, asgat, tmp_path):
    settings = [part for text in [*SETTINGS, "epochs=20"] for part in ("--set", text)]
    weights = (old / "train/model.safetensors").read_bytes()
    where = "--out", old / "train", "--json", tmp_path / "now.json"
    asgat("train", "csbm", "--model", "asgat-cheb", "--splits", "0-1", *settings, *where)
    now, before = (json.loads(path.read_text()) for path in (tmp_path / "now.json", FIXTURE / "train/result.json"))
    assert now["micro_f1"] == before["micro_f1"]
    assert [row["seconds"] for row in now["rows"]] == [row["seconds"] for row in before["rows"]]
    assert (old / "train/model.safetensors").read_bytes() == weights


def test_a_changed_setting_that_is_gone_is_named(old):
    file = old / "train/model.safetensors"
    metadata = read_metadata(old / "train")
    metadata["config"]["damping"] = True
    save_file(load_file(file), file, {key: json.dumps(value) for key, value in metadata.items()})
    with pytest.raises(AsgatError, match="damping is no longer a setting but an argument of ChebyshevOperator"):
        load_model(old / "train")
