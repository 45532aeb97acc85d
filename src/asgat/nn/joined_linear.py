"""The linear map of rows joined from a node's own features, attention and other parts."""

from collections.abc import Sequence

import torch
from torch import Tensor

from asgat.kernels import gather_linear
from asgat.kernels.sparse_features import matmul
from asgat.nn.asgat_conv import ASGATConv
from asgat.nn.rows import by_copy, linear
from asgat.spectral import SpectralOperator

IN_BLOCKS = 1 << 14  # rows above which the CPU joins them a block at a time


def in_blocks(rows: int, device: torch.device) -> bool:
    """Whether joined rows are never stored: those of a large graph on the CPU."""
    return device.type == "cpu" and rows > IN_BLOCKS


def joined_linear(
    z: Tensor,
    attention: ASGATConv | None,
    others: Sequence[Tensor],
    weight: Tensor,
    bias: Tensor,
    operator: SpectralOperator,
) -> Tensor:
    """[z, attention(z), others] W + b, for an attention layer without dropout, root term, shares and bias."""
    traced = torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu")
    if attention is None or traced or not in_blocks(z.size(0), z.device):
        attended = [] if attention is None else [attention(z, operator)]
        return linear(torch.cat([z, *attended, *others], dim=-1), weight, bias)
    found = attention.attention(operator)
    # In a double cover the rows of a node's two copies, one after the other, are those of twice as many heads.
    shape = z.size(0), -1, found.index.size(-1)
    index, share = (part.transpose(0, 1).reshape(shape) for part in (found.index, found.weight))
    x = operator.exchange(by_copy(matmul(z, attention.weight), attention.operators.copies))
    return gather_linear(x, index, share, z, others, weight, bias)
