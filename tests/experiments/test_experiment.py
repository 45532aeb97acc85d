import json

import pytest
from rich.table import Table

from asgat.experiments.experiment import Experiment, device_name, perform
from asgat.experiments.plotting import new
from asgat.experiments.reproduction import NoResultError, Reproduction


def experiment(found):
    return Experiment("mine", "What?", lambda study: found, lambda result: [Table(title=str(result["rows"]))],
                      lambda result: {"mine": new(3, 2), "mine-detail": new(2, 2)})  # fmt: skip


def test_numbers_tables_and_figures_are_written(tmp_path):
    study = Reproduction(tmp_path / "out", quick=True)
    tables, files = perform(experiment({"rows": [1.5, float("nan")]}), study)
    assert [file.name for file in files] == ["mine.json", "mine.png", "mine-detail.png"]
    assert all(file.parent == tmp_path / "out" for file in files)
    result = json.loads(files[0].read_bytes())
    assert result["rows"] == [1.5, None]
    assert result["quick"] is True
    assert result["about"]["seeds"] == [0]
    assert result["about"]["question"] == "What?"
    assert {"torch", "asgat"} <= set(result["about"]["versions"])
    assert "1.5" in str(tables[0].title)
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files[1:])


def test_what_was_left_out_is_told_in_the_numbers_of_its_own_experiment(tmp_path):
    study = Reproduction(tmp_path)
    study.skipped["of an earlier one"] = "no files"

    def collect(study):
        study.failed["gcn"] = "diverged"
        return {"rows": [1]}

    mine = experiment({})
    perform(Experiment(mine.name, mine.question, collect, mine.tables, mine.draw), study)
    about = json.loads((tmp_path / "mine.json").read_bytes())["about"]
    assert (about["skipped"], about["failed"]) == ({}, {"gcn": "diverged"})
    assert json.loads((tmp_path / "mine.json").read_bytes())["quick"] is False


@pytest.mark.parametrize("found", [{}, {"rows": []}])
def test_nothing_is_no_result(tmp_path, found):
    with pytest.raises(NoResultError, match="mine has no result"):
        perform(experiment(found), Reproduction(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_device_is_named(tmp_path):
    assert device_name(Reproduction(tmp_path)) == "CPU, threads: 1"
