"""The model with a linear last layer."""

from __future__ import annotations

from typing import Any, cast

import torch.nn.functional as F
from torch import Tensor, nn

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.asgat import ASGAT
from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.attention import SparseAttention
from asgat.spectral import SpectralOperator


class ASGATLinear(ASGAT):
    r"""An :class:`ASGAT` whose last layer is a linear map of every node alone, :math:`h_v W + b`.

    With two layers there is a single attention layer, whose heads are concatenated: what its filters pass is all a
    node hears of others, which is what the paper's frequency ablation of "one layer" asks.

    Args:
        num_layers: number of layers, the linear one included; at least 2.
        heads: heads of each attention layer.
        options: everything else, as for :class:`ASGAT`.

    Example:
        >>> import torch
        >>> model = ASGATLinear(8, 16, 3, heads=4, k=5)
        >>> model(torch.randn(5, 8), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
        torch.Size([5, 3])
        >>> len(model.convs)
        1
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        heads: int = 8,
        **options: Any,
    ) -> None:
        if num_layers < 2:
            raise AsgatError(f"Before a linear layer there must be one of attention: layers is {num_layers}, not 2.")
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, heads, **options)
        self.layers[-1] = nn.Linear(heads * hidden_channels, out_channels)

    @property
    def convs(self) -> list[ASGATConv]:
        """The attention layers."""
        return cast(list[ASGATConv], list(self.layers)[:-1])

    def reset_parameters(self) -> None:
        super().reset_parameters()
        cast(nn.Linear, self.layers[-1]).reset_parameters()

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor | Graph | SpectralOperator,
        edge_weight: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Tensor | tuple[Tensor, list[SparseAttention]]:
        """As :meth:`ASGAT.forward`."""
        operator = self.convs[0].operator_for(x, edge_index, edge_weight)
        attentions = []
        hidden: Any = x
        for conv in self.convs:
            hidden, attention = conv(hidden, operator, return_attention_weights=bool(return_attention_weights))
            attentions.append(attention)
            if self.elu in ("every", "hidden"):
                hidden = F.elu(hidden)
        last = cast(nn.Linear, self.layers[-1])
        kept = F.dropout(hidden, self.convs[0].dropout, self.training)
        out = F.linear(kept, operator.shared(last.weight), operator.shared(last.bias))
        if self.elu in ("every", "last"):
            out = F.elu(out)
        return out if return_attention_weights is None else (out, attentions)
