"""One model, one split, one seed: trained, stopped early, and started anew if it learned nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data.dataset import Split
from asgat.errors import AsgatError
from asgat.training.early_stopping import EarlyStopping
from asgat.training.metrics import macro_f1, majority_share, micro_f1, roc_auc

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
    """
    labels = y.cpu().numpy()
    hopeless = 0.5 if metric == "roc_auc" else majority_share(labels[split.train], labels[split.val])
    history: list[Epoch] = []
    best: RunResult | None = None
    diverged: AsgatError | None = None
    started = time.perf_counter()
    attempt = 0
    for attempt in range(config.max_restarts + 1):
        try:
            result = _attempt(build, inputs, y, split, config, seed, attempt, metric, history, progress)
        except _DivergedError as error:
            diverged = error
            continue
        if best is None or result.val_score > best.val_score:
            best = result
        if best.val_score > hopeless:
            break
    if best is None:
        assert diverged is not None
        raise diverged
    figures = {**best.__dict__, "restarts": attempt, "seconds": time.perf_counter() - started, "epochs": len(history)}
    return RunResult(**figures)


class _DivergedError(AsgatError):
    pass


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
) -> RunResult:
    torch.manual_seed(seed + 1_000_003 * attempt)
    model = build().to(y.device)
    optimiser = torch.optim.Adam(model.parameters(), lr=config.lr, weight_decay=config.weight_decay)
    train_nodes, val_nodes, test_nodes = (
        torch.from_numpy(part).to(y.device) for part in (split.train, split.val, split.test)
    )
    stopping = EarlyStopping(config.patience)
    state: dict[str, Tensor] = {}
    best_epoch = 0
    for epoch in range(1, config.epochs + 1):
        model.train()
        optimiser.zero_grad()
        train_loss = F.cross_entropy(model(*inputs)[train_nodes], y[train_nodes])
        train_loss.backward()
        optimiser.step()
        logits = _evaluate(model, inputs)
        val_loss = F.cross_entropy(logits[val_nodes], y[val_nodes]).item()
        figures = Epoch(attempt, epoch, train_loss.item(), val_loss, _score(metric, logits, y, val_nodes))
        if not math.isfinite(figures.train_loss + val_loss):
            raise _DivergedError(
                f"Training diverged at epoch {epoch}: the loss is {figures.train_loss}. "
                f"Set a lower learning rate (lr is {config.lr:g}) or check the features for huge values."
            )
        history.append(figures)
        if progress:
            progress(figures)
        if stopping.update(val_loss, figures.val_score):
            state = {name: value.detach().clone() for name, value in model.state_dict().items()}
            best_epoch = epoch
        if stopping.stop:
            break
    model.load_state_dict(state)
    logits = _evaluate(model, inputs)
    truth = y[test_nodes].cpu().numpy()
    prediction = logits[test_nodes].argmax(-1).cpu().numpy()
    return RunResult(
        seed=seed,
        epochs=0,
        best_epoch=best_epoch,
        val_loss=F.cross_entropy(logits[val_nodes], y[val_nodes]).item(),
        val_score=_score(metric, logits, y, val_nodes),
        micro_f1=micro_f1(truth, prediction),
        macro_f1=macro_f1(truth, prediction),
        roc_auc=_score(metric, logits, y, test_nodes) if metric == "roc_auc" else None,
        restarts=0,
        seconds=0.0,
        history=history,
        state={name: value.cpu() for name, value in state.items()},
    )


@torch.no_grad()
def _evaluate(model: nn.Module, inputs: tuple[Any, ...]) -> Tensor:
    model.eval()
    logits: Tensor = model(*inputs)
    return logits


def _score(metric: str, logits: Tensor, y: Tensor, nodes: Tensor) -> float:
    if metric == "roc_auc":
        margin = (logits[nodes, 1] - logits[nodes, 0]).double().cpu().numpy()
        return roc_auc(y[nodes].cpu().numpy(), np.nan_to_num(margin))
    return micro_f1(y[nodes].cpu().numpy(), logits[nodes].argmax(-1).cpu().numpy())
