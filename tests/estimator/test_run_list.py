import json
import shutil
from pathlib import Path

import pytest

from asgat.errors import AsgatError
from asgat.estimator.run_list import find_runs, list_runs, summarise_run

OLD = Path(__file__).parents[1] / "fixtures" / "run-0.1"


@pytest.fixture
def run(tmp_path):
    """A copy of a run directory of two runs on csbm."""
    return Path(shutil.copytree(OLD / "train", tmp_path / "run"))


def test_runs_are_found_at_any_depth_but_not_in_each_other(tmp_path):
    shutil.copytree(OLD / "train", tmp_path / "a/b/c")
    shutil.copytree(OLD / "train", tmp_path / "a/b/c/inner")
    shutil.copytree(OLD / "fit", tmp_path / "d")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/config.toml").write_text("of = 'another program'")
    assert sorted(find_runs(tmp_path)) == [tmp_path / "a/b/c", tmp_path / "d"]
    assert list(find_runs(tmp_path / "d")) == [tmp_path / "d"]


def test_what_is_known_of_runs():
    by_name = {run.path.name: run for run in list_runs(OLD)}
    assert set(by_name) == {"fit", "train"}
    train, fit = by_name["train"], by_name["fit"]
    assert (train.dataset, train.model, train.finished, train.problem) == ("csbm", "asgat-cheb", True, "")
    written = json.loads((OLD / "train/result.json").read_text())
    assert (train.score, train.std) == (written["micro_f1"]["mean"], written["micro_f1"]["std"])
    assert (train.done, train.total) == (len(written["rows"]), len(written["runs"]))
    assert (fit.dataset, fit.model, fit.std) == ("nodes", "asgat-plus", None)
    assert train.to_dict()["path"] == str(OLD / "train")


def test_the_score_that_validation_decided_by(run):
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(
        json.dumps({**result, "test": {"metric": "log_loss", "scores": {"log_loss": 0.5}}})
    )
    assert (summarise_run(run).metric, summarise_run(run).score) == ("log_loss", 0.5)
    (run / "result.json").write_text(json.dumps({**result, "test": None}))
    assert (summarise_run(run).score, summarise_run(run).finished) == (None, True)
    (run / "result.json").write_text(json.dumps({**result, "test": {"metric": "log_loss", "scores": {}}}))
    assert "result.json is damaged: KeyError" in summarise_run(run).problem


def test_an_average_of_several_models(run):
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps({**result, "partners": ["sage", "linkx"]}))
    assert summarise_run(run).model == "asgat-cheb and 2 more"
    (run / "result.json").write_text(json.dumps({**result, "partners": 3}))
    assert "partners must be a list of names" in summarise_run(run).problem


def test_unfinished_runs(run, tmp_path):
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps({**result, "rows": result["rows"][:1], "finished": False}))
    summary = summarise_run(run)
    assert (summary.finished, summary.done, summary.total, summary.problem) == (False, 1, len(result["runs"]), "")
    (run / "result.json").unlink()
    summary = summarise_run(run)
    assert (summary.dataset, summary.finished, summary.done) == ("csbm", False, 0)
    board = tmp_path / "board"
    board.mkdir()
    (board / ".lock").touch()
    (board / "leaderboard.json").write_text(json.dumps({"settings": {}, "seconds": 1.0, "finished": False}))
    (found,) = list_runs(board)
    assert (found.dataset, found.model, found.finished, found.problem) == (None, "leaderboard", False, "")
    held = {"settings": {}, "seconds": 1.0, "finished": False, "dataset": "market"}
    (board / "leaderboard.json").write_text(json.dumps(held))
    assert list_runs(board)[0].dataset == "market", "files of today name it"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("result.json", "{", "cannot be read as a result"),
        ("result.json", "{}", "rows must be a list of objects, but is missing"),
        ("model.safetensors", None, r"model\.safetensors is missing"),
    ],
)
def test_damaged_runs(run, name, content, words):
    (run / name).unlink() if content is None else (run / name).write_text(content)
    summary = summarise_run(run)
    assert (summary.dataset, summary.finished) == (None, False)
    assert words.replace("\\", "") in summary.problem


def test_damaged_settings(run):
    (run / "result.json").unlink()
    for content in ("[", "a = 1", "dataset = 'a'\nmodel = 'b'\nruns = 3"):
        (run / "config.toml").write_text(content)
        assert "config.toml" in summarise_run(run).problem


def test_a_folder_is_needed(tmp_path):
    with pytest.raises(AsgatError, match="is not a folder"):
        list_runs(tmp_path / "absent")
