"""One epoch: a training step, then an evaluation. On CUDA it is recorded once and replayed."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.config import TrainConfig
from asgat.data.dataset import Split
from asgat.training.lean_adam import LeanAdam
from asgat.training.metrics import roc_auc

Figures = tuple[float, float, float]  # training loss, validation loss, validation score


class Step:
    """Trains and evaluates once; nothing in it waits for the device, except for a ROC curve.

    Args:
        model: the model.
        inputs: what its ``forward`` takes.
        y: labels of all nodes.
        split: node indices.
        config: learning rate, weight decay, and whether classes count the same in the training loss.
        metric: the validation score, ``"micro_f1"`` or ``"roc_auc"``.
    """

    def __init__(
        self, model: nn.Module, inputs: tuple[Any, ...], y: Tensor, split: Split, config: TrainConfig, metric: str
    ) -> None:
        self.model, self.inputs, self.metric = model, inputs, metric
        self.parameters, self.modules = list(model.parameters()), list(model.modules())
        self.optimiser = LeanAdam(
            self.parameters,
            lr=config.lr,
            weight_decay=config.weight_decay,
            capturable=y.is_cuda,
            fused=True,
        )
        self.train_nodes, self.val_nodes = (torch.from_numpy(part).to(y.device) for part in (split.train, split.val))
        self.train_labels, self.val_labels = y[self.train_nodes], y[self.val_nodes]
        self.weight = balanced_weights(self.train_labels, config.balance) if config.balanced else None

    def __call__(self) -> Tensor:
        """One epoch; returns training loss, validation loss and score as a tensor [3] in double precision."""
        self._set_training(True)
        for parameter in self.parameters:  # as zero_grad does, without its bookkeeping
            parameter.grad = None
        train_loss = self._loss(self.model(*self.inputs).index_select(0, self.train_nodes))
        train_loss.backward()  # type: ignore[no-untyped-call]
        self._update()
        logits = self.evaluate().index_select(0, self.val_nodes)
        val_loss = F.cross_entropy(logits, self.val_labels)
        val_score = score(logits, self.val_labels, self.metric)
        return torch.stack([train_loss.detach().double(), val_loss.double(), val_score])

    def _update(self) -> None:
        self.optimiser.advance()

    def _loss(self, logits: Tensor) -> Tensor:
        if self.weight is None:
            return F.cross_entropy(logits, self.train_labels)
        return F.cross_entropy(logits, self.train_labels, reduction="none") @ self.weight.to(logits.dtype)

    @torch.no_grad()
    def evaluate(self) -> Tensor:
        """Logits of all nodes, without dropout."""
        self._set_training(False)
        logits: Tensor = self.model(*self.inputs)
        return logits

    def _set_training(self, training: bool) -> None:
        """As the model's own ``train``, which walks through its modules anew every time."""
        for module in self.modules:
            module.training = training


def balanced_weights(labels: Tensor, balance: float = 1.0) -> Tensor:
    r"""Of every node :math:`n_c^{-b}`, with :math:`n_c` nodes of its class, divided by their sum.

    A class counts :math:`n_c^{1 - b}` together: with a ``balance`` b of 1 all count the same, with 0 all nodes do.
    """
    weights = torch.bincount(labels)[labels].double().pow(-balance)
    return weights / weights.sum()


def score(logits: Tensor, labels: Tensor, metric: str) -> Tensor:
    """Micro-F1 or ROC-AUC of some nodes, in double precision on their device."""
    if metric == "roc_auc":
        margin = torch.nan_to_num((logits[:, 1] - logits[:, 0]).double()).cpu().numpy()
        area = roc_auc(labels.cpu().numpy(), margin)
        return torch.tensor(area, dtype=torch.float64, device=logits.device)
    return (logits.argmax(-1) == labels).double().mean()


class EagerEpochs:
    """Epochs run one at a time."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def run(self, limit: int) -> list[Figures]:
        """Runs the next epochs, at most ``limit`` of them, and returns their figures."""
        train_loss, val_loss, val_score = self.step().tolist()
        return [(train_loss, val_loss, val_score)]

    def state(self, position: int) -> dict[str, Tensor]:
        """The model's weights after the epoch at this position of the last ``run``."""
        return {name: value.detach().clone() for name, value in self.step.model.state_dict().items()}


class CapturedEpochs:
    """Epochs recorded as one CUDA graph and replayed in chunks, without a word from the host in between.

    The weights after each epoch of a chunk are kept in a ring, so that early stopping, which reads the figures chunk by
    chunk, finds the weights of any epoch it settles on: it stops exactly where it would have, epoch by epoch.
    """

    chunk = 16

    def __init__(self, step: Step, seed: int) -> None:
        self.step = step
        weights = step.model.state_dict()
        start = {name: value.clone() for name, value in weights.items()}
        device = step.train_labels.device
        self.figures = torch.zeros(self.chunk, 3, dtype=torch.float64, device=device)
        self.ring = {name: torch.zeros(self.chunk, *value.shape, dtype=value.dtype, device=device)
                     for name, value in weights.items()}  # fmt: skip
        self.slot = torch.zeros(1, dtype=torch.int64, device=device)
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(3):  # compiles kernels and makes the optimiser's state, which a recording cannot
                self._epoch(weights)
        torch.cuda.current_stream(device).wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._epoch(weights)
        with torch.no_grad():
            for name, value in weights.items():
                value.copy_(start[name])
            for state in step.optimiser.state.values():
                for value in state.values():
                    value.zero_()
            self.slot.zero_()
        torch.cuda.manual_seed(seed)

    def _epoch(self, weights: dict[str, Tensor]) -> None:
        self.figures.index_copy_(0, self.slot, self.step().unsqueeze(0))
        for name, value in weights.items():
            self.ring[name].index_copy_(0, self.slot, value.detach().unsqueeze(0))
        self.slot.add_(1).remainder_(self.chunk)

    def run(self, limit: int) -> list[Figures]:
        count = min(limit, self.chunk)
        self.slot.zero_()
        for _ in range(count):
            self.graph.replay()
        return [(row[0], row[1], row[2]) for row in self.figures[:count].tolist()]

    def state(self, position: int) -> dict[str, Tensor]:
        return {name: kept[position].clone() for name, kept in self.ring.items()}
