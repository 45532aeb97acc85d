import json
from dataclasses import replace

import pytest
import torch

from asgat.experiments.experiment import (
    Experiment,
    Table,
    datasets_of,
    device_name,
    difference,
    mean_std,
    row_of,
    rows_of,
    run_experiment,
)
from asgat.experiments.reproduction import NoResultError, Reproduction
from asgat.report.figures import new_figure


def experiment(found):
    return Experiment("mine", "What?", ["karate"], ["karate"], {"claim": "so"}, lambda *_: found,
                      lambda result: [Table(str(result["rows"]), ["model"], [["gcn"]], "")],
                      lambda result: {"mine": new_figure(3, 2), "mine-detail": new_figure(2, 2)})  # fmt: skip


def test_numbers_tables_and_figures_are_written(tmp_path):
    reproduction = Reproduction(tmp_path / "out", quick=True)
    tables, files = run_experiment(experiment({"rows": [1.5, float("nan")]}), reproduction)
    assert [file.name for file in files] == ["mine.json", "mine.png", "mine-detail.png"]
    assert all(file.parent == tmp_path / "out" for file in files)
    result = json.loads(files[0].read_bytes())
    assert result["rows"] == [1.5, None]
    assert result["quick"] is True
    assert result["claim"] == "so"
    assert result["about"]["seeds"] == [0]
    assert result["about"]["question"] == "What?"
    assert {"torch", "asgat"} <= set(result["about"]["versions"])
    assert "1.5" in str(tables[0].title)
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files[1:])


def test_skipped_and_failed_are_those_of_the_experiment(tmp_path):
    reproduction = Reproduction(tmp_path)
    reproduction.skipped["of an earlier experiment"] = "no files"

    def collect(reproduction, datasets):
        reproduction.failed["gcn"] = "diverged"
        return {"rows": [1]}

    run_experiment(replace(experiment({}), collect=collect), reproduction)
    about = json.loads((tmp_path / "mine.json").read_bytes())["about"]
    assert (about["skipped"], about["failed"]) == ({}, {"gcn": "diverged"})
    assert json.loads((tmp_path / "mine.json").read_bytes())["quick"] is False


@pytest.mark.parametrize("found", [{}, {"rows": []}])
def test_no_rows_are_an_error(tmp_path, found):
    with pytest.raises(NoResultError, match="mine has no result"):
        run_experiment(experiment(found), Reproduction(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_device_is_named():
    assert device_name(torch.device("cpu")) == "CPU, threads: 1"


def test_rows_by_their_entries():
    rows = [{"dataset": name, "k": k, "list": [k]} for name in ("cora", "texas") for k in (1, 2)]
    result = {"rows": rows}
    assert datasets_of(result) == ["cora", "texas"]
    assert rows_of(result, dataset="texas") == rows[2:]
    assert row_of(result, dataset="cora", k=2) is rows[1]
    assert row_of(result, k=3) is None


def test_scores_are_in_percent():
    assert mean_std(None) == "–"
    assert mean_std(0.8512) == "85.1"
    assert mean_std(0.8512, 0.0123) == "85.1 ± 1.2"
    assert difference(0.9, 0.85) == "+5.0"
    assert difference(0.9, None) == difference(None, 0.9) == "–"
