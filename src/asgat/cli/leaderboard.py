"""What ``asgat fit`` prints of a leaderboard, and its bar while models are trained."""

from typing import Any

from rich.markup import escape

from asgat.cli.output import ProgressBar, console, make_table, say


class BoardProgress(ProgressBar):
    """The round, the trainings of it that are done, and the latest epoch."""

    def __init__(self, metric: str) -> None:
        super().__init__(20)
        self.metric = metric

    def __call__(self, name: str, done: int, total: int, epoch: Any) -> None:
        from asgat.leaderboard.standings import shown_val

        figures = "" if epoch is None else f"epoch {epoch.epoch}  validation {shown_val(epoch.val_score, self.metric)}"
        self.bar.update(self.task, description=name, total=total, completed=done, figures=figures)


def print_board(board: Any, name: str) -> None:
    """The table, the model that was chosen, and what the numbers say."""
    from asgat.leaderboard.standings import CUT

    headings, cells = board.cells()
    lines = [map(escape, line) for line in cells]
    title = f"Leaderboard of {escape(name)}: {board.unit}"
    console.print(make_table(title, headings, lines, left=("model",), no_wrap=("model",)))
    say(board.choice, wrap=True)
    for sentence in board.sentences:
        say(f"→ {sentence}", wrap=True)
    for note in board.notes:
        say(f"· {note}", wrap=True)
    if board.cut:
        say(CUT, wrap=True)


def print_scores(test: dict[str, Any] | None, title: str) -> None:
    """All scores on the test nodes, with the interval of the one that validation decided by, next to guessing."""
    from asgat.leaderboard.standings import METRIC_NAMES, shown, shown_interval

    if test is None:
        return
    table = make_table(title, ("score", "test", "95 % interval", "guessing"), left=("score",))
    for key, name in METRIC_NAMES.items():
        kind = "log_loss" if key == "log_loss" else "share"
        if test["scores"][key] is not None:
            interval = shown_interval(test["interval"], kind) if key == test["metric"] else ""
            guess = "" if key == "calibration_error" else shown(test["guessing"][key], kind)
            table.add_row(name, shown(test["scores"][key], kind), interval, guess)
    console.print(table)
