"""One epoch of several runs at once. On CUDA it is recorded once and replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from asgat.config import TrainConfig
from asgat.data.dataset import Split
from asgat.nn.asgat import ASGAT
from asgat.nn.stacked_asgat import StackedASGAT
from asgat.training.stacked_adam import StackedAdam
from asgat.training.step import CapturedEpochs, Figures, balanced_weights, score


@dataclass(frozen=True)
class Job:
    """One run: on which nodes, from which seed, with which settings."""

    split: Split
    seed: int
    config: TrainConfig


class BatchedStep:
    """Trains and evaluates all runs once; nothing in it waits for the device, except for a ROC curve.

    Args:
        form: one of the models, for its form.
        state: the models' weights, stacked.
        streams: one random stream per run, as it is after the model was built.
        inputs: features and operator.
        y: labels of all nodes.
        jobs: the runs, those with equal learning rate and weight decay beside each other.
        metric: the validation score, ``"micro_f1"`` or ``"roc_auc"``.
        optimiser: what an earlier step has learned of the gradients.
    """

    def __init__(
        self,
        form: ASGAT,
        state: dict[str, Tensor],
        streams: Sequence[torch.Generator],
        inputs: tuple[Any, ...],
        y: Tensor,
        jobs: Sequence[Job],
        metric: str,
        optimiser: StackedAdam | None = None,
    ) -> None:
        self.streams, self.inputs, self.y, self.jobs, self.metric = streams, inputs, y, jobs, metric
        self.model = StackedASGAT(form, state, inputs[0], inputs[1], [job.config.dropout for job in jobs])
        self.parameters = [value for value in state.values() if value.requires_grad]
        rates = [(job.config.lr, job.config.weight_decay) for job in jobs]
        self.optimiser = optimiser or StackedAdam(self.parameters, rates)
        self.train = _Part([job.split.train for job in jobs], y, balance=_balance(jobs[0].config))
        self.val = _Part([job.split.val for job in jobs], y)

    def __call__(self, seed: Tensor | None) -> Tensor:
        """One epoch; returns training loss, validation loss and score of every run as [runs, 3] in double precision."""
        train_loss = self.train.loss(self.model(seed))
        # The runs share nothing, so that the gradient of the sum is each run's own.
        self.optimiser.step(torch.autograd.grad(train_loss.sum(), self.parameters, allow_unused=True))
        with torch.no_grad():
            logits = self.model()
            figures = [train_loss.detach(), self.val.loss(logits), self._score(logits)]
        return torch.stack([figure.double() for figure in figures], dim=1)

    def _score(self, logits: Tensor) -> Tensor:
        if self.metric != "roc_auc":
            return self.val.right(logits)
        parts = zip(logits, (torch.from_numpy(job.split.val).to(self.y.device) for job in self.jobs), strict=True)
        return torch.stack([score(own[nodes], self.y[nodes], self.metric) for own, nodes in parts])

    def draw(self, epochs: int) -> Tensor | None:
        """What every run draws for its dropout in the next epochs, [epochs, dropouts, runs]; None where nothing."""
        if not any(job.config.dropout for job in self.jobs):
            return None
        count = epochs * self.model.dropouts
        # A run without dropout draws nothing, and nothing depends on what it is given.
        drawn = [
            torch.randint(2**62, (count,), generator=stream) if job.config.dropout else torch.zeros(count).long()
            for job, stream in zip(self.jobs, self.streams, strict=True)
        ]
        return torch.stack(drawn, dim=1).view(epochs, self.model.dropouts, -1)

    @torch.no_grad()
    def select(self, rows: list[int]) -> BatchedStep:
        """The same step for some of the runs."""
        state = {name: value[rows].requires_grad_(value.requires_grad) for name, value in self.model.state.items()}
        return BatchedStep(
            self.model.form,
            state,
            [self.streams[row] for row in rows],
            self.inputs,
            self.y,
            [self.jobs[row] for row in rows],
            self.metric,
            self.optimiser.select([value for value in state.values() if value.requires_grad], rows),
        )


def _balance(config: TrainConfig) -> float:
    return config.balance if config.balanced else 0.0


class _Part:
    """The training or validation nodes of all runs, filled up to the same number with nodes that count nothing."""

    def __init__(self, nodes: Sequence[Any], y: Tensor, balance: float = 0.0) -> None:
        longest = max(map(len, nodes))
        place = np.stack(
            [np.pad(own, (0, longest - len(own)), mode="edge") + i * len(y) for i, own in enumerate(nodes)]
        )
        counted = np.arange(longest) < np.array([[len(own)] for own in nodes])
        self.place = torch.from_numpy(place.reshape(-1)).to(y.device)
        self.label = y[self.place % len(y)]
        self.counted = torch.from_numpy(counted).to(y.device)
        self.count = self.counted.sum(dim=1).double()
        self.weight = self.counted / self.count.unsqueeze(1)
        if balance:
            for i, own in enumerate(nodes):
                self.weight[i, : len(own)] = balanced_weights(y[torch.from_numpy(own).to(y.device)], balance)

    def loss(self, logits: Tensor) -> Tensor:
        """Cross-entropy of every run."""
        each = F.cross_entropy(logits.flatten(0, 1).index_select(0, self.place), self.label, reduction="none")
        return (each.view_as(self.weight) * self.weight.to(each.dtype)).sum(dim=1)

    def right(self, logits: Tensor) -> Tensor:
        """Share of the nodes guessed right in every run, in double precision."""
        guess = logits.flatten(0, 1).index_select(0, self.place).argmax(dim=-1)
        return ((guess == self.label).view_as(self.counted) & self.counted).sum(dim=1) / self.count


class EagerBatch:
    """Epochs run one at a time."""

    def __init__(self, step: BatchedStep) -> None:
        self.step = step

    def run(self, limit: int) -> list[list[Figures]]:
        """Runs the next epochs, at most ``limit`` of them, and returns their figures for every run."""
        seed = self.step.draw(1)
        figures: list[list[Figures]] = [self.step(None if seed is None else seed[0].to(self.step.y.device)).tolist()]
        return figures

    def weights(self, rows: list[int], positions: list[int]) -> dict[str, Tensor]:
        """Weights of some runs, each after the epoch at its position in the last ``run``."""
        return {name: value.detach()[rows] for name, value in self.step.model.state.items()}


class CapturedBatch:
    """Epochs recorded as one CUDA graph and replayed in chunks, as :class:`CapturedEpochs` does for one run.

    What the runs draw is copied to the device before a chunk, so that they draw the same here and there.
    """

    chunk = CapturedEpochs.chunk

    def __init__(self, step: BatchedStep) -> None:
        self.step = step
        device, runs = step.y.device, step.model.runs
        self.figures = torch.zeros(self.chunk, runs, 3, dtype=torch.float64, device=device)
        self.ring = {name: torch.zeros(self.chunk, *value.shape, dtype=value.dtype, device=device)
                     for name, value in step.model.state.items()}  # fmt: skip
        self.slot = torch.zeros(1, dtype=torch.int64, device=device)
        dropped = any(job.config.dropout for job in step.jobs)
        self.seed = torch.zeros(self.chunk, step.model.dropouts, runs, dtype=torch.int64, device=device)
        changed = [*step.parameters, *step.optimiser.tensors]
        start = [value.detach().clone() for value in changed]
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(2):  # compiles kernels, which a recording cannot
                self._epoch(dropped)
        torch.cuda.current_stream(device).wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._epoch(dropped)
        with torch.no_grad():
            for value, before in zip(changed, start, strict=True):
                value.copy_(before)

    def _epoch(self, dropped: bool) -> None:
        figures = self.step(self.seed.index_select(0, self.slot).squeeze(0) if dropped else None)
        self.figures.index_copy_(0, self.slot, figures.unsqueeze(0))
        for name, value in self.step.model.state.items():
            self.ring[name].index_copy_(0, self.slot, value.detach().unsqueeze(0))
        self.slot.add_(1).remainder_(self.chunk)

    def run(self, limit: int) -> list[list[Figures]]:
        count = min(limit, self.chunk)
        self.slot.zero_()
        drawn = self.step.draw(count)
        if drawn is not None:
            self.seed[:count].copy_(drawn)
        for _ in range(count):
            self.graph.replay()
        figures: list[list[Figures]] = self.figures[:count].tolist()
        return figures

    def weights(self, rows: list[int], positions: list[int]) -> dict[str, Tensor]:
        return {name: kept[positions, rows] for name, kept in self.ring.items()}
