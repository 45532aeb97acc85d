"""fit without a model: the leaderboard as a user sees it."""

import json
import re
import signal
from pathlib import Path

import pytest
from tests.cli.test_fit import GIVEN, QUICK, read, write_directed_graph, write_graph
from tests.leaderboard.conftest import make_small_field

from asgat.cli.leaderboard import BoardProgress, print_board, print_scores
from asgat.cli.output import console
from asgat.leaderboard.standings import Leaderboard, Row
from asgat.training.run_state import Epoch

BOARD = [*GIVEN, "--out", "run", "--preset", "quick"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    make_small_field(monkeypatch)


def rows(file="run/leaderboard.json"):
    held = json.loads(Path(file).read_bytes())
    return [{**row, "seconds": 0} for row in held["rows"]]


def test_from_files_to_predictions(asgat):
    write_graph(120)
    code, output, errors = asgat(*BOARD, "--json", "result.json")
    assert code == 0, errors
    name = Path().absolute().name
    for words in (
        f"Health of {name}",
        f"Leaderboard of {name}: micro-F1 in percent",
        "Chosen on validation",
        "guessing",
    ):
        assert words in output
    assert re.search(r"→ (Better than|Not significantly better than) guessing", output)
    assert re.search(r"→ (The graph|It is not sure)", output)
    assert re.search(r"calibration error +[0-9.]+", output)
    result = json.loads(Path("result.json").read_bytes())
    board = result["leaderboard"]
    assert board["chosen"]["model"] == result["model"]
    assert result["preset"] == "quick"
    assert result["config"]["members"] == board["members"] == 3
    assert result["micro_f1"]["mean"] == pytest.approx(board["chosen"]["test"]["micro_f1"])
    assert not Path("run/trials").exists()
    assert asgat("predict", "run", "--edges", "edges.csv", "--nodes", "nodes.csv", "-o", "p.csv")[0] == 0
    assert asgat("predict", "run", "-o", "q.csv")[0] == 0
    assert read("p.csv") == read("q.csv")
    assert asgat("report", "run")[0] == 0
    code, output, errors = asgat("explain", "run", "--node", "n1")
    assert code == 2
    assert "has no spectral attention to explain" in errors


def test_a_finished_leaderboard_is_printed_again(asgat):
    write_graph(120)
    _, first, _ = asgat(*BOARD)
    code, again, errors = asgat(*BOARD)
    assert code == 0, errors
    assert "run holds this leaderboard already; --fresh trains again." in again
    assert first[first.index("Chosen on") :] == again[again.index("Chosen on") :]
    before = rows()
    assert asgat(*BOARD, "--fresh")[0] == 0
    assert rows() == before


def test_ctrl_c_keeps_what_is_done(asgat, monkeypatch):
    write_graph(120)
    assert asgat(*GIVEN, "--out", "whole", "--preset", "quick")[0] == 0
    pressed: list[bool] = []

    def press(self, name, done, total, epoch):
        if name == "to the end" and epoch is not None and not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(BoardProgress, "__call__", press)
    code, _, errors = asgat(*BOARD)
    assert code == 130
    assert "What was trained is saved; run the same command again to resume." in errors
    assert list(Path("run/trials").glob("*.safetensors"))
    code, _, errors = asgat(*BOARD)
    assert code == 0, errors
    assert rows() == rows("whole/leaderboard.json")
    assert Path("run/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


def test_runs_of_one_model_and_leaderboards_do_not_replace_each_other(asgat):
    write_graph()
    single = [*GIVEN, "--out", "run", "--model", "asgat-plus", *QUICK]
    assert asgat(*single)[0] == 0
    code, _, errors = asgat(*BOARD)
    assert code == 2
    assert "run holds a run of a single model; choose another --out, or --fresh to replace it." in errors
    assert asgat(*BOARD, "--fresh")[0] == 0
    code, _, errors = asgat(*single)
    assert code == 2
    assert "run holds a leaderboard" in errors
    code, _, errors = asgat(*BOARD, "--seed", "1")
    assert code == 2
    assert "other settings (seed, data)" in errors
    assert asgat(*single, "--fresh")[0] == 0
    assert not Path("run/leaderboard.json").exists()
    assert asgat("predict", "run", "-o", "p.csv")[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "k=3"], "--set is for a single model; name it with --model"),
        (["--preset", "fast"], "Unknown preset 'fast'"),
    ],
)
def test_what_does_not_go_together_is_refused(asgat, place, options, words):
    write_graph()
    code, _, errors = asgat(*GIVEN, "--out", "run", *options)
    assert code == 2
    assert words in errors
    assert not (place / "run").exists()


@pytest.mark.parametrize("option", ["--preset=quick", "--time-limit=1"])
def test_options_of_the_leaderboard_are_refused_where_one_model_is_trained(asgat, place, option):
    write_graph()
    code, _, errors = asgat(*GIVEN, "--out", "run", "--model", "mlp", option)
    assert code == 2
    assert f"{option.split('=')[0]} is for the leaderboard" in errors
    assert not (place / "run").exists()


def test_edges_with_a_direction(asgat):
    """The models of the small field do not use directions; they are trained on the undirected graph."""
    write_directed_graph()
    code, _, errors = asgat(*BOARD, "--directed")
    assert code == 0, errors
    assert asgat("predict", "run", "--edges", "edges.csv", "--nodes", "nodes.csv", "-o", "p.csv")[0] == 0


def test_the_table_fits_a_terminal_of_eighty_characters(asgat, monkeypatch):
    write_graph(120)
    monkeypatch.setattr(console, "_width", 80)
    code, output, _ = asgat(*BOARD, "--repeats", "2")
    assert code == 0
    assert "mean of 2 repeats" in output
    assert "…" not in output
    lines = output[output.index("Leaderboard of") : output.index("Chosen on")].splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[-3:] == ["2", "of", "2"] or line.split()[-3:] == ["1", "of", "2"] for line in lines)


def test_a_search_that_was_cut_says_so(capsys):
    scores = {"micro_f1": 0.7, "macro_f1": 0.6, "roc_auc": None, "log_loss": 0.5, "calibration_error": 0.1}
    row = Row("gcn", "gcn", {"hidden": 8}, True, -0.5, scores, (0.4, 0.6), 1.0, 9, note="stopped after 40 epochs")
    board = Leaderboard("log_loss", "default", 1, [row], row, 1, 60.0, True)
    print_board(board, "a [graph]")
    output = capsys.readouterr().out
    assert "Leaderboard of a [graph]: log-loss" in output
    assert "0.400 – 0.600" in output
    assert "· gcn: stopped after 40 epochs" in output
    assert "The time limit ended the search early" in output


def test_without_test_nodes_no_scores_are_printed(capsys):
    print_scores(None, "Test scores")
    assert capsys.readouterr().out == ""


def test_the_bar_shows_the_round():
    with BoardProgress("micro_f1") as progress:
        progress("first epochs", 1, 4, Epoch(0, 3, 0.5, 0.6, 0.7))
        (task,) = progress.bar.tasks
        assert (task.description, task.completed, task.total) == ("first epochs", 1, 4)
        assert task.fields["figures"] == "epoch 3  validation 70.0"
        progress("to the end", 0, 2, None)
        assert task.fields["figures"] == ""
