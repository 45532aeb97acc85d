"""What TensorBoard gets."""

import sys

import pytest

from asgat.errors import AsgatError
from asgat.report.figures import new_figure, write_png
from asgat.training.run_state import Epoch
from asgat.training.tensorboard import TensorBoardLog, log_picture


def test_without_a_folder_nothing_is_done():
    seen: list[int] = []
    with TensorBoardLog(None, lambda run, epoch: seen.append(run)) as log:
        log(0, Epoch(0, 1, 1.0, 1.0, 0.5))
    assert seen == [0]
    assert log.writers == {}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_every_epoch_is_written(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    seen: list[tuple[int, int]] = []
    with TensorBoardLog(tmp_path, lambda run, epoch: seen.append((run, epoch.epoch))) as log:
        for run in (0, 3):
            for step in (1, 2, 3):
                log(run, Epoch(0, step, 1.0 / step, 2.0 / step, step / 4))
    assert seen == [(0, 1), (0, 2), (0, 3), (3, 1), (3, 2), (3, 3)]
    for run in (0, 3):
        events = EventAccumulator(str(tmp_path / f"run-{run}"))
        events.Reload()
        scores = events.Scalars("attempt-0/val_score")
        assert [(event.step, event.value) for event in scores] == [(1, 0.25), (2, 0.5), (3, 0.75)]
        assert events.Scalars("attempt-0/train_loss")[0].value == 1.0


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_picture_is_added_to_a_run(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    picture = tmp_path / "filters.png"
    figure = new_figure(2.0, 1.0)
    figure.subplots().plot([0, 1])
    log_picture(tmp_path, 3, write_png(figure, picture, dpi=50), "learned filters")
    events = EventAccumulator(str(tmp_path / "run-3"))
    events.Reload()
    (image,) = events.Images("learned filters")
    assert (image.width, image.height) == (100, 50)


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(AsgatError, match=r"pip install 'asgat\[tensorboard\]'"):
        TensorBoardLog(tmp_path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    pytest.importorskip("tensorboard")
    (tmp_path / "file").touch()
    with pytest.raises(AsgatError, match="cannot be written"), TensorBoardLog(tmp_path / "file") as log:
        log(0, Epoch(0, 1, 1.0, 1.0, 0.5))
