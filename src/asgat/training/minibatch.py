"""Training nodes in batches: what a step holds is bounded by the batch, not by the graph."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.asgat import ASGAT
from asgat.nn.asgat_conv import ASGATConv
from asgat.tables import RowOperator, TableOperator
from asgat.training.program import Program, Task
from asgat.training.run_state import Run, State

FRESH = 4  # rows of a hidden layer computed for a batch, at most, for each of its nodes
CACHE_BYTES = 1 << 30  # of kept hidden states that stay in memory; more go to a file that is mapped


class MinibatchProgram(Program):
    r"""One epoch in steps of ``batch_size`` training nodes, then an evaluation in blocks of as many nodes.

    A batch attends to some nodes, these to others, and so on down to the features. Of a hidden layer the rows the batch
    attends to most, up to four for each of its nodes, are computed again, with gradients; the others are taken as the
    last evaluation left them. With a batch of all training nodes of a graph in which that is everything, a step is that
    of :class:`Program`.

    Memory in addition to the table: O(batch · heads · k · layers) for attention, O(batch · FRESH · width) for features,
    and the kept hidden states, N · heads · hidden numbers a hidden layer, in a file where they are over a gibibyte.

    Args:
        task, runs, snapshots: as for :class:`Program`, with one run; its ``config.batch_size`` is the size of a batch.
    """

    def __init__(self, task: Task, runs: Sequence[Run], snapshots: Sequence[State | None]) -> None:
        super().__init__(task, runs, snapshots)
        x, operator = check_minibatch(self.model, task.inputs)
        assert isinstance(self.model, ASGAT)
        config = runs[0].job.config
        self.net, self.objective = self.model, self.objectives[0]
        self.batch_size = int(getattr(config, "batch_size", None) or len(self.objective.train_nodes))
        self.limit = FRESH * self.batch_size
        self.features = _Rows(x)
        self.operator = operator.rows
        self.number = torch.zeros(operator.num_nodes, dtype=torch.int32, device=self.device)
        widths = [conv.out_channels * (conv.heads if conv.concat else 1) for conv in self.net.convs[:-1]]
        self.hidden = [kept_rows(operator.num_nodes, width, x.dtype, self.device) for width in widths]
        self.evaluate()  # so that there are hidden states to take

    @property
    def capturable(self) -> bool:
        return False

    def step(self, seeds: Tensor | None) -> list[Tensor]:
        """The steps of one epoch; returns the mean of their losses, weighted by the sizes of the batches."""
        self.set_training(True)
        nodes = self.objective.train_nodes
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        order = torch.randperm(len(nodes), device=self.device) if self.batch_size < len(nodes) else None
        for start in range(0, len(nodes), self.batch_size):
            every = torch.arange(len(nodes), device=self.device)
            chosen = every if order is None else order[start : start + self.batch_size].sort().values
            loss = self.objective.loss(self.logits(nodes[chosen]), chosen)
            self.adam.step(torch.autograd.grad(loss, self.parameters, allow_unused=True))
            total += loss.detach().double() * (len(chosen) / len(nodes))
        return [total]

    def forward(self) -> tuple[Tensor, ...]:
        raise AssertionError("a mini-batch program evaluates layer by layer")

    def logits(self, nodes: Tensor) -> Tensor:
        """Logits of some nodes, from hidden states that are computed, or kept where too many would be."""
        parts = []
        rows = nodes
        for layer in range(len(self.net.convs) - 1, -1, -1):
            part = self._part(self.net.convs[layer], rows, self.limit if layer else None)
            parts.append(part)
            rows = part.fresh
        hidden: Tensor | SparseFeatures = self.features.take(rows)
        for layer, part in enumerate(reversed(parts)):
            if len(part.kept):
                assert isinstance(hidden, Tensor)
                hidden = torch.cat([hidden, self.hidden[layer - 1][part.kept.cpu()].to(hidden.device)])
            hidden = self.net.apply_layer(layer, hidden, part.operator)
        assert isinstance(hidden, Tensor)
        return hidden

    @torch.no_grad()
    def evaluate(self) -> tuple[Tensor, ...]:
        """Logits of all nodes, a layer at a time and in it a block of nodes at a time; renews the hidden states."""
        self.set_training(False)
        out = torch.empty(0)
        for layer, conv in enumerate(self.net.convs):
            last = layer == len(self.net.convs) - 1
            n = self.operator.num_nodes
            shape = n, conv.out_channels
            out = torch.empty(shape, dtype=conv.weight.dtype, device=conv.weight.device) if last else self.hidden[layer]
            for start in range(0, n, self.batch_size):
                rows = torch.arange(start, min(start + self.batch_size, n), device=conv.weight.device)
                part = self._part(conv, rows, None)
                if layer == 0:
                    x: Tensor | SparseFeatures = self.features.take(part.fresh)
                else:
                    x = self.hidden[layer - 1][part.fresh.cpu()].to(conv.weight.device)
                out[start : start + len(rows)] = self.net.apply_layer(layer, x, part.operator).to(out.device)
        return (out,)

    def _part(self, conv: ASGATConv, rows: Tensor, limit: int | None) -> _Part:
        """What a layer needs for some rows of its output: its operator, and the rows of its input in order."""
        assert conv.k is not None
        operator = self.operator.take(rows)
        with torch.no_grad():
            index, score = operator.top(conv.filter, conv.k)
            there = score > -torch.inf
            found, times = torch.unique(index[there].long(), return_counts=True)
            own = torch.isin(found, rows)
            others, times = found[~own], times[~own]
            room = len(others) if limit is None else max(0, limit - len(rows))
            if len(others) > room:  # the most attended to are computed; ties to the lower node
                best = torch.sort(times, descending=True, stable=True).indices
                fresh, kept = others[best[:room]].sort().values, others[best[room:]].sort().values
            else:
                fresh, kept = others, others[:0]
            order = torch.cat([rows, fresh, kept])
            self.number.zero_()  # a filler of a short row stands for some node, which weighs nothing but must be there
            self.number[order] = torch.arange(len(order), dtype=torch.int32, device=order.device)
        return _Part(operator.renumbered(self.number, len(order)), torch.cat([rows, fresh]), kept)


class _Part:
    """A layer's operator for some rows; its input rows are those of ``fresh`` nodes, then of ``kept`` ones."""

    def __init__(self, operator: RowOperator, fresh: Tensor, kept: Tensor) -> None:
        self.operator, self.fresh, self.kept = operator, fresh, kept


class _Rows:
    """Feature rows by node, sparse or dense."""

    def __init__(self, x: Tensor | SparseFeatures) -> None:
        self.x = x
        self.csr: Any = None
        if isinstance(x, SparseFeatures):
            arrays = [tensor.cpu().numpy() for tensor in (x.value, x.index, x.indptr)]
            self.csr = sp.csr_array(tuple(arrays), shape=(x.size(0), x.size(1)))

    def take(self, nodes: Tensor) -> Tensor | SparseFeatures:
        if isinstance(self.x, SparseFeatures):
            return SparseFeatures.from_dense(self.csr[nodes.cpu().numpy()], self.x.device, self.x.dtype)
        return self.x.index_select(0, nodes)


def kept_rows(rows: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Room for hidden states, zero at first: on the device, or in a file without a name where it is large."""
    if rows * width * dtype.itemsize <= CACHE_BYTES:
        return torch.zeros(rows, width, dtype=dtype, device=device)
    with tempfile.NamedTemporaryFile() as file:  # its space is freed with the map
        mapped = np.memmap(file.name, mode="w+", dtype=str(dtype).removeprefix("torch."), shape=(rows, width))
    return torch.from_numpy(mapped)


def check_minibatch(model: nn.Module, inputs: tuple[Any, ...]) -> tuple[Tensor | SparseFeatures, TableOperator]:
    """Features and operator, or what of the settings does not go with batches."""
    plain = type(model) is ASGAT and (model.jump_weight, model.propagation, model.num_nodes) == (None, None, None)
    plain = plain and not isinstance(model.layers[-1], nn.Linear)  # type: ignore[index]
    if not plain:
        raise AsgatError("batch_size is for the ASGAT models without jump, propagate and adjacency; leave it out.")
    x, operator = inputs
    if type(operator) is not TableOperator:
        raise AsgatError("batch_size needs a table of Chebyshev scores; set form=table and operator=chebyshev.")
    return x, operator
