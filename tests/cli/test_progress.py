from types import SimpleNamespace

import pytest

from asgat.cli.progress import RunProgress


def epoch(number, attempt=0):
    return SimpleNamespace(attempt=attempt, epoch=number, train_loss=0.123, val_loss=4.567, val_score=0.89)


@pytest.fixture
def progress():
    with RunProgress(2, epochs=10) as progress:
        yield progress


def test_the_latest_epoch_and_its_losses_are_shown(progress):
    progress(5, epoch(4))
    task = progress.bar.tasks[0]
    assert (task.completed, task.total, task.description) == (4, 10, "0/2 runs")
    assert all(figure in task.fields["figures"] for figure in ("run 5", "0.123", "4.567", "89.0 %"))


def test_runs_may_be_interleaved_and_restarted(progress):
    for run, number, attempt in [(3, 1, 0), (5, 1, 0), (3, 2, 0), (5, 2, 0), (3, 1, 1), (7, 1, 0)]:
        progress(run, epoch(number, attempt))
        assert progress.bar.tasks[0].completed == number
        assert f"run {run} " in progress.bar.tasks[0].fields["figures"]
    progress.finished(1, 3)
    progress(5, epoch(3))
    assert progress.bar.tasks[0].description == "1/3 runs"
    progress.finished(3, 3)
    assert progress.bar.tasks[0].description == "3/3 runs"


def test_the_rows_of_a_table_are_counted_before_the_epochs(progress):
    progress.building(30, 80)
    task = progress.bar.tasks[0]
    assert (task.completed, task.total) == (30, 80)
    assert "candidate table" in task.fields["figures"]
    progress(0, epoch(1))
    assert (task.completed, task.total) == (1, 10)


def test_a_file_gets_no_bar(progress, capsys):
    progress(0, epoch(1))
    assert capsys.readouterr() == ("", "")
