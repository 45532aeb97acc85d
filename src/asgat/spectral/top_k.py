"""The k largest scores of every row, ties to the lower index."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor


def top_k(score: Tensor, k: int) -> Tensor:
    """Positions [..., min(k, C)] of the k largest of the last dimension, largest first, ties to the lower position.

    ``torch.topk`` does not define the order of ties. In single precision score and position are therefore packed into
    one 64-bit key, all different, at the cost of one top-k; in double precision it is a stable sort, O(C log C) a row.
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


def row_blocks(num_rows: int, bytes_per_row: int, limit: int) -> Iterator[slice]:
    """Ranges of rows that take at most ``limit`` bytes each, but hold at least one row."""
    size = max(1, limit // max(bytes_per_row, 1))
    for start in range(0, max(num_rows, 1), size):
        yield slice(start, min(start + size, num_rows))


def top_by_blocks(
    blocks: Iterable[slice],
    terms: Callable[[slice], tuple[Tensor, Tensor, Tensor]],
    coefficients: Tensor,
    k: int,
    unreachable: float,
) -> tuple[Tensor, Tensor]:
    """The k best of scores that are sums of terms: index and score, both [heads, N, min(k, C)].

    For a block of rows ``terms`` gives scores [heads, B, C], their terms [J, B, C] or [J, heads, B, C], and a mask of
    the pairs [B, C] that are not reachable, which score ``unreachable``. Selection runs without gradients; the terms of
    kept pairs are then combined with the coefficients [heads, J]: gradients take O(heads · N · k · J) memory.
    """
    indices, values = [], []
    for rows in blocks:
        with torch.no_grad():
            score, basis, apart = terms(rows)
            index = top_k(score.masked_fill_(apart, unreachable), k)
            kept = torch.stack([term.expand_as(score).gather(-1, index) for term in basis])
            missing = apart.expand_as(score).gather(-1, index)
        value = torch.einsum("hj,jhbk->hbk", coefficients, kept)
        indices.append(index)
        values.append(value.masked_fill(missing, unreachable))
    return torch.cat(indices, dim=1), torch.cat(values, dim=1)
