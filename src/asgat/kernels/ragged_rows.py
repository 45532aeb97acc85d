"""Rows of different lengths over one array of entries, in buckets for a GPU."""

import torch
from torch import Tensor

from asgat.errors import AsgatError

NARROWEST = 64
# Rows join the next wider bucket instead of a separate launch if that adds no more padded entries than this.
WORTH_A_LAUNCH = 1 << 17


class RaggedRows:
    r"""Row v holds the entries ``indptr[v]`` to ``indptr[v + 1] - 1``.

    Rows are sorted into buckets by their length, padded to a power of two, so that on CUDA short rows do not cost as
    much as long ones. Built once per table: on CUDA the constructor waits for the device. O(N log N) time, O(N) memory.

    Args:
        indptr: bounds, [N + 1], int64, from 0, not decreasing.

    Attributes:
        order: the rows by bucket, [N].
        widths, counts: padded length and number of the rows of each bucket.
    """

    def __init__(self, indptr: Tensor) -> None:
        if indptr.dim() != 1 or indptr.numel() == 0 or indptr.dtype != torch.int64:
            raise AsgatError(
                f"indptr must be an int64 tensor of shape [N + 1], but is {indptr.dtype} {list(indptr.shape)}."
            )
        length = indptr.diff()
        if int(indptr[0]) != 0 or (length < 0).any():
            raise AsgatError("indptr must start at 0 and must not decrease.")
        self.indptr = indptr.contiguous()
        self.num_rows = indptr.numel() - 1
        self.num_entries = int(indptr[-1])
        self.order = torch.argsort(length, stable=True)
        self.widths, self.counts = buckets(length)


def buckets(length: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Widths and numbers of rows of the buckets, narrowest first; waits for the device."""
    widest = max(NARROWEST, int(length.max())) if length.numel() else NARROWEST
    powers = [NARROWEST << i for i in range((widest - 1).bit_length() - (NARROWEST - 1).bit_length() + 1)]
    within = torch.bucketize(length, torch.tensor(powers, device=length.device))
    pending, widths, counts = 0, [], []
    for width, count in zip(powers, torch.bincount(within, minlength=len(powers)).tolist(), strict=True):
        pending += count
        if pending and (width == powers[-1] or pending * width > WORTH_A_LAUNCH):
            widths.append(width)
            counts.append(pending)
            pending = 0
    return tuple(widths), tuple(counts)
