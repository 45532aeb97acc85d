"""The deep model in batches of nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from asgat.config import BATCH_ROWS
from asgat.kernels import chebyshev_filter
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.deep import ASGATDeep, DeepBlock
from asgat.nn.rows import layer_norm
from asgat.spectral import ChebyshevOperator, SpectralOperator
from asgat.spectral.shifted_laplacian import csr_arrays
from asgat.tables import TableOperator
from asgat.training.batch_rows import BatchRows, most_frequent, without
from asgat.training.feature_rows import FeatureRows
from asgat.training.kept_rows import KeptRows
from asgat.training.matrix_rows import ROWS, MatrixRows


class BatchedDeep:
    r"""Logits of some nodes at a time, with gradients, and of all nodes in blocks.

    A block needs rows of its input for attention, for filters and for neighbour means. Those nearest to a batch, up to
    four for each of its nodes, are computed again, with gradients: the *fresh* rows F. The last evaluation left the
    input H of every block, and with Z = LayerNorm(H) the rows of :math:`T_0(X) Z, \dots, T_R(X) Z` and of the neighbour
    means of Z that batches need. Attention takes the rows it needs beyond F from H. A filter on the rows S is

    .. math:: \Big[ \sum_i c_i \, T_i(X) Z \Big]_S + \Big[ \sum_i c_i \, T_i(X_{FF}) (z_F - Z_F) \Big]_S

    with the present coefficients c and the present rows z: what was kept, and the change of the fresh rows along the
    edges between them. It is g(L) z exactly where F holds all nodes within the order, and a step is then that of a full
    batch. A mean has no such error: it needs direct neighbours alone.

    Memory in addition to the table and O(batch · width) for a step: N · hidden numbers for the input of every block and
    three times that for an evaluation, and (order + 1) · hidden for every node, in the last block for every training
    node. They are in memory up to a gibibyte, and otherwise in mapped files.
    """

    def __init__(
        self,
        net: ASGATDeep,
        x: Tensor | SparseFeatures,
        operator: TableOperator | ChebyshevOperator,
        batch_size: int,
        train_nodes: Tensor,
    ) -> None:
        self.net, self.features, self.batch_size = net, FeatureRows(x), batch_size
        self.operator, self.blocks, width = operator, net.each_block(), net.out_weight.size(0)
        self.rows = BatchRows(operator.rows) if net.convs and isinstance(operator, TableOperator) else None
        self.matrix = MatrixRows(operator.shifted.matrix)
        self.means = MatrixRows(operator.graph.mean_adjacency) if any(block.mean for block in self.blocks) else None
        self.cache = KeptRows(x.device, torch.float64 if operator.exact_sums else x.dtype)
        self.kept = [_Kept(self.cache.new(operator.num_nodes, width)) for _ in self.blocks]
        number = 1 + 2 * bool(net.filter_convs) + (self.means is not None)
        self.work = [self.cache.new(operator.num_nodes, width) for _ in range(number)]
        for block, kept in zip(self.blocks, self.kept, strict=True):
            last = block is self.blocks[-1]
            kept.nodes = train_nodes.sort().values if last else None
            rows = len(train_nodes) if last else operator.num_nodes
            if block.filters is not None:
                kept.terms = self.cache.new(rows, operator.order + 1, width)
            if block.mean:
                kept.mean = self.cache.new(rows, width)

    def logits(self, nodes: Tensor) -> Tensor:
        """Logits of some training nodes."""
        parts: list[_Part] = []
        for block in reversed(self.blocks):
            parts.insert(0, self._part(block, parts[0].fresh if parts else nodes))
        h = self.net.encode(self.features.take(parts[0].fresh), self.operator)
        for block, kept, part in zip(self.blocks, self.kept, parts, strict=True):
            h = self._apply(block, kept, part, h)
        return self.net.decode(h, self.operator)

    def _apply(self, block: DeepBlock, kept: "_Kept", part: "_Part", h: Tensor) -> Tensor:
        """A block's output in some rows, from its input in the fresh ones."""
        rows = len(part.rows)
        if len(part.attended):
            h = torch.cat([h, self.cache.take(kept.h, part.attended)])
        z = block.normalise(h, part.operator)
        others = []
        if kept.terms is not None or kept.mean is not None:
            place = part.rows if kept.nodes is None else torch.searchsorted(kept.nodes, part.rows)
            change = z[: len(part.fresh)] - layer_norm(self.cache.take(kept.h, part.fresh), *kept.norm)
        if block.filters is not None and kept.terms is not None:
            c = self.operator.coefficients(block.filters.filter)
            terms = self.cache.take(kept.terms, place).view(rows, c.size(1), len(c), -1)
            slices = change.reshape(1, len(part.fresh), len(c), -1)
            arrays = csr_arrays(self.matrix.part(part.fresh, part.fresh), self.cache.device, torch.float64)
            moved = chebyshev_filter(*arrays, c.unsqueeze(0), slices)
            others.append((torch.einsum("hi,nihf->nhf", c, terms.to(c.dtype)) + moved[0, :rows]).flatten(1))
        if self.means is not None and kept.mean is not None:
            matrix = SparseFeatures.from_dense(self.means.part(part.rows, part.fresh), z.device, z.dtype)
            others.append(self.cache.take(kept.mean, place) + matrix.matmul(change))
        return block.update(h[:rows], z, others, part.operator)

    @torch.no_grad()
    def _part(self, block: DeepBlock, rows: Tensor, fresh: bool = True) -> "_Part":
        """What some rows of a block's output need of its input; without ``fresh``, these rows and what they attend to.

        Computed again are the rows that are attended to or adjacent most often, then their neighbours and so on, while
        there is room.
        """
        operator: Any = self.operator
        computed, attended, found = rows, rows[:0], []
        if block.attention is not None and self.rows is not None:
            operator, attended, times = self.rows.attended(block.attention, rows)
            found.append((attended, times))
        hops, added = self.operator.order if block.filters is not None else int(block.mean), rows
        while fresh and len(added):
            if hops:
                found.append(torch.unique(self.matrix.columns(added).to(rows.device), return_counts=True))
            nodes, times = without(*_counted(found), computed) if found else (rows[:0], rows[:0])
            added = most_frequent(nodes, times, BATCH_ROWS * self.batch_size - len(computed))
            computed, found, hops = torch.cat([computed, added]), [], max(0, hops - 1)
        attended, _ = without(attended, attended, computed)
        if self.rows is not None and block.attention is not None:
            operator = self.rows.renumbered(operator, torch.cat([computed, attended]))
        return _Part(rows, computed, attended, operator)

    @torch.no_grad()
    def evaluate(self) -> Tensor:
        """Logits of all nodes, a block of the model at a time and in it a block of nodes; renews what is kept."""
        nodes = torch.arange(self.operator.num_nodes, device=self.cache.device)
        logits = self.net.out_weight.new_empty(len(nodes), self.net.out_weight.size(1))
        for rows, h in self._split(nodes, self.kept[0].h):
            h.copy_(self.net.encode(self.features.take(rows), self.operator))
        outputs = [*(kept.h for kept in self.kept[1:]), logits]
        for block, kept, output in zip(self.blocks, self.kept, outputs, strict=True):
            for rows, out, *others in self._split(nodes, output, *self._renew(block, kept)):
                part = self._part(block, rows, fresh=False)
                h = self.cache.take(kept.h, torch.cat([rows, part.attended]))
                others = [other.to(h.device) for other in others]
                h = block.update(h[: len(rows)], block.normalise(h, part.operator), others, part.operator)
                out.copy_(self.net.decode(h, self.operator) if output is logits else h)
        return logits

    def _renew(self, block: DeepBlock, kept: "_Kept") -> list[Tensor]:
        """Filters and means of all rows of a block's input, whose rows for batches are kept."""
        scale, shift = (self.operator.shared(own).detach() for own in (block.norm_weight, block.norm_bias))
        kept.norm = scale.clone(), shift.clone()
        z, *work = self.work
        for h, out in self._split(kept.h, z):
            out.copy_(layer_norm(h.to(scale.device), *kept.norm))
        mean, filtered = None, None
        if self.means is not None and kept.mean is not None:
            mean = work.pop()
            for first in range(0, len(mean), ROWS):
                mean[first : first + ROWS] = self.means.product(first, first + ROWS, z)
            _copy_rows(kept.mean, mean, kept.nodes)
        if block.filters is not None and kept.terms is not None:
            c = self.operator.coefficients(block.filters.filter).to(z.device)
            before, filtered = work
            width = z.size(1) // len(c)
            for i, term in enumerate(self.matrix.polynomials(z, before, c.size(1) - 1)):
                factor = c[:, i].repeat_interleave(width)
                for own, total in self._split(term, filtered):
                    total.copy_(own * factor) if i == 0 else total.add_(own * factor)
                _copy_rows(kept.terms[:, i], term, kept.nodes)
        return [part for part in (filtered, mean) if part is not None]

    def _split(self, *rows: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Blocks of rows of several tensors."""
        return zip(*(torch.split(part, self.batch_size) for part in rows), strict=True)


@dataclass
class _Kept:
    """What the last evaluation left of one block.

    Attributes:
        h: its input, [N, hidden].
        nodes: whose ``terms`` and ``mean`` are kept, ascending; None for all.
        terms: rows of T_i(X) Z, [nodes, order + 1, hidden].
        mean: rows of the neighbour means of Z, [nodes, hidden].
        norm: weight and bias with which Z is the normalised ``h``.
    """

    h: Tensor
    nodes: Tensor | None = None
    terms: Tensor | None = None
    mean: Tensor | None = None
    norm: tuple[Tensor, ...] = ()


@dataclass(frozen=True, eq=False)
class _Part:
    """What some rows of a block's output need of its input.

    Attributes:
        rows: the nodes of the output.
        fresh: nodes whose rows are computed again; those of the output first.
        attended: nodes whose rows are taken as they are kept.
        operator: attends from ``rows`` to ``fresh`` and ``attended``, numbered in this order.
    """

    rows: Tensor
    fresh: Tensor
    attended: Tensor
    operator: SpectralOperator


def _copy_rows(target: Tensor, source: Tensor, nodes: Tensor | None) -> None:
    """Copies all rows, or those of some nodes, a block at a time."""
    for first in range(0, len(target), ROWS):
        rows = slice(first, first + ROWS)
        target[rows] = source[rows if nodes is None else nodes[rows].to(source.device)].to(target.device)


def _counted(found: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Nodes of several countings, ascending, and the sums of their counts."""
    nodes, place = torch.unique(torch.cat([nodes for nodes, _ in found]), return_inverse=True)
    times = torch.cat([times for _, times in found])
    return nodes, torch.zeros_like(nodes).index_add_(0, place, times)
