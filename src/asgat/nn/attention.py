"""Sparse attention over node pairs: select, normalise, aggregate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from asgat.filters.spectral_filter import SpectralFilter
from asgat.kernels import dropout, gather_elu, gather_sum, row_softmax
from asgat.kernels.attention_sum import attention_sum, fits_attention_sum
from asgat.kernels.dropout import draw_seed, drops
from asgat.spectral.certificate import Certificate
from asgat.spectral.signal_operator import as_signal_operator
from asgat.spectral.spectral_operator import SpectralOperator, check_k


@dataclass(frozen=True, eq=False)
class SparseAttention:
    r"""For every head and node v, at most k nodes u and their weights :math:`a_{vu}`, which sum to 1.

    Rows with fewer reachable nodes than k are filled up with entries of weight 0.

    Attributes:
        index: attended nodes u, [heads, N, k].
        num_nodes: number of nodes that can be attended to.
        certificate: how far the selection can be from the best of all nodes, where it was computed.
    """

    index: Tensor
    _weight: Tensor | None  # None until it is used, where the scores are given: layers fuse the softmax into their sums
    num_nodes: int
    certificate: Certificate | None = None
    _score: Tensor | None = None

    @property
    def weight(self) -> Tensor:
        """Attention weights, [heads, N, k]."""
        if self._weight is None:
            assert self._score is not None
            weight = row_softmax(self._score)
            if torch.compiler.is_compiling():
                return weight
            object.__setattr__(self, "_weight", weight)
        assert self._weight is not None
        return self._weight

    @property
    def heads(self) -> int:
        return self.index.size(0)

    def dropout(self, p: float, training: bool = True) -> Self:
        """The same attention with weights zeroed at random and the others scaled up, as in GAT."""
        return self._weighted(dropout(self.weight, p)) if drops(p, training) else self

    def scale(self, factor: Tensor) -> Self:
        """The same attention with every head's weights times a factor [heads]."""
        return self._weighted(self.weight * factor[:, None, None])

    def _weighted(self, weight: Tensor) -> Self:
        return replace(self, _weight=weight, _score=None)

    def aggregate(
        self,
        x: Tensor,
        bias: Tensor | None = None,
        p: float = 0.0,
        training: bool = False,
        factor: Tensor | None = None,
        elu: bool = False,
        next_dropout: float = 0.0,
    ) -> Tensor:
        r""":math:`\sum_u a_{vu} x_u + b` per head: [N, F] → [heads, N, F], O(heads · N · k · F), nothing N×N.

        ``bias`` is [heads, F]. Before, :meth:`dropout` with ``p`` and :meth:`scale` with ``factor``. With ``elu``
        the result is that of the sums, while training under the dropout ``next_dropout`` of [N, heads · F], whose seed
        is drawn after that of the weights.
        """
        score = self._score
        if not elu and factor is None and score is not None and fits_attention_sum(score, x):
            return attention_sum(score, self.index, x, bias, p, training).transpose(0, 1)
        kept = self.dropout(p, training)
        seed = draw_seed(x.device) if drops(next_dropout, training) else None
        return (kept if factor is None else kept.scale(factor))._sums(x, bias, elu, next_dropout, seed)

    def _sums(self, x: Tensor, bias: Tensor | None, elu: bool, p: float, seed: Tensor | None) -> Tensor:
        heads, rows, _ = self.index.shape
        # Rows outermost: heads end up next to each other, so that concatenating them later copies nothing.
        index, weight = (part.transpose(0, 1).flatten(0, 1) for part in (self.index, self.weight))
        out = gather_elu(x, index, weight, bias, p, seed) if elu else gather_sum(x, index, weight, bias)
        return out.view(rows, heads, x.size(1)).transpose(0, 1)

    def density(self) -> float:
        """Share of the heads · N · N possible weights that are not zero."""
        total = self.heads * self.weight.size(1) * self.num_nodes
        return float((self.weight > 0).sum().item()) / total if total else 0.0

    def to_dense(self) -> Tensor:
        """The weights as [heads, N, N]. Costly: meant for tests and small graphs."""
        heads, rows, _ = self.index.shape
        full = self.weight.new_zeros(heads, rows, self.num_nodes)
        return full.scatter_add(-1, self.index.long(), self.weight)

    def to_edges(self, head: int) -> tuple[Tensor, Tensor]:
        """One head's attention as PyG message edges: ``edge_index`` [2, E], from u to v, and weights [E]."""
        target, position = (self.weight[head] > 0).nonzero(as_tuple=True)
        source = self.index[head][target, position]
        return torch.stack([source, target]), self.weight[head][target, position]


def attend(
    operator: SpectralOperator,
    filter: SpectralFilter,
    k: int | None,
    include_unreachable: bool = False,
    certified: bool = False,
) -> SparseAttention:
    r"""The paper's attention :math:`a_v = \mathrm{softmax}(\mathrm{topK}(\psi_v, k))`, from an operator's scores ψ.

    Args:
        filter: the response g, one column per head.
        k: nodes to keep per row and head, ties to the lower index; None keeps all reachable ones.
        include_unreachable: let nodes of other components, with score 0, compete (the paper's letter).
        certified: also bound the error of the selection.
    """
    (found,) = attend_each(operator, [filter], k, include_unreachable, certified)
    return found


def attend_each(
    operator: SpectralOperator,
    filters: Sequence[SpectralFilter],
    k: int | None,
    include_unreachable: bool = False,
    certified: bool = False,
) -> list[SparseAttention]:
    """What :func:`attend` gives for each of several filters, which an operator may compute at once."""
    check_k(k)
    if torch.is_autocast_enabled(operator.device.type):  # half precision would select other nodes
        with torch.autocast(operator.device.type, enabled=False):
            return attend_each(operator, filters, k, include_unreachable, certified)
    if k is None:
        scored = [operator.select(filter, None, include_unreachable) for filter in filters]
    else:
        scored = operator.top_each(filters, k, include_unreachable)
    found = []
    for filter, (index, score) in zip(filters, scored, strict=True):
        certificate = operator.certify(filter, index, score) if certified else None
        found.append(SparseAttention(index, None, operator.num_nodes, certificate, score))
    return found


def filtered(operator: SpectralOperator, filter: SpectralFilter, signal: Tensor) -> Tensor:
    """The signal [N, F] filtered by the response of one head."""
    return as_signal_operator(operator).apply(filter, signal).squeeze(0)
