import json
import subprocess
import sys
from pathlib import Path

import pytest

from reproduce.experiment import EXPERIMENTS
from reproduce.experiments import approximations, k_sweep, sparsity

ROOT = Path(__file__).parents[2]


def test_the_help_names_the_commands():
    command = [sys.executable, "-m", "reproduce", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in ("python -m reproduce", *EXPERIMENTS, "all", "bench"))


def test_all_in_one(reproduce, few_epochs, place, monkeypatch):
    monkeypatch.setattr(k_sweep, "QUICK_KS", [1])
    monkeypatch.setattr(sparsity, "QUICK_KS", [1])
    monkeypatch.setattr(approximations, "ORDERS", [5])
    monkeypatch.setattr(approximations, "QUICK_EXPANSIONS", [20])
    code, output, _ = reproduce("all", "--quick", "--datasets", "karate", "--models", "asgat-cheb,mlp", "--out", "here")
    assert code == 0
    *others, authors = EXPERIMENTS
    assert f"skipped: {authors}: {authors} has no result" in output, (
        "its authors have not published settings for karate"
    )
    for name in others:
        assert (place / "here" / f"{name}.png").is_file()
        assert json.loads((place / "here" / f"{name}.json").read_bytes())["quick"] is True
        assert f"here/{name}.json" in output
    assert "these numbers are not results" in output
    assert set(json.loads((place / "here" / "micro.json").read_bytes())["karate"]) == {"asgat-cheb", "mlp", "chosen"}


def test_missing_data_sets_are_skipped_and_reported(reproduce, few_epochs):
    code, output, _ = reproduce("micro", "--quick", "--datasets", "cora, karate", "--models", "mlp")
    assert code == 0
    assert "skipped: cora: its files are not in" in output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["micro"], "set ASGAT_DATA_DIR or --data-dir"),
        (["micro", "--datasets", "koraa"], "'koraa'"),
        (["micro", "--models", "gnc"], "'gnc'"),
        (["micro", "--seeds", "0,x"], "--seeds must be whole numbers such as 0-9 or 0,3,5, not '0,x'."),
        (["micro", "--datasets", "minesweeper"], "minesweeper is scored by ROC-AUC"),
    ],
)
def test_bad_input_is_a_sentence_and_nothing_is_written(refused, arguments, sentence):
    assert sentence in refused(*arguments)
