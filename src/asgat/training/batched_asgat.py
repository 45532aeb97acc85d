"""ASGAT in batches of nodes."""

from typing import Any

import torch
from torch import Tensor

from asgat.config import BATCH_ROWS
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.asgat import ASGAT
from asgat.tables import RowOperator, TableOperator
from asgat.training.batch_rows import BatchRows, most_frequent, without
from asgat.training.feature_rows import FeatureRows
from asgat.training.kept_rows import KeptRows


class BatchedASGAT:
    r"""Logits of some nodes at a time, with gradients, and of all nodes in blocks.

    A batch attends to some nodes, these to others, and so on down to the features. Of a hidden layer the rows the batch
    attends to most, up to four for each of its nodes, are computed again, with gradients; the others are taken as the
    last evaluation left them.

    Memory in addition to the table: O(batch · heads · k · layers) for attention, O(batch · width) for features, and the
    kept hidden states, N · heads · hidden numbers a hidden layer.

    Args:
        net, x, operator: the model and its inputs.
        batch_size: nodes computed at a time.
        nodes: those whose logits matter, all by default; evaluations leave out what these cannot attend to.
    """

    def __init__(
        self,
        net: ASGAT,
        x: Tensor | SparseFeatures,
        operator: TableOperator,
        batch_size: int,
        nodes: Tensor | None = None,
    ) -> None:
        self.net, self.features, self.batch_size = net, FeatureRows(x), batch_size
        self.rows, self.cache = BatchRows(operator.rows), KeptRows(x.device, x.dtype)
        widths = [conv.out_channels * (conv.heads if conv.concat else 1) for conv in net.convs[:-1]]
        self.hidden = [self.cache.new(operator.num_nodes, width) for width in widths]
        self.evaluated = self._needed(nodes)

    def logits(self, nodes: Tensor) -> Tensor:
        """Logits of some nodes, from hidden states that are computed, or kept where too many would be."""
        parts = []
        for layer in range(len(self.net.convs) - 1, -1, -1):
            operator, nodes, kept = self._part(layer, nodes, BATCH_ROWS * self.batch_size if layer else None)
            parts.append((operator, kept))
        hidden = self._input(0, nodes)
        for layer, (operator, kept) in enumerate(reversed(parts)):
            if len(kept):
                hidden = torch.cat([hidden, self._input(layer, kept)])
            hidden = self.net.apply_layer(layer, hidden, operator)
        return torch.as_tensor(hidden)

    @torch.no_grad()
    def evaluate(self) -> Tensor:
        """Logits of the nodes that matter, 0 for others, block by block in every layer; updates what is kept."""
        last = self.net.convs[-1]
        logits = last.weight.new_zeros(self.rows.operator.num_nodes, last.out_channels)
        for layer, (out, nodes) in enumerate(zip([*self.hidden, logits], self.evaluated, strict=True)):
            for rows in torch.split(nodes, self.batch_size):
                operator, fresh, _ = self._part(layer, rows, None)
                out[rows.to(out.device)] = self.net.apply_layer(layer, self._input(layer, fresh), operator).to(
                    out.device
                )
        return logits

    def _needed(self, nodes: Tensor | None) -> list[Tensor]:
        """For every layer the rows that logits of some nodes can need: candidates of those of the next layer."""
        table = self.rows.operator.table
        needed = [torch.arange(table.num_nodes, device=self.cache.device)] * len(self.net.convs)
        if nodes is None:
            return needed
        marked = torch.zeros(table.num_nodes, dtype=torch.bool, device=self.cache.device)
        for layer in range(len(needed) - 1, -1, -1):
            marked[nodes] = True
            nodes = marked.nonzero().squeeze(1)
            if 2 * len(nodes) > table.num_nodes:
                break  # all of them, in order, are no slower
            needed[layer] = nodes
            if layer:
                for rows in torch.split(nodes, self.batch_size):
                    marked[table.take(rows).index.long()] = True
        return needed

    def _input(self, layer: int, nodes: Tensor) -> Any:
        """Rows of what a layer takes: the features, or the hidden states that the last evaluation left."""
        return self.cache.take(self.hidden[layer - 1], nodes) if layer else self.features.take(nodes)

    @torch.no_grad()
    def _part(self, layer: int, rows: Tensor, limit: int | None) -> tuple[RowOperator, Tensor, Tensor]:
        """A layer's operator for some rows of its output, whose input are the rows of some nodes, then of others.

        The first are computed again, at most ``limit`` of them; the others are taken as they are kept.
        """
        operator, nodes, times = self.rows.attended(self.net.convs[layer], rows)
        others, times = without(nodes, times, rows)
        fresh = others if limit is None else most_frequent(others, times, limit - len(rows))
        kept, _ = without(others, times, fresh)
        computed = torch.cat([rows, fresh])
        return self.rows.renumbered(operator, torch.cat([computed, kept])), computed, kept
