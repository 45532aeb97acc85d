"""The k largest scores of every row, ties to the lower index."""

from __future__ import annotations

import torch
from torch import Tensor


def top_k(score: Tensor, k: int) -> Tensor:
    """Positions [..., min(k, C)] of the k largest of the last dimension, largest first, ties to the lower position.

    ``torch.topk`` breaks ties as it likes. In single precision score and position are therefore packed into one
    64-bit key, all different, at the cost of one top-k; in double precision a stable sort does it, O(C log C) a row.
    """
    score = score.detach()
    columns = score.size(-1)
    k = min(k, columns)
    if score.dtype == torch.float64:
        return score.sort(dim=-1, descending=True, stable=True).indices[..., :k]
    bits = (score.float() + 0.0).view(torch.int32)  # adding 0 turns -0 into +0: they tie
    bits ^= (bits >> 31) & 0x7FFFFFFF  # now an integer that is ordered as the float is
    key = bits.long().mul_(1 << 32).add_(torch.arange(columns - 1, -1, -1, device=score.device))
    return columns - 1 - (key.topk(k, dim=-1).values & 0xFFFFFFFF)
