"""Training nodes in batches: what a step holds is bounded by the batch, not by the graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.asgat import ASGAT
from asgat.nn.deep import ASGATDeep
from asgat.spectral import ChebyshevOperator
from asgat.tables import TableOperator
from asgat.training.batched_asgat import BatchedASGAT
from asgat.training.batched_deep import BatchedDeep
from asgat.training.program import Program, Task
from asgat.training.run_state import Run, State


class MinibatchProgram(Program):
    r"""One epoch in steps of ``batch_size`` training nodes, then an evaluation in blocks of as many nodes.

    :class:`BatchedASGAT` and :class:`BatchedDeep` say which rows a step computes and which it takes as the last
    evaluation left them. With a batch of all training nodes of a graph in which that is everything, a step is that of
    :class:`Program`.
    """

    capturable = False

    def __init__(self, task: Task, runs: Sequence[Run], snapshots: Sequence[State | None]) -> None:
        super().__init__(task, runs, snapshots)
        x, operator = check_minibatch(self.model, task.inputs)
        self.objective = self.objectives[0]
        self.batch_size = int(getattr(runs[0].job.config, "batch_size", None) or len(self.objective.train_nodes))
        self.batched: BatchedASGAT | BatchedDeep
        if isinstance(self.model, ASGATDeep):
            self.batched = BatchedDeep(self.model, x, operator, self.batch_size, self.objective.train_nodes)
        else:
            assert isinstance(self.model, ASGAT)
            assert isinstance(operator, TableOperator)
            parts = np.concatenate(list(runs[0].job.split.parts().values()))
            nodes = torch.from_numpy(np.unique(parts)).to(self.device)
            self.batched = BatchedASGAT(self.model, x, operator, self.batch_size, nodes)
        self.evaluate()  # so that there are hidden states to take

    def step(self, seeds: Tensor | None) -> list[Tensor]:
        """The steps of one epoch; returns the mean of their losses, weighted by the sizes of the batches."""
        self.set_training(True)
        nodes = self.objective.train_nodes
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        order = (torch.randperm if self.batch_size < len(nodes) else torch.arange)(len(nodes), device=self.device)
        for batch in torch.split(order, self.batch_size):
            chosen = batch.sort().values
            loss = self.objective.loss(self.batched.logits(nodes[chosen]), chosen)
            self.adam.step(torch.autograd.grad(loss, self.parameters, allow_unused=True))
            total += loss.detach().double() * (len(chosen) / len(nodes))
        return [total]

    def forward(self) -> tuple[Tensor, ...]:
        raise AssertionError("a mini-batch program evaluates layer by layer")

    def evaluate(self) -> tuple[Tensor, ...]:
        """Logits of all nodes in a part of the split; renews the hidden states."""
        self.set_training(False)
        return (self.batched.evaluate(),)


def check_minibatch(
    model: nn.Module, inputs: tuple[Any, ...]
) -> tuple[Tensor | SparseFeatures, TableOperator | ChebyshevOperator]:
    """Features and operator, or what of the settings does not go with batches."""
    plain = type(model) is ASGAT and (model.jump_weight, model.propagation, model.num_nodes) == (None, None, None)
    plain = plain and not isinstance(model.layers[-1], nn.Linear)  # type: ignore[index]
    if not plain and type(model) is not ASGATDeep:
        raise AsgatError(
            "batch_size is for asgat-deep, and for the other ASGAT models without jump, propagate and adjacency; leave "
            "it out."
        )
    x, operator = inputs
    if operator.num_nodes != x.size(0):
        raise AsgatError("batch_size is for undirected graphs; leave it out, or train without directions.")
    if type(operator) is TableOperator or (type(operator) is ChebyshevOperator and not model.convs):
        return x, operator
    raise AsgatError("batch_size needs a table of Chebyshev scores; set form=table and operator=chebyshev.")
