import json

import pytest

from asgat.cli.distributed import begin_rank
from asgat.cli.output import console, errors, notes

SETTINGS = ["form=table", "epochs=2", "order=3", "heads=1", "hidden=4", "k=3", "candidates=4"]
SET = [part for setting in SETTINGS for part in ("--set", setting)]


def test_only_rank_zero_prints(monkeypatch, one_rank):
    monkeypatch.setenv("RANK", "2")
    assert begin_rank().rank == 2
    assert console.quiet
    assert notes.quiet
    assert errors.quiet


def test_a_launcher_is_needed(monkeypatch, asgat):
    monkeypatch.delenv("RANK", raising=False)
    code, _, sentence = asgat("train", "csbm", "--distributed", *SET)
    assert code == 2
    assert "needs a launcher" in sentence
    assert not console.quiet


def test_a_single_rank_trains_and_reports(asgat, place, one_rank):
    command = ["train", "csbm", "--distributed", "--model", "asgat-cheb", "--splits", "0", *SET]
    code, output, sentence = asgat(*command, "--out", "run", "--json", "result.json")
    assert code == 0, sentence
    assert "asgat-cheb on csbm: 800 nodes" in output
    assert "rank 0: 800 nodes" in output
    result = json.loads((place / "result.json").read_text())
    assert result["rows"][0]["ranks"][0]["nodes"] == 800
    assert "history" not in result
    written = json.loads((place / "run" / "result.json").read_text())
    assert {**result, "model_sha256": written["model_sha256"]} == written


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "gcn"], "gcn cannot be trained in parts"),
        (["--model", "asgat-cheb", "--set", "form=dense"], "form=table"),
    ],
)
def test_what_cannot_be_distributed_is_refused_before_joining(arguments, words, monkeypatch, asgat):
    monkeypatch.delenv("RANK", raising=False)
    code, _, sentence = asgat("train", "csbm", "--distributed", *arguments)
    assert code == 2
    assert words in sentence
