"""One model, one split, one seed: trained, stopped early, and started anew if it learned nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.config import ASGATConfig, TrainConfig
from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.training.early_stopping import EarlyStopping
from asgat.training.metrics import macro_f1, majority_share, micro_f1
from asgat.training.minibatch import MinibatchStep
from asgat.training.step import CapturedEpochs, EagerEpochs, Step, score
from asgat.training.unfinished import KEPT_FIGURES, Keeper, Position, Saved

Progress = Callable[["Epoch"], None]


@dataclass(frozen=True)
class Epoch:
    """One epoch's figures."""

    attempt: int
    epoch: int
    train_loss: float
    val_loss: float
    val_score: float


@dataclass(frozen=True)
class RunResult:
    """What one run came to. Test figures are those of the kept epoch and decided nothing."""

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
    state: dict[str, Tensor] = field(repr=False)


def train(
    build: Callable[[], nn.Module],
    inputs: tuple[Any, ...],
    y: Tensor,
    split: Split,
    config: TrainConfig,
    seed: int = 0,
    metric: str = "micro_f1",
    progress: Progress | None = None,
    keeper: Keeper | None = None,
) -> RunResult:
    """Trains a model and returns its figures and weights at the epoch early stopping kept.

    A run that ends no better on validation than the majority class, or diverges, is started anew with another seed,
    at most ``config.max_restarts`` times; the attempt with the best validation score counts. Test nodes have no part
    in any of this.

    Args:
        build: makes the model; called once per attempt, after seeding.
        inputs: what the model's ``forward`` takes, features first.
        y: labels of all nodes; those of validation and test nodes do not enter the loss.
        split: node indices.
        config: learning rate, patience and so on.
        seed: of the first attempt; later attempts derive theirs from it.
        metric: ``"micro_f1"`` or ``"roc_auc"``, the validation score.
        progress: called after every epoch.
        keeper: saves the run in the middle, and has what an earlier start saved of it.
    """
    hopeless = hopeless_score(y.cpu().numpy(), split, metric)
    saved = keeper.load(seed, y.device) if keeper else None
    position = saved.position if saved else Position(keeper.run if keeper else 0, seed, str(y.device))
    history = [Epoch(int(attempt), int(epoch), *figures) for attempt, epoch, *figures in position.history]
    best = _best_so_far(saved, seed, history)
    diverged: AsgatError | None = None
    started = time.perf_counter() - position.seconds
    attempt = position.attempt

    def keep(
        model: nn.Module, optimiser: torch.optim.Optimizer, stopping: EarlyStopping, kept: dict[str, Tensor]
    ) -> None:
        if keeper and keeper.due:
            position.attempt, position.seconds = attempt, time.perf_counter() - started
            position.history = [[e.attempt, e.epoch, e.train_loss, e.val_loss, e.val_score] for e in history]
            position.best = {name: getattr(best, name) for name in KEPT_FIGURES} if best else None
            keeper.save(position, model, optimiser, stopping, kept, best.state if best else {})

    for attempt in range(min(position.attempt, config.max_restarts), config.max_restarts + 1):
        try:
            result = _attempt(
                build, inputs, y, split, config, seed, attempt, metric, history, progress, position, saved, keep
            )
        except DivergedError as error:
            diverged = error
            continue
        finally:
            saved = None  # of this attempt alone
        if best is None or result.val_score > best.val_score:
            best = result
        if best.val_score > hopeless or best.val_score == 1.0:
            break
    if best is None:
        assert diverged is not None
        raise diverged
    figures = {**best.__dict__, "restarts": attempt, "seconds": time.perf_counter() - started, "epochs": len(history)}
    return RunResult(**figures)


def hopeless_score(labels: npt.NDArray[np.int64], split: Split, metric: str) -> float:
    """The validation score of a model that learned nothing; refuses splits on which there is no such score."""
    if not len(split.val):
        raise AsgatError("The split has no validation nodes; early stopping needs some.")
    if metric == "roc_auc" and len(np.unique(labels[split.val])) < 2:
        raise AsgatError("The validation nodes are of one class; roc_auc is not defined on them. Use micro_f1.")
    return 0.5 if metric == "roc_auc" else majority_share(labels[split.train], labels[split.val])


def seed_of(seed: int, attempt: int) -> int:
    """The seed of an attempt, far from those of other runs."""
    return seed + 1_000_003 * attempt


def member_seed(seed: int, member: int) -> int:
    """The seed of a committee's member, far from those of other runs and of their later attempts."""
    return seed + 70_001_033 * member


def train_run(
    build: Callable[[TrainConfig], nn.Module],
    inputs: tuple[Any, ...],
    y: Tensor,
    split: Split,
    config: TrainConfig,
    seed: int = 0,
    metric: str = "micro_f1",
    progress: Progress | None = None,
    keeper: Keeper | None = None,
) -> RunResult:
    """Trains what a configuration names: a network, see :func:`train`, or the members of a committee in turn.

    Each member is trained as if it were alone. Of a committee nothing is kept in the middle: a run that was interrupted
    begins anew.
    """
    if not isinstance(config, ASGATConfig) or config.members == 1:
        with keeper or nullcontext():
            return train(lambda: build(config), inputs, y, split, config, seed, metric, progress, keeper)
    one = config.replace(members=1)
    seeds = [member_seed(seed, i) for i in range(config.members)]
    members = [train(lambda: build(one), inputs, y, split, one, own, metric, progress) for own in seeds]
    return joined(build(config), members, inputs, y, split, metric)


def joined(
    committee: nn.Module,
    members: Sequence[RunResult],
    inputs: tuple[Any, ...],
    y: Tensor,
    split: Split,
    metric: str,
) -> RunResult:
    """What a committee comes to, from what its members came to. Attempts of the members are counted on."""
    state = {f"members.{i}.{name}": value for i, one in enumerate(members) for name, value in one.state.items()}
    committee.load_state_dict(state)
    history: list[Epoch] = []
    for one in members:
        before = history[-1].attempt + 1 if history else 0
        history += [replace(epoch, attempt=epoch.attempt + before) for epoch in one.history]
    return RunResult(
        seed=members[0].seed,
        epochs=sum(one.epochs for one in members),
        best_epoch=members[0].best_epoch,
        **evaluate(committee.to(y.device), inputs, y, split, metric),
        restarts=sum(one.restarts for one in members),
        seconds=sum(one.seconds for one in members),
        history=history,
        state=state,
    )


def _best_so_far(saved: Saved | None, seed: int, history: list[Epoch]) -> RunResult | None:
    if saved is None or saved.position.best is None:
        return None
    figures: dict[str, Any] = {name: saved.position.best[name] for name in KEPT_FIGURES}
    return RunResult(seed, 0, **figures, restarts=0, seconds=0.0, history=history, state=saved.best_state())


class DivergedError(AsgatError):
    """A loss is no number any more."""

    def __init__(self, epoch: int, train_loss: float, val_loss: float, lr: float) -> None:
        super().__init__(
            f"Training diverged at epoch {epoch}: the loss is {train_loss}, on validation {val_loss}. "
            f"Set a lower learning rate (lr is {lr:g}) or check the features for huge values."
        )


def _attempt(
    build: Callable[[], nn.Module],
    inputs: tuple[Any, ...],
    y: Tensor,
    split: Split,
    config: TrainConfig,
    seed: int,
    attempt: int,
    metric: str,
    history: list[Epoch],
    progress: Progress | None,
    where: Position,
    saved: Saved | None,
    keep: Callable[[nn.Module, torch.optim.Optimizer, EarlyStopping, dict[str, Tensor]], None],
) -> RunResult:
    attempt_seed = seed_of(seed, attempt)
    torch.manual_seed(attempt_seed)
    model = build().to(y.device)
    in_batches = getattr(config, "batch_size", None) is not None
    step = (MinibatchStep if in_batches else Step)(model, inputs, y, split, config, metric)
    waits = metric == "roc_auc" or not all(getattr(part, "capturable", True) for part in inputs)
    captured = y.is_cuda and not waits and not in_batches  # a ROC curve is drawn on the host
    epochs = CapturedEpochs(step, attempt_seed) if captured else EagerEpochs(step)
    stopping = EarlyStopping(config.patience)
    state: dict[str, Tensor] = {}
    best_epoch = epoch = 0
    if saved:
        saved.check(model, config.epochs, config.max_restarts)
        state, best_epoch, epoch = saved.restore(model, step.optimiser, stopping), where.best_epoch, where.epoch
        if in_batches:
            step.evaluate()  # they take hidden states from the last evaluation
    stopped = stopping.stop
    while epoch < config.epochs and not stopped:
        for position, (train_loss, val_loss, val_score) in enumerate(epochs.run(config.epochs - epoch)):
            epoch += 1
            if not math.isfinite(train_loss + val_loss):
                raise DivergedError(epoch, train_loss, val_loss, config.lr)
            figures = Epoch(attempt, epoch, train_loss, val_loss, val_score)
            history.append(figures)
            if progress:
                progress(figures)
            if stopping.update(val_loss, val_score):
                state, best_epoch = epochs.state(position), epoch
            stopped = stopping.stop
            if stopped:
                break
        where.epoch, where.best_epoch = epoch, best_epoch
        keep(model, step.optimiser, stopping, state)
    model.load_state_dict(state)
    return RunResult(
        seed=seed,
        epochs=0,
        best_epoch=best_epoch,
        **judge(step.evaluate(), y, split, metric),
        restarts=0,
        seconds=0.0,
        history=history,
        state={name: value.cpu() for name, value in state.items()},
    )


@torch.no_grad()
def evaluate(model: nn.Module, inputs: tuple[Any, ...], y: Tensor, split: Split, metric: str) -> dict[str, Any]:
    """A trained model's figures: validation loss and score, and the scores on the test nodes."""
    return judge(model.eval()(*inputs), y, split, metric)


def judge(logits: Tensor, y: Tensor, split: Split, metric: str) -> dict[str, Any]:
    """The figures of a trained model that gives these logits, as :func:`evaluate` has them."""
    val, test = (torch.from_numpy(part).to(y.device) for part in (split.val, split.test))
    truth, prediction = y[test].cpu().numpy(), logits[test].argmax(-1).cpu().numpy()
    return {
        "val_loss": F.cross_entropy(logits[val], y[val]).item(),
        "val_score": score(logits[val], y[val], metric).item(),
        "micro_f1": micro_f1(truth, prediction),
        "macro_f1": macro_f1(truth, prediction),
        "roc_auc": score(logits[test], y[test], metric).item() if metric == "roc_auc" else None,
    }
