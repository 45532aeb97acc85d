"""Losses and scores of every epoch for TensorBoard, an extra."""

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
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise AsgatError("TensorBoard is not installed; `pip install 'asgat[tensorboard]'`.") from None
            self._new_writer: Any = SummaryWriter

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
            try:
                self.writers[run] = self._new_writer(str(Path(self.folder) / f"run-{run}"))
            except OSError as error:
                raise AsgatError(f"{self.folder} cannot be written: {error.strerror}. Choose another place.") from error
        for name in ("train_loss", "val_loss", "val_score"):
            self.writers[run].add_scalar(f"attempt-{epoch.attempt}/{name}", getattr(epoch, name), epoch.epoch)
