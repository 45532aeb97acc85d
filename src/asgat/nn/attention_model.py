"""What models with spectral attention have in common."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.attention import SparseAttention, attend_each
from asgat.nn.filter_conv import SpectralFilterConv
from asgat.nn.operator_builder import Features, GraphLike
from asgat.spectral import SpectralOperator
from asgat.spectral.certificate import Certificate


class AttentionModel(nn.Module, ABC):
    """A model of spectral attention layers, whose ``forward`` takes what that of :class:`~asgat.nn.ASGAT` does."""

    @property
    @abstractmethod
    def convs(self) -> list[ASGATConv]:
        """The attention layers, first to last; none if the model has no attention."""

    @property
    def filter_convs(self) -> list[SpectralFilterConv]:
        """The layers of filters without attention, first to last."""
        return []

    @property
    def layer_name(self) -> str:
        """The word for a layer of this model in reports: ``layer`` or ``block``."""
        return "layer"

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw all parameters again."""

    def operator_for(self, x: Features, graph: GraphLike, edge_weight: Tensor | None = None) -> SpectralOperator:
        """The operator of a graph, built unless it already is one or is cached."""
        return self.convs[0].operator_for(x, graph, edge_weight)

    def attentions(self, operator: SpectralOperator) -> list[SparseAttention]:
        """The attention of every attention layer on a graph, computed at once where the layers allow that."""
        convs = self.convs
        if any(conv.filter.fixed for conv in convs) or len({(conv.k, conv.include_unreachable) for conv in convs}) != 1:
            return [conv.attention(operator) for conv in convs]
        return attend_each(operator, [conv.filter for conv in convs], convs[0].k, convs[0].include_unreachable)

    @torch.no_grad()
    def certificates(self, operator: SpectralOperator) -> list[Certificate]:
        """How far each layer's attention on this graph can be from the paper's."""
        attentions = [conv.attention(operator, certified=True) for conv in self.convs]
        return [attention.certificate for attention in attentions if attention.certificate is not None]


def check_nodes(operator: SpectralOperator, directed: bool, num_nodes: int | None) -> None:
    """Refuses another graph than the one whose nodes a model has weights for."""
    found = operator.graph_size // (2 if directed else 1)
    if num_nodes is not None and found != num_nodes:
        raise AsgatError(
            f"This model has weights for the {num_nodes} nodes of the graph it was trained on; it cannot run on one "
            f"with {found}. Train with adjacency=false for a model of any graph."
        )
