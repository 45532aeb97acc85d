"""What a classifier with ``verbose`` prints while it is fitted."""

from asgat.leaderboard.contest import Report
from asgat.training.run_state import Epoch
from asgat.training.runner import Callbacks

EVERY = 50  # epochs between two lines


def training_lines(verbose: int) -> Callbacks:
    """Callbacks that print some epochs of a training, or all of them if ``verbose`` is 2."""

    def progress(_: int, epoch: Epoch) -> None:
        if verbose > 1 or epoch.epoch % EVERY == 0:
            losses = f"train loss {epoch.train_loss:.4f}, val loss {epoch.val_loss:.4f}"
            print(f"epoch {epoch.epoch}: {losses}, val score {epoch.val_score:.4f}")

    return Callbacks(progress) if verbose else Callbacks()


def board_lines(verbose: int) -> Report | None:
    """A function that prints the rounds of a leaderboard, with every training if ``verbose`` is 2."""
    last: tuple[str, int] | None = None

    def report(name: str, done: int, total: int, _: Epoch | None) -> None:
        nonlocal last
        if (name, done) != last and (verbose > 1 or done in (0, total)):
            print(f"{name}: {done} of {total} trained")
        last = name, done

    return report if verbose else None
