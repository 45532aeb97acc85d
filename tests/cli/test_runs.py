import json
import os
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from asgat.cli.runs import score_text
from asgat.estimator.run_list import RunSummary

TRAIN = ["train", "karate", "--model", "mlp", "--splits", "0-1", "--set", "epochs=2"]
OLD = Path(__file__).parents[1] / "fixtures" / "run-0.1"


def test_no_run_directories(asgat, place, refused):
    assert asgat("runs") == (0, "There are no run directories in runs; `asgat fit` and `asgat train` write them.\n", "")
    assert json.loads(asgat("runs", "--json", "-")[1]) == {"folder": "runs", "rows": []}
    assert "elsewhere is not a folder" in refused("runs", "elsewhere")
    assert list(place.iterdir()) == []


def test_runs_are_listed_the_latest_first(asgat, cells):
    assert asgat(*TRAIN)[0] == 0
    shutil.copytree(OLD / "fit", "runs/[a] fit")
    os.utime("runs/[a] fit/result.json", (0, 1_000_000_000))
    code, output, errors = asgat("runs")
    assert (code, errors) == (0, "")
    first, second = (line for line in cells(output) if "-" in line[-1] and ":" in line[-1])
    result = json.loads(Path("runs/karate-mlp-seed0-runs0-1/result.json").read_text())["micro_f1"]
    score = f"{100 * result['mean']:.1f} ± {100 * result['std']:.1f}"
    assert first[:4] == ["karate-mlp-seed0-runs0-1", "karate", "mlp", score]
    assert second[:4] == ["[a] fit", "nodes", "asgat-plus", "75.0"]
    assert second[4].startswith("2001-09-")
    rows = json.loads(asgat("runs", "--json", "-")[1])["rows"]
    assert [row["path"] for row in rows] == ["runs/karate-mlp-seed0-runs0-1", "runs/[a] fit"]
    assert (rows[0]["score"], rows[0]["std"], rows[0]["metric"]) == (result["mean"], result["std"], "micro_f1")
    (line,) = (line for line in cells(asgat("runs", "runs/[a] fit")[1]) if ":" in line[-1])
    assert line[0] == "runs/[a] fit"


@pytest.mark.parametrize("content", [b"", b"{}", b"[", b'{"rows": [], "test": 3}', b"\x00"])
def test_a_damaged_run_is_listed_as_such(asgat, cells, content):
    assert asgat(*TRAIN)[0] == 0
    Path("runs/karate-mlp-seed0-runs0-1/result.json").write_bytes(content)
    code, output, errors = asgat("runs")
    assert (code, errors) == (0, "")
    (line,) = (line for line in cells(output) if ":" in line[-1] and len(line) == 5)
    assert line[:4] == ["karate-mlp-seed0-runs0-1", "–", "–", "damaged"]
    assert "damaged: runs/karate-mlp-seed0-runs0-1/result.json" in output


def test_names_are_whole_at_width_80(asgat, monkeypatch):
    assert asgat(*TRAIN)[0] == 0
    shutil.copytree("runs/karate-mlp-seed0-runs0-1", "runs/" + "long-" * 20)
    monkeypatch.setenv("COLUMNS", "80")
    _, output, _ = asgat("runs")
    assert "…" not in output
    assert "long-" * 20 in output


def make(**figures):
    return RunSummary(Path("x"), datetime(2026, 1, 1), "d", "m", **figures)


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (make(metric="micro_f1", score=0.5, finished=True), "50.0"),
        (make(metric="roc_auc", score=0.987, std=0.0123, finished=True), "98.7 ± 1.2 ROC-AUC"),
        (make(metric="log_loss", score=0.5, finished=True), "0.500 log-loss"),
        (make(metric="[strange]", score=0.5, finished=True), r"50.0 \[strange]"),
        (make(finished=True), "no test nodes"),
        (make(done=3, total=10), "unfinished, 3 of 10"),
        (make(), "unfinished"),
        (make(problem="It is broken."), "damaged"),
    ],
)
def test_scores(run, text):
    assert score_text(run) == text
