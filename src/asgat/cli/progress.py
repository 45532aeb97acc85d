"""The live bar of a training."""

from typing import Any, Self

from asgat.cli.output import errors


class RunProgress:
    """A bar with the number of finished runs and the latest epoch of any run; runs may train at the same time."""

    def __init__(self, runs: int, epochs: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.epochs = epochs
        columns = TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn()
        figures = TextColumn("{task.fields[figures]}"), TimeElapsedColumn()
        self.bar = Progress(*columns, *figures, console=errors, transient=True, disable=not errors.is_terminal)
        self.task = self.bar.add_task("", total=epochs, figures="")
        self.finished(0, runs)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def building(self, done: int, rows: int) -> None:
        """Shows how many rows of the candidate table are built."""
        self.bar.update(self.task, total=rows, completed=done, figures="rows of the candidate table")

    def finished(self, done: int, total: int) -> None:
        """Shows how many runs are finished."""
        self.bar.update(self.task, description=f"{done}/{total} runs")

    def __call__(self, run: int, epoch: Any) -> None:
        losses = f"loss {epoch.train_loss:.3f}  validation loss {epoch.val_loss:.3f}"
        figures = f"run {run}  {losses}  score {100 * epoch.val_score:.1f} %"
        self.bar.update(self.task, total=self.epochs, completed=epoch.epoch, figures=figures)
