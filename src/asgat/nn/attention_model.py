"""What models with spectral attention have in common."""

from abc import ABC, abstractmethod

import torch
from torch import nn

from asgat.nn.asgat_conv import ASGATConv
from asgat.spectral import SpectralOperator
from asgat.spectral.certificate import Certificate


class AttentionModel(nn.Module, ABC):
    """A model of spectral attention layers, whose ``forward`` takes what that of :class:`~asgat.nn.ASGAT` does."""

    @property
    @abstractmethod
    def convs(self) -> list[ASGATConv]:
        """The attention layers, first to last."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw all parameters again."""

    @torch.no_grad()
    def certificates(self, operator: SpectralOperator) -> list[Certificate]:
        """How far each layer's attention on this graph can be from the paper's."""
        attentions = [conv.attention(operator, certified=True) for conv in self.convs]
        return [attention.certificate for attention in attentions if attention.certificate is not None]
