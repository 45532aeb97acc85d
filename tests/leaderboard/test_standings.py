"""The table and the sentences of a leaderboard."""

import sys
from dataclasses import replace

import pytest

from asgat.errors import AsgatError
from asgat.leaderboard.field import GUESSING
from asgat.leaderboard.standings import AVERAGE, Leaderboard, Row, about_guessing, duration, sentences, shown

SCORES = {"micro_f1": 0.7, "macro_f1": 0.6, "roc_auc": None, "log_loss": 0.5, "calibration_error": 0.1}


def row(name, val=0.7, test=0.7, low=0.6, high=0.8, **more):
    return Row(name, "gcn", {"hidden": 8}, True, val, {**SCORES, "micro_f1": test}, (low, high), 3.25, 12_345, **more)


@pytest.fixture
def board():
    rows = [row("asgat-deep, directed rows", chosen=1), row("mlp"), row(GUESSING, 0.5, 0.5, 0.4, 0.6)]
    return Leaderboard("micro_f1", "default", 1, rows, rows[0], 4, 60.0, False)


def test_the_table_fits_into_eighty_characters(board):
    wide = replace(board, repeats=10, rows=[row("asgat-deep, directed rows", chosen=10), *board.rows])
    wide = replace(wide, rows=[replace(one, parameters=123_456_789, seconds=99_999) for one in wide.rows])
    for one in (board, wide):
        headings, cells = one.cells()
        widths = [max(len(line[i]) for line in (headings, *cells)) for i in range(len(headings))]
        assert sum(widths) + len(widths) + 1 <= 80, "with a space between columns and at the ends"
    text = str(board)
    assert "asgat-deep, directed rows  70.0  70.0    60.0 – 80.0  3.2 s      12,345" in text
    assert "chosen" not in text
    assert "10 of 10" in str(wide)


def test_what_is_said_of_the_choice_and_of_other_rows(board):
    assert board.choice == (
        "Chosen on validation: asgat-deep, directed rows (hidden 8), the average of 4 networks; 70.0."
    )
    assert (board.unit, board.notes) == ("micro-F1 in percent", [])
    other = replace(board, metric="log_loss", repeats=3, rows=[row("gcn", note="diverged")])
    assert (other.unit, other.notes) == ("log-loss, mean of 3 repeats", ["gcn: diverged"])


def test_the_average_of_several_models_has_a_row_of_its_own(board):
    mixed = replace(board, chosen=row(AVERAGE, 0.75), averaged=["sage", "linkx"], members=8)
    assert mixed.choice == "Chosen on validation: the average of 8 networks (sage + linkx); 75.0."
    assert [cells[0] for cells in mixed.cells()[1]] == [AVERAGE, *(one.name for one in board.rows)]
    assert mixed.records()[0]["model"] == AVERAGE
    assert Leaderboard.from_dict(mixed.to_dict()) == mixed


def test_an_average_below_a_single_model_is_explained(board):
    mixed = replace(board, chosen=row(AVERAGE, 0.65), averaged=["sage", "linkx"], members=2)
    assert mixed.choice.endswith(
        "; 65.0. Models are averaged where that lowers the log-loss of the few validation nodes."
    )


def test_scores_of_different_models_are_no_single_models(board):
    one = replace(board, repeats=2, choices=[["mlp"], ["mlp"]])
    other = replace(one, choices=[["mlp"], ["linkx", "sage"]])
    assert (one.differ, other.differ, board.differ) == (False, True, False)
    assert one.choice == board.choice
    assert other.choice == (
        "Chosen on validation in the first repeat, and saved: asgat-deep, directed rows (hidden 8), the average of 4 "
        "networks. Not every repeat chose the same; 70.0 is the mean over what each chose."
    )
    assert sentences(other, (0.1, 0.3), None, None, None)[0].startswith(
        "Better than guessing: what each repeat chose has a test"
    )
    assert Leaderboard.from_dict(other.to_dict()).differ


def test_it_survives_being_written(board):
    assert Leaderboard.from_dict(board.to_dict()) == board
    old = {key: value for key, value in board.to_dict().items() if key != "averaged"}
    assert Leaderboard.from_dict(old) == board, "written before several models were averaged"
    with pytest.raises(AsgatError, match="cannot be read"):
        Leaderboard.from_dict({"rows": []})


def test_rows_are_records(board):
    first = board.records()[0]
    assert first["model"] == "asgat-deep, directed rows"
    assert (first["val"], first["test_micro_f1"], first["low"], first["chosen"]) == (0.7, 0.7, 0.6, 1)


def test_it_is_a_table(board, monkeypatch):
    assert repr(board) == str(board)
    lines = str(board).splitlines()
    assert lines[0].split()[0] == "model"
    assert "Scores are micro-F1 in percent." in lines
    assert board.choice in lines
    frame = board.to_pandas()
    assert frame["model"].tolist() == [row.name for row in board.rows]
    assert {"val", "test_micro_f1", "low", "high", "seconds", "parameters", "chosen"} <= set(frame.columns)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AsgatError, match="A data frame needs pandas"):
        board.to_pandas()


def test_scores_as_people_read_them():
    assert [shown(0.7123, "micro_f1"), shown(0.7123, "log_loss"), shown(None, "micro_f1")] == ["71.2", "0.712", "–"]
    assert [duration(0.0), duration(3.21), duration(75.0)] == ["–", "3.2 s", "75 s"]


def test_guessing():
    (better,) = about_guessing("gcn", "micro_f1", 0.7, 0.5, (0.1, 0.3))
    assert better == (
        "Better than guessing: gcn has a test micro-F1 of 70.0 and guessing 50.0, "
        "a gain of 10.0 to 30.0 (95 % interval)."
    )
    (same,) = about_guessing("gcn", "micro_f1", 0.55, 0.5, (-0.05, 0.15))
    assert same.startswith("Not significantly better than guessing: gcn has")
    assert "a gain of -5.0 to 15.0 (95 % interval); what to try: label more nodes" in same
    (edge,) = about_guessing("gcn", "roc_auc", 0.9, 0.5, (0.0, 0.5))
    assert edge.startswith("Not")
    assert about_guessing("gcn", "roc_auc", None, None, None) == []


def test_what_the_graph_adds(board):
    def about_graph(gain, metric="micro_f1"):
        return sentences(replace(board, metric=metric), (0.1, 0.3), gain, "mlp", "gcn")[-1]

    assert about_graph((0.05, 0.1)).startswith("The graph helps: gcn with the graph, next to mlp on the features alone")
    assert "gains 5.0 to 10.0 in test micro-F1 (95 % interval)" in about_graph((0.05, 0.1))
    assert about_graph((-0.05, 0.1)).startswith("It is not sure that the graph helps")
    assert about_graph((-0.1, -0.05)).startswith("The graph does not help")
    assert about_graph((0.0, 0.1)).startswith("It is not sure that the graph helps")
    assert "gains 0.050 to 0.100 in test log-loss" in about_graph((0.05, 0.1), "log_loss")
    assert len(sentences(board, (0.1, 0.3), None, None, "gcn")) == 1


def test_without_test_nodes_it_is_said(board):
    rows = [replace(one, test=None, interval=None) for one in board.rows]
    (only,) = sentences(replace(board, rows=rows, chosen=rows[0]), None, None, None, None)
    assert "no test nodes" in only
