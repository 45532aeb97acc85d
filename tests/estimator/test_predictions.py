"""Predictions as a table."""

import csv
import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from asgat.errors import AsgatError
from asgat.estimator.predictions import Predictions, check_ending, summary_of, write_predictions

PREDICTIONS = Predictions(
    "who",
    ["a", "b,c", "ü"],
    ["no", "yes"],
    np.array([[0.75, 0.25], [0.125, 0.875], [0.5, 0.5]]),
    ["no", "no", ""],
)


@pytest.mark.parametrize(("name", "delimiter"), [("p.csv", ","), ("p.tsv", "\t")])
def test_text(tmp_path, name, delimiter):
    write_predictions(PREDICTIONS, tmp_path / name)
    with (tmp_path / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    assert [row["who"] for row in rows] == ["a", "b,c", "ü"]
    assert [row["prediction"] for row in rows] == ["no", "yes", "no"]
    assert [row["labelled"] for row in rows] == ["true", "true", "false"]
    assert [row["label"] for row in rows] == ["no", "no", ""]
    assert [float(row["p(yes)"]) for row in rows] == [0.25, 0.875, 0.5]


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_predictions(PREDICTIONS, tmp_path / "p.parquet")
    assert parquet.read_table(tmp_path / "p.parquet").to_pydict() == PREDICTIONS.columns()


def test_summary():
    summary = summary_of(PREDICTIONS)
    assert summary["accuracy"] == 0.5
    assert (summary["nodes"], summary["labelled"]) == (3, 2)
    assert summary["rows"] == [
        {"class": "no", "nodes": 2, "unlabelled": 1},
        {"class": "yes", "nodes": 1, "unlabelled": 0},
    ]


@pytest.mark.parametrize("name", ["p(a)", "p(b)", "prediction"])
def test_ids_are_never_replaced_by_another_column(name):
    same = Predictions(name, ["first"], ["a", "b"], np.array([[1.0, 0.0]]), [""])
    assert same.columns()[f"id_{name}"] == ["first"]
    assert len(same.columns()) == 6


def test_texts_that_a_spreadsheet_would_run_can_be_escaped(tmp_path):
    hostile = Predictions(
        "=id", ["=1+1", "+a", "-1", "@x", "plain"], ["=cmd", "b"], np.eye(2)[[0, 0, 0, 1, 1]], [""] * 5
    )
    for safe, mark in ((False, ""), (True, "'")):
        write_predictions(hostile, tmp_path / "p.csv", safe_csv=safe)
        with (tmp_path / "p.csv").open(newline="") as file:
            rows = list(csv.reader(file))
        assert rows[0] == [f"{mark}=id", "prediction", "labelled", "label", "p(=cmd)", "p(b)"]
        assert [row[0] for row in rows[1:]] == [f"{mark}=1+1", f"{mark}+a", f"{mark}-1", f"{mark}@x", "plain"]
        assert rows[1][1] == f"{mark}=cmd"
        assert rows[1][4] == "1.0", "numbers stay numbers"


def test_an_id_column_with_the_name_of_another():
    same = Predictions("label", ["a"], ["x", "y"], np.array([[1.0, 0.0]]), [""])
    assert list(same.columns()) == ["id_label", "prediction", "labelled", "label", "p(x)", "p(y)"]
    assert summary_of(same)["accuracy"] is None


def test_endings(monkeypatch):
    with pytest.raises(AsgatError, match=r"must end in \.csv"):
        check_ending(Path("p.xlsx"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    check_ending(Path("p.csv"))
    with pytest.raises(AsgatError, match=r"asgat\[tables\]"):
        check_ending(Path("p.parquet"))


def test_packed_text(tmp_path):
    for name in ("a.csv", "a.csv.gz", "b.csv.gz"):
        write_predictions(PREDICTIONS, tmp_path / name)
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == (tmp_path / "a.csv").read_bytes()
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    with pytest.raises(AsgatError, match="must end in"):
        check_ending(Path("p.parquet.gz"))
