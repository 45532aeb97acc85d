"""Losses and scores of every epoch, and the learned filters, for TensorBoard, an extra."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from asgat.errors import AsgatError
from asgat.training.run_state import Epoch


class TensorBoardLog:
    """A progress callback that also writes the losses and the validation score of every epoch, one sub-folder per run.

    Use it as a context.

    Args:
        folder: where TensorBoard will look; None writes nothing.
        progress: called first, with the run and its epoch.
    """

    def __init__(self, folder: Path | str | None, progress: Callable[[int, Epoch], None] | None = None) -> None:
        self.folder, self.progress = folder, progress
        self.writers: dict[int, Any] = {}
        if folder is not None:
            import_writer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self.writers.values():
            writer.close()

    def __call__(self, run: int, epoch: Epoch) -> None:
        if self.progress is not None:
            self.progress(run, epoch)
        if self.folder is None:
            return
        if run not in self.writers:
            self.writers[run] = open_writer(self.folder, run)
        for name in ("train_loss", "val_loss", "val_score"):
            self.writers[run].add_scalar(f"attempt-{epoch.attempt}/{name}", getattr(epoch, name), epoch.epoch)


def log_picture(folder: Path | str, run: int, picture: Path, name: str) -> None:
    """Adds a PNG file to a run, such as the responses of the heads it has learned."""
    from matplotlib.image import imread

    with open_writer(folder, run) as writer:
        writer.add_image(name, imread(picture)[..., :3], dataformats="HWC")


def import_writer() -> Any:
    """TensorBoard's writer, an extra."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise AsgatError("TensorBoard is not installed; `pip install 'asgat[tensorboard]'`.") from None
    return SummaryWriter


def open_writer(folder: Path | str, run: int) -> Any:
    """A writer of the sub-folder of a run."""
    try:
        return import_writer()(str(Path(folder) / f"run-{run}"))
    except OSError as error:
        raise AsgatError(f"{folder} cannot be written: {error.strerror}. Choose another place.") from error
