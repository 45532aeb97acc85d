"""Several networks of one form that answer together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.asgat import ASGAT
from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.attention import SparseAttention
from asgat.spectral import SpectralOperator
from asgat.spectral.certificate import Certificate


class Ensemble(ASGAT):
    r"""Networks that differ in their random numbers alone; the probabilities they give a class are averaged.

    Members share nothing and are trained one by one, each stopped when it is best itself
    (:func:`asgat.training.trainer.train_run`). What is looked at after training, filters and attention, is the first
    member's; a certificate covers all of them.

    Args:
        members: the networks, untrained.

    Shapes:
        x [N, in_channels] and a graph → log-probabilities [N, out_channels], which serve as logits

    Cost: that of a member, times their number.
    """

    def __init__(self, members: Sequence[ASGAT]) -> None:
        nn.Module.__init__(self)  # it has no layers of its own
        self.members = nn.ModuleList(members)

    @property
    def first(self) -> ASGAT:
        return cast(ASGAT, self.members[0])

    @property
    def convs(self) -> list[ASGATConv]:
        """The layers of the first member."""
        return self.first.convs

    def certificates(self, operator: SpectralOperator) -> list[Certificate]:
        """Those of every layer of every member."""
        return [one for member in self.members for one in cast(ASGAT, member).certificates(operator)]

    def reset_parameters(self) -> None:
        for member in self.members:
            cast(ASGAT, member).reset_parameters()

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor | Graph | SpectralOperator,
        edge_weight: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Tensor | tuple[Tensor, list[SparseAttention]]:
        """As :meth:`ASGAT.forward`; the attention is the first member's."""
        operator = self.convs[0].operator_for(x, edge_index, edge_weight)
        first = self.first(x, operator, return_attention_weights=return_attention_weights)
        logits, attentions = first if return_attention_weights is not None else (first, [])
        votes = [logits, *(member(x, operator) for member in self.members[1:])]
        out = torch.stack(votes).log_softmax(-1).logsumexp(0) - math.log(len(votes))
        return out if return_attention_weights is None else (out, attentions)
