"""Training nodes in batches: what a step holds is bounded by the batch, not by the graph."""

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
    """

    capturable = False

    def __init__(self, task: Task, runs: Sequence[Run], snapshots: Sequence[State | None]) -> None:
        super().__init__(task, runs, snapshots)
        self.x, operator = check_minibatch(self.model, task.inputs)
        assert isinstance(self.model, ASGAT)
        self.net, self.objective, self.operator = self.model, self.objectives[0], operator.rows
        self.batch_size = int(getattr(runs[0].job.config, "batch_size", None) or len(self.objective.train_nodes))
        self.number = torch.zeros(operator.num_nodes, dtype=torch.int32, device=self.device)
        widths = [conv.out_channels * (conv.heads if conv.concat else 1) for conv in self.net.convs[:-1]]
        self.hidden = [kept_rows(operator.num_nodes, width, self.x.dtype, self.device) for width in widths]
        if isinstance(self.x, SparseFeatures):
            arrays = tuple(tensor.cpu().numpy() for tensor in (self.x.value, self.x.index, self.x.indptr))
            self.rows_of_x = sp.csr_array(arrays, shape=(self.x.size(0), self.x.size(1)))
        self.evaluate()  # so that there are hidden states to take

    def step(self, seeds: Tensor | None) -> list[Tensor]:
        """The steps of one epoch; returns the mean of their losses, weighted by the sizes of the batches."""
        self.set_training(True)
        nodes = self.objective.train_nodes
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        order = (torch.randperm if self.batch_size < len(nodes) else torch.arange)(len(nodes), device=self.device)
        for batch in torch.split(order, self.batch_size):
            chosen = batch.sort().values
            loss = self.objective.loss(self.logits(nodes[chosen]), chosen)
            self.adam.step(torch.autograd.grad(loss, self.parameters, allow_unused=True))
            total += loss.detach().double() * (len(chosen) / len(nodes))
        return [total]

    def forward(self) -> tuple[Tensor, ...]:
        raise AssertionError("a mini-batch program evaluates layer by layer")

    def logits(self, nodes: Tensor) -> Tensor:
        """Logits of some nodes, from hidden states that are computed, or kept where too many would be."""
        parts = []
        for layer in range(len(self.net.convs) - 1, -1, -1):
            operator, nodes, kept = self._part(layer, nodes, FRESH * self.batch_size if layer else None)
            parts.append((operator, kept))
        hidden = self._input(0, nodes)
        for layer, (operator, kept) in enumerate(reversed(parts)):
            if len(kept):
                assert isinstance(hidden, Tensor)
                hidden = torch.cat([hidden, self._input(layer, kept)])
            hidden = self.net.apply_layer(layer, hidden, operator)
        assert isinstance(hidden, Tensor)
        return hidden

    @torch.no_grad()
    def evaluate(self) -> tuple[Tensor, ...]:
        """Logits of all nodes, a layer at a time and in it a block of nodes at a time; renews the hidden states."""
        self.set_training(False)
        nodes = torch.arange(self.operator.num_nodes, device=self.device)
        last, size = self.net.convs[-1], self.batch_size
        logits = last.weight.new_empty(len(nodes), last.out_channels)
        for layer, out in enumerate([*self.hidden, logits]):
            for rows, block in zip(torch.split(nodes, size), torch.split(out, size), strict=True):
                operator, fresh, _ = self._part(layer, rows, None)
                block.copy_(self.net.apply_layer(layer, self._input(layer, fresh), operator))
        return (logits,)

    def _input(self, layer: int, nodes: Tensor) -> Any:
        """Rows of what a layer takes: the features, or the hidden states that the last evaluation left."""
        if layer:
            return self.hidden[layer - 1][nodes.cpu()].to(self.device)
        if isinstance(self.x, SparseFeatures):
            return SparseFeatures.from_dense(self.rows_of_x[nodes.cpu().numpy()], self.x.device, self.x.dtype)
        return self.x.index_select(0, nodes)

    @torch.no_grad()
    def _part(self, layer: int, rows: Tensor, limit: int | None) -> tuple[RowOperator, Tensor, Tensor]:
        """A layer's operator for some rows of its output, whose input are the rows of some nodes, then of others.

        The first are computed again, at most ``limit`` of them; the others are taken as they are kept.
        """
        conv = self.net.convs[layer]
        assert conv.k is not None
        operator = self.operator.take(rows)
        index, score = operator.top(conv.filter, conv.k)
        found, times = torch.unique(index[score > -torch.inf].long(), return_counts=True)
        own = torch.isin(found, rows)
        others, times = found[~own], times[~own]
        fresh, kept = others, others[:0]
        if limit is not None and len(others) > (room := max(0, limit - len(rows))):
            # The most attended to are computed; ties to the lower node.
            best = torch.sort(times, descending=True, stable=True).indices
            fresh, kept = others[best[:room]].sort().values, others[best[room:]].sort().values
        order = torch.cat([rows, fresh, kept])
        self.number.zero_()  # a filler of a short row stands for some node, which weighs nothing but must be there
        self.number[order] = torch.arange(len(order), dtype=torch.int32, device=order.device)
        return operator.renumbered(self.number, len(order)), torch.cat([rows, fresh]), kept


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
