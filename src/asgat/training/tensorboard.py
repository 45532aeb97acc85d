"""Losses and scores of every epoch for TensorBoard, an extra."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from asgat.errors import AsgatError
from asgat.training.run_state import Epoch


class TensorBoardLog:
    """Writes losses and the validation score of every epoch below a folder, with one sub-folder per run.

    Use it as a context; without a folder it does nothing.

    Args:
        folder: where TensorBoard will look; None writes nothing.
    """

    def __init__(self, folder: Path | str | None) -> None:
        self.folder = None if folder is None else Path(folder)
        self.writers: dict[int, Any] = {}
        if self.folder is not None:
            self._writer_class()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self.writers.values():
            writer.close()

    def __call__(self, run: int, epoch: Epoch) -> None:
        if self.folder is None:
            return
        if run not in self.writers:
            try:
                self.writers[run] = self._writer_class()(str(self.folder / f"run-{run}"))
            except OSError as error:
                raise AsgatError(f"{self.folder} cannot be written: {error.strerror}. Choose another place.") from error
        step = epoch.epoch
        for name in ("train_loss", "val_loss", "val_score"):
            self.writers[run].add_scalar(f"attempt-{epoch.attempt}/{name}", getattr(epoch, name), step)

    def beside(self, progress: Callable[[int, Epoch], None]) -> Callable[[int, Epoch], None]:
        """A function of a run and its epoch that calls both ``progress`` and this log."""
        if self.folder is None:
            return progress

        def both(run: int, epoch: Epoch) -> None:
            progress(run, epoch)
            self(run, epoch)

        return both

    @staticmethod
    def _writer_class() -> Any:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise AsgatError("TensorBoard is not installed; `pip install 'asgat[tensorboard]'`.") from None
        return SummaryWriter
