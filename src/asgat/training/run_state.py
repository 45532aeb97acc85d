"""One run from its first epoch to its result: early stopping, restarts and what is reported.

Every way of training (one process, ranks) drives this state machine with the losses and scores of its epochs, so that
the rules exist once.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from asgat.config import TrainConfig
from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.training.early_stopping import EarlyStopping
from asgat.training.metrics import guess, log_loss, macro_f1, majority_share

State = dict[str, Tensor]  # weights and buffers by name
SCORES = ("val_loss", "val_score", "micro_f1", "macro_f1", "roc_auc")  # what a trained model is scored by


@dataclass(frozen=True)
class Epoch:
    """Losses and validation score of one epoch."""

    attempt: int
    epoch: int
    train_loss: float
    val_loss: float
    val_score: float


@dataclass(frozen=True)
class RunResult:
    """The result of one run. Test scores are those of the kept epoch and decided nothing."""

    seed: int
    epochs: int
    best_epoch: int
    val_loss: float
    val_score: float
    micro_f1: float
    macro_f1: float
    roc_auc: float | None
    restarts: int
    seconds: float
    history: list[Epoch] = field(repr=False)
    state: State = field(repr=False)

    def figures(self) -> dict[str, Any]:
        """What ``result.json`` holds of it: everything but history and weights."""
        return {key: value for key, value in vars(self).items() if key not in ("history", "state")}


@dataclass(frozen=True)
class Job:
    """What to train: on which nodes, from which seed, with which settings."""

    split: Split
    seed: int  # of the first attempt; later attempts derive theirs from it
    config: TrainConfig
    run: int = 0  # number in its run directory
    member: int = 0  # number of the network in its ensemble


class DivergedError(AsgatError):
    """A loss is infinite or not a number."""

    def __init__(self, epoch: int, train_loss: float, val_loss: float, lr: float) -> None:
        self.figures = epoch, train_loss, val_loss
        super().__init__(
            f"Training diverged at epoch {epoch}: the loss is {train_loss}, on validation {val_loss}. "
            f"Set a lower learning rate (lr is {lr:g}) or check the features for huge values."
        )


Outcome = RunResult | DivergedError


def run_seed(seed: int, run: int, num_splits: int) -> int:
    """The seed of a run: the same for every split, or another for every run where there is one split."""
    return seed if num_splits > 1 else seed + run


def attempt_seed(seed: int, attempt: int) -> int:
    """The seed of an attempt, far from those of other runs."""
    return seed + 1_000_003 * attempt


def member_seed(seed: int, member: int) -> int:
    """The seed of a network of an ensemble, far from those of other runs and of their later attempts."""
    return seed + 70_001_033 * member


def baseline_score(labels: npt.NDArray[np.int64], split: Split, metric: str) -> float:
    """The validation score of a model that learned nothing; refuses splits that have no such score."""
    if not len(split.val):
        raise AsgatError("The split has no validation nodes; early stopping needs some.")
    if metric == "roc_auc" and len(np.unique(labels[split.val])) < 2:
        raise AsgatError("The validation nodes are of one class; roc_auc is not defined on them. Use micro_f1.")
    train, val = labels[split.train], labels[split.val]
    if metric == "micro_f1":
        return majority_share(train, val)
    guessed = guess(train, int(max(train.max(), val.max())) + 1, len(val))
    if metric == "log_loss":
        return -log_loss(val, guessed)
    return 0.5 if metric == "roc_auc" else macro_f1(val, guessed.argmax(axis=1))


class Run:
    """The state machine of one run.

    An attempt ends when early stopping says so, after ``config.epochs`` epochs, or when it diverges. A run whose best
    attempt is no better on validation than ``baseline`` starts again with another seed, at most ``config.max_restarts``
    times. The attempt with the best validation score counts; test nodes have no part in any of this.

    Attributes:
        attempt, epoch: where the run is; epochs count from 1 within an attempt.
        best_epoch: the epoch of this attempt that early stopping keeps.
        best: scores of the best finished attempt, and ``best_state`` its weights.
        attempt_ended: the attempt is over, and waits for :meth:`end_attempt`.
        finished: there is nothing left to train.
        reported: the result was returned to the caller; checkpoints no longer hold the run.
    """

    def __init__(self, job: Job, baseline: float) -> None:
        self.job, self.baseline = job, baseline
        self.attempt, self.seconds = 0, 0.0
        self.history: list[Epoch] = []
        self.best: dict[str, Any] | None = None
        self.best_state: State = {}
        self.diverged: DivergedError | None = None
        self.finished = self.reported = False
        self._begin_attempt()

    def _begin_attempt(self) -> None:
        self.epoch = self.best_epoch = 0
        self.stopping = EarlyStopping(self.job.config.patience, self.job.config.stop_on == "score")
        self.attempt_diverged = False

    @property
    def seed(self) -> int:
        """The seed of the current attempt."""
        return attempt_seed(self.job.seed, self.attempt)

    @property
    def attempt_ended(self) -> bool:
        return self.attempt_diverged or self.stopping.stop or self.epoch >= self.job.config.epochs

    def update(self, train_loss: float, val_loss: float, val_score: float) -> bool:
        """Takes the figures of one epoch; True if its weights are now the ones to keep."""
        self.epoch += 1
        if not math.isfinite(train_loss + val_loss):
            self.diverged = DivergedError(self.epoch, train_loss, val_loss, self.job.config.lr)
            self.attempt_diverged = True
            return False
        self.history.append(Epoch(self.attempt, self.epoch, train_loss, val_loss, val_score))
        keep = self.stopping.update(val_loss, val_score)
        if keep:
            self.best_epoch = self.epoch
        return keep

    def end_attempt(self, scores: dict[str, Any] | None, state: State) -> None:
        """Takes the scores and weights of the kept epoch (None after divergence); finishes the run or starts again."""
        if scores is not None and (self.best is None or scores["val_score"] > self.best["val_score"]):
            self.best = {"best_epoch": self.best_epoch, **scores}
            self.best_state = state
        learned = self.best is not None and (self.best["val_score"] > self.baseline or self.best["val_score"] == 1.0)
        if learned or self.attempt >= self.job.config.max_restarts:
            self.finished = True
        else:
            self.attempt += 1
            self._begin_attempt()

    def outcome(self) -> Outcome:
        """The result of a finished run; the error if every attempt diverged."""
        if self.best is None:
            assert self.diverged is not None
            return self.diverged
        return RunResult(
            seed=self.job.seed,
            epochs=len(self.history),
            **self.best,
            restarts=self.attempt,
            seconds=self.seconds,
            history=self.history,
            state=self.best_state,
        )

    # -- as plain values ----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything but the tensors, for a checkpoint."""
        stopping = self.stopping
        return {
            "run": self.job.run,
            "member": self.job.member,
            "seed": self.job.seed,
            "attempt": self.attempt,
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "waited": stopping.waited,
            "best_loss": stopping.best_loss if math.isfinite(stopping.best_loss) else None,
            "best_score": stopping.best_score if math.isfinite(stopping.best_score) else None,
            "seconds": self.seconds,
            "history": [list(asdict(epoch).values()) for epoch in self.history],
            "best": self.best,
            "finished": self.finished,
            "attempt_diverged": self.attempt_diverged,
            "diverged": list(map(str, self.diverged.figures)) if self.diverged else None,
        }

    def restore(self, values: dict[str, Any]) -> None:
        """Puts back what :meth:`to_dict` gave; a ValueError if these are not values of this run."""
        counts = [values[key] for key in ("attempt", "epoch", "best_epoch", "waited")]
        config = self.job.config
        if not all(type(count) is int and count >= 0 for count in counts) or not _finite(values["seconds"]):
            raise ValueError("its counts are not numbers")
        if values["attempt"] > config.max_restarts or values["epoch"] > config.epochs:
            raise ValueError("it has more epochs or attempts than the settings allow")
        if not all(value is None or _finite(value) for value in (values["best_loss"], values["best_score"])):
            raise ValueError("its best loss and score are not numbers")
        history, best = values["history"], values["best"]
        if not isinstance(history, list) or not all(len(row) == 5 and all(map(_finite, row)) for row in history):
            raise ValueError("its history is not one")
        if best is not None and not _are_scores(best):
            raise ValueError("its scores are not numbers")
        self.attempt, self.epoch, self.best_epoch, self.stopping.waited = counts
        self.stopping.best_loss = math.inf if values["best_loss"] is None else values["best_loss"]
        self.stopping.best_score = -math.inf if values["best_score"] is None else values["best_score"]
        self.seconds, self.best, self.finished = values["seconds"], best, bool(values["finished"])
        self.attempt_diverged = bool(values["attempt_diverged"])
        if values["diverged"] is not None:
            epoch, train_loss, val_loss = values["diverged"]
            self.diverged = DivergedError(int(epoch), float(train_loss), float(val_loss), config.lr)
        self.history = [Epoch(int(attempt), int(epoch), *rest) for attempt, epoch, *rest in history]
        if (self.finished or self.attempt_diverged) and self.best is None and self.diverged is None:
            raise ValueError("it has ended and has no scores")


def joined_history(members: Sequence[RunResult]) -> list[Epoch]:
    """The epochs of an ensemble's networks one after the other, their attempts numbered on."""
    history: list[Epoch] = []
    for member in members:
        first = history[-1].attempt + 1 if history else 0
        history += [replace(epoch, attempt=epoch.attempt + first) for epoch in member.history]
    return history


def _finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _are_scores(best: Any) -> bool:
    return (
        isinstance(best, dict)
        and best.keys() == {"best_epoch", *SCORES}
        and all(isinstance(value, int | float | None) for value in best.values())
        and _finite(best["val_score"])
    )
