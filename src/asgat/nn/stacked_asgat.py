"""Several models of one form as one tensor program."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.filters.stacked import StackedFilter
from asgat.kernels import dropout_runs, gather_sum
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.asgat import ASGAT
from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.attention import attend
from asgat.spectral import SpectralOperator
from asgat.spectral.graph_operator import as_graph_operator

_KNOWN = re.compile(r"jump_weight|propagation\.gamma|layers\.\d+\.(weight|root_weight|mix|bias|filter\..+)")


class StackedASGAT:
    r"""R models :class:`ASGAT` that differ in weights and dropout alone, evaluated together on one graph.

    Nothing is mixed between them: in the scores runs are more heads (:class:`~asgat.filters.stacked.StackedFilter`), in
    the sums over attended nodes they are R copies of the graph beside each other, and sparse features stand in R
    diagonal blocks. So the kernels of a single model serve all of them, and logits and gradients of each are its own.

    Args:
        form: one of the models; its weights play no part.
        state: the models' parameters and buffers by name, stacked, [R, ...] each.
        x: their features, the same for all.
        operator: of the graph.
        dropout: of each model, [R].

    Shapes:
        - **seed**: [dropouts, R], int64, one row for each use of dropout in the order of the layers
        - **output**: [R, N, out_channels]
    """

    def __init__(
        self,
        form: ASGAT,
        state: dict[str, Tensor],
        x: Tensor | SparseFeatures,
        operator: SpectralOperator,
        dropout: Sequence[float],
    ) -> None:
        self.form, self.state, self.operator = form, state, operator
        self.runs, self.num_nodes = len(dropout), operator.num_nodes
        self.p = torch.tensor(dropout, dtype=torch.float64, device=x.device)
        self.shared = x.value.unsqueeze(0) if isinstance(x, SparseFeatures) else x.unsqueeze(0)
        self.x = x.repeated(self.runs) if isinstance(x, SparseFeatures) else self.shared
        self.first = self.num_nodes * torch.arange(self.runs, device=x.device).unsqueeze(1)
        self.filters = [
            StackedFilter(conv.filter, self._part(f"layers.{i}.filter.")) for i, conv in enumerate(form.convs)
        ]
        own = form.propagation
        self.propagation = None if own is None else StackedFilter(own, self._part("propagation."))
        self._settled: dict[int, tuple[Tensor, Tensor]] = {}

    @staticmethod
    def serves(model: nn.Module) -> bool:
        """Whether a model has nothing but what is computed here."""
        return type(model) is ASGAT and all(_KNOWN.fullmatch(name) for name in model.state_dict())

    @property
    def dropouts(self) -> int:
        """How often a forward pass uses dropout."""
        return 2 * len(self.form.convs) + (self.form.jump_weight is not None)

    def __call__(self, seed: Tensor | None = None) -> Tensor:
        """Logits; with seeds those of training, under dropout."""
        hidden: Tensor | SparseFeatures = self.x
        last = len(self.filters) - 1
        for i, (conv, filter) in enumerate(zip(self.form.convs, self.filters, strict=True)):
            out = self._layer(i, conv, filter, hidden, None if seed is None else seed[2 * i : 2 * i + 2])
            if i == last and self.form.jump_weight is not None:
                source = self.x if seed is None else self._drop(self.x, seed[-1])
                out = out + self._product(source, self.state["jump_weight"])
            if self.form.elu == "every" or self.form.elu == ("last" if i == last else "hidden"):
                out = F.elu(out)
            hidden = out
        return out if self.propagation is None else as_graph_operator(self.operator).apply(self.propagation, out)

    def _layer(
        self, i: int, conv: ASGATConv, filter: StackedFilter, x: Tensor | SparseFeatures, seed: Tensor | None
    ) -> Tensor:
        """As :meth:`ASGATConv.forward`, line by line."""
        own = self._part(f"layers.{i}.")
        index, weight = self._attend(i, conv, filter)
        weight = weight.view(self.runs, -1)
        if seed is not None:
            x, weight = self._drop(x, seed[0]), dropout_runs(weight, self.p, seed[1])
        weight = weight.view(self.runs, conv.heads, self.num_nodes, -1)
        if "mix" in own:
            weight = weight * (conv.heads * own["mix"].softmax(1))[:, :, None, None]
        mapped = self._product(x, own["weight"]).flatten(0, 1)
        mapped = mapped if conv.gain == 1.0 else conv.gain * mapped
        k = weight.size(-1)
        index = index.reshape(weight.shape).transpose(1, 2).reshape(self.runs, -1) + self.first
        weight = weight.transpose(1, 2).reshape(-1, k)
        out = gather_sum(mapped, index.view(-1, k), weight).view(self.runs, self.num_nodes, conv.heads, -1)
        beside = conv.concat or conv.heads == 1
        out = out.flatten(2) if beside else out.mean(dim=2)
        if "bias" in own and beside:
            out = out + own["bias"].unsqueeze(1)
        if "root_weight" in own:
            out = out + self._product(x, own["root_weight"])
        if "bias" in own and not beside:
            out = out + own["bias"].unsqueeze(1)
        return out

    def _attend(self, i: int, conv: ASGATConv, filter: StackedFilter) -> tuple[Tensor, Tensor]:
        """Index and weight of attention, [R · heads, N, k]; that of a filter that stays as it is, once and for all."""
        if not conv.filter.fixed:
            attention = attend(self.operator, filter, conv.k, conv.include_unreachable)
            return attention.index, attention.weight
        if i not in self._settled:  # and the same in all runs
            first = {name: value[:1] for name, value in self._part(f"layers.{i}.filter.").items()}
            with torch.no_grad():
                one = attend(self.operator, StackedFilter(conv.filter, first), conv.k, conv.include_unreachable)
            self._settled[i] = one.index.repeat(self.runs, 1, 1), one.weight.repeat(self.runs, 1, 1)
        return self._settled[i]

    def _drop(self, x: Tensor | SparseFeatures, seed: Tensor) -> Tensor | SparseFeatures:
        if isinstance(x, SparseFeatures):
            return x.with_value(dropout_runs(self.shared, self.p, seed).view(-1))
        return dropout_runs(x, self.p, seed)

    def _product(self, x: Tensor | SparseFeatures, weight: Tensor) -> Tensor:
        """[R, N, in] and [R, in, out] → [R, N, out]."""
        if isinstance(x, SparseFeatures):
            return x.matmul(weight.flatten(0, 1)).view(self.runs, self.num_nodes, -1)
        return torch.matmul(x, weight)

    def _part(self, prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): value for name, value in self.state.items() if name.startswith(prefix)}
