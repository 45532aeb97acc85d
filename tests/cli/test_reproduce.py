import json
import sys

import pytest

from asgat.cli import app as cli
from asgat.cli.reproduce import NAMES, check_name, parse_seeds, parts
from asgat.errors import AsgatError
from asgat.experiments import approximations, k_sweep, sparsity


@pytest.fixture
def asgat(monkeypatch, capsys, tmp_path, few_epochs):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASGAT_DATA_DIR", str(tmp_path / "no-data"))

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["asgat", "reproduce", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        output, errors = capsys.readouterr()
        return ended.value.code or 0, output, " ".join(errors.split())

    return call


def test_all_in_one(asgat, tmp_path, monkeypatch):
    monkeypatch.setattr(k_sweep, "QUICK_KS", [1])
    monkeypatch.setattr(sparsity, "QUICK_KS", [1])
    monkeypatch.setattr(approximations, "ORDERS", [5])
    monkeypatch.setattr(approximations, "QUICK_EXPANSIONS", [20])
    code, output, _ = asgat("all", "--quick", "--datasets", "karate", "--models", "asgat-cheb,mlp", "--out", "here")
    assert code == 0
    for name in NAMES:
        assert (tmp_path / "here" / f"{name}.png").is_file()
        assert json.loads((tmp_path / "here" / f"{name}.json").read_bytes())["quick"] is True
        assert f"here/{name}.json" in output
    assert "these numbers are no result" in output
    assert set(json.loads((tmp_path / "here" / "micro.json").read_bytes())["karate"]) == {"asgat-cheb", "mlp", "chosen"}


def test_a_second_call_takes_the_runs_over(asgat, monkeypatch):
    arguments = ["micro", "--quick", "--datasets", "karate", "--models", "mlp"]
    assert asgat(*arguments)[0] == 0
    monkeypatch.setattr("asgat.training.runner.train_run", None)
    assert asgat(*arguments)[0] == 0


def test_missing_data_sets_are_left_out_and_told(asgat):
    code, output, _ = asgat("micro", "--quick", "--datasets", "cora, karate", "--models", "mlp")
    assert code == 0
    assert "left out: cora: its files are not in" in output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["micr"], "There is no experiment 'micr'. Did you mean 'micro'?"),
        (["micro"], "set ASGAT_DATA_DIR or --data-dir"),
        (["all", "--quick"], "set ASGAT_DATA_DIR or --data-dir"),
        (["micro", "--datasets", "koraa"], "'koraa'"),
        (["micro", "--datasets", ","], "--datasets names nothing"),
        (["micro", "--models", "gnc"], "'gnc'"),
        (["micro", "--seeds", "0,x"], "--seeds must be whole numbers with commas, such as 0,1,2, not '0,x'."),
        (["micro", "--device", "tpu"], "Unknown device 'tpu'"),
        (["micro", "--datasets", "minesweeper"], "minesweeper is judged by ROC-AUC"),
    ],
)
def test_bad_input_is_a_sentence_and_nothing_is_written(asgat, tmp_path, arguments, sentence):
    code, _, errors = asgat(*arguments)
    assert code == 2
    assert errors.startswith("error: ")
    assert sentence in errors
    assert list(tmp_path.iterdir()) == []


def test_small_parsers():
    assert check_name("all") == list(NAMES)
    assert check_name("heat") == ["heat"]
    assert parse_seeds("0, 2,2,1") == (0, 2, 1)
    assert parts("--x", None) is None
    assert parts("--x", "a, b,a") == ("a", "b")
    with pytest.raises(AsgatError, match="--seeds"):
        parse_seeds("")
