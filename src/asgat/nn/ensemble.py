"""Several networks of one form whose predictions are averaged."""

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.attention import SparseAttention
from asgat.nn.attention_model import AttentionModel
from asgat.nn.filter_conv import SpectralFilterConv
from asgat.nn.operator_builder import Features, GraphLike
from asgat.spectral import SpectralOperator
from asgat.spectral.certificate import Certificate


def average(votes: Tensor) -> Tensor:
    """Logarithms of the mean probabilities, [N, classes], from the logits of every member, [members, N, classes]."""
    return votes.log_softmax(-1).logsumexp(0) - math.log(len(votes))


class AveragedModels(nn.Module):
    """Networks of any one form, each trained by itself; the probabilities they give a class are averaged.

    Takes what a member takes and returns log-probabilities [N, out_channels], which serve as logits.
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, *inputs: Any) -> Tensor:
        return average(torch.stack([member(*inputs) for member in self.members]))


class Ensemble(AveragedModels, AttentionModel):
    r"""Networks that differ in their random numbers alone; the probabilities they give a class are averaged.

    Members share nothing, and each is trained and stopped early by itself. Filters and attention shown after training
    are the first member's; a certificate covers all of them.

    Shapes:
        x [N, in_channels] and a graph → log-probabilities [N, out_channels], which serve as logits

    Cost: that of a member, times their number.
    """

    def _each(self) -> list[AttentionModel]:
        return cast(list[AttentionModel], list(self.members))

    @property
    def convs(self) -> list[ASGATConv]:
        return self._each()[0].convs

    @property
    def filter_convs(self) -> list[SpectralFilterConv]:
        return self._each()[0].filter_convs

    @property
    def layer_name(self) -> str:
        return self._each()[0].layer_name

    def certificates(self, operator: SpectralOperator) -> list[Certificate]:
        """Those of every layer of every member."""
        return [certificate for member in self._each() for certificate in member.certificates(operator)]

    def reset_parameters(self) -> None:
        for member in self._each():
            member.reset_parameters()

    def forward(  # type: ignore[override]
        self,
        x: Features,
        edge_index: GraphLike,
        edge_weight: Tensor | None = None,
        return_attention_weights: bool = False,
    ) -> Tensor | tuple[Tensor, list[SparseAttention]]:
        """As :meth:`ASGAT.forward`; the attention is the first member's."""
        operator = self._each()[0].operator_for(x, edge_index, edge_weight)
        out = super().forward(x, operator)
        return (out, [conv.attention(operator) for conv in self.convs]) if return_attention_weights else out
