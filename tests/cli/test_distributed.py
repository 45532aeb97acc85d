import json

import pytest
from tests.training.ranks import free_port

from asgat.cli import distributed as distributed_cli
from asgat.cli.app import app
from asgat.cli.options import console, errors
from asgat.distributed.lost_rank import LostRankExit
from asgat.errors import AsgatError

SETTINGS = ["form=table", "epochs=2", "order=3", "heads=1", "hidden=4", "k=3", "candidates=4"]
SET = [part for setting in SETTINGS for part in ("--set", setting)]


@pytest.fixture
def speaking():
    yield
    console.quiet = errors.quiet = False


def test_only_rank_zero_speaks(monkeypatch, speaking):
    monkeypatch.setattr(LostRankExit, "on_terminate", lambda self: None)
    monkeypatch.setenv("RANK", "2")
    assert distributed_cli.begin_rank().rank == 2
    assert console.quiet
    assert errors.quiet


def test_without_a_launcher_nothing_is_changed_and_joining_says_how(monkeypatch, tmp_path):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(AsgatError, match="needs a launcher"):
        app(["train", "csbm", "--distributed", *SET, "--out", str(tmp_path)], standalone_mode=False)
    assert not console.quiet


def test_a_single_rank_trains_and_reports(monkeypatch, tmp_path, capsys, speaking):
    monkeypatch.setattr(LostRankExit, "on_terminate", lambda self: None)
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}.items():
        monkeypatch.setenv(name, str(value))
    out, file = tmp_path / "run", tmp_path / "result.json"
    command = ["train", "csbm", "--distributed", "--model", "asgat-cheb", "--splits", "0", *SET]
    app([*command, "--out", str(out), "--json", str(file)], standalone_mode=False)
    said = capsys.readouterr().out
    assert "800 nodes" in said
    assert "rank 0: 800 nodes" in said
    result = json.loads(file.read_text())
    assert result["rows"][0]["ranks"][0]["nodes"] == 800
    assert "history" not in result
    assert result == json.loads((out / "result.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "gcn"], "gcn cannot be trained in parts"),
        (["--model", "asgat-cheb", "--set", "form=dense"], "form=table"),
        (["--model", "asgat-cheb", *SET, "--tensorboard", "x"], "does not go with --distributed"),
    ],
)
def test_what_cannot_be_divided_is_told_before_anything_is_joined(arguments, words, monkeypatch, tmp_path):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(AsgatError, match=words):
        app(["train", "csbm", "--distributed", *arguments, "--out", str(tmp_path / "x")], standalone_mode=False)
