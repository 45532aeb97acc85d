"""CUDA kernels of :func:`asgat.kernels.select_top`."""

from collections.abc import Sequence

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from asgat.kernels.plain import select_rows

HEADS_AT_ONCE = 8
SCORES_AT_ONCE = 1 << 14  # a program keeps its scores in registers; longer rows are sorted instead
SCORES_PER_WARP = 1 << 11
ENTRIES = 64  # selected entries a program adds at a time for the gradient
MAX_PARTIAL = 64  # partial sums per head
UNROLLED = 32  # orders up to which all loads of a program are under way at once


def select_top(
    value: Tensor, indptr: Tensor, order: Tensor, widths: Sequence[int], counts: Sequence[int], coefficients: Tensor,
    k: int, hint: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    heads, orders = coefficients.shape
    rows = indptr.numel() - 1
    value, coefficients = value.contiguous(), coefficients.contiguous()
    score, position = coefficients.new_empty(heads, rows, k), indptr.new_empty(heads, rows, k)
    if value.numel() == 0 or max(widths) > SCORES_AT_ONCE:  # otherwise the kernel writes all of them
        score.fill_(-torch.inf)
        position.fill_(-1)
    if score.numel() == 0 or value.numel() == 0:
        return score, position
    done = 0
    for width, count in zip(widths, counts, strict=True):
        bucket = order[done : done + count]
        done += count
        if width > SCORES_AT_ONCE:
            select_rows(value, indptr, bucket, width, coefficients, score, position)
            continue
        at_once = min(HEADS_AT_ONCE, triton.next_power_of_2(heads), SCORES_AT_ONCE // width)
        with torch.cuda.device(value.get_device()):
            _select_kernel[count, triton.cdiv(heads, at_once)](
                value, indptr, bucket, coefficients, score, position, rows, heads, k,
                ORDERS=orders, WIDTH=width, HEADS=at_once, UNROLLED=UNROLLED,
                num_warps=max(1, at_once * width // SCORES_PER_WARP),
            )  # fmt: skip
    return score, position


def select_top_grad(value: Tensor, position: Tensor, grad: Tensor) -> Tensor:
    heads, orders = position.size(0), value.size(1)
    selected = position.size(1) * position.size(2)
    if value.numel() == 0 or selected == 0 or heads == 0:
        return grad.new_zeros(heads, orders)
    blocks = min(MAX_PARTIAL, triton.cdiv(selected, ENTRIES))
    partial = grad.new_empty(heads, blocks, orders)
    with torch.cuda.device(value.get_device()):
        _grad_kernel[heads, blocks](
            value.contiguous(), position.contiguous(), grad.contiguous(), partial, selected, blocks,
            ORDERS=orders, PADDED=triton.next_power_of_2(orders), BLOCK=ENTRIES,
        )  # fmt: skip
    return partial.sum(dim=1)


@triton.jit(do_not_specialize=["rows", "heads", "k"])  # type: ignore[untyped-decorator,unused-ignore]
def _select_kernel(
    value: tl.tensor, indptr: tl.tensor, bucket: tl.tensor, coefficients: tl.tensor, score: tl.tensor,
    position: tl.tensor, rows: tl.tensor, heads: tl.tensor, k: tl.tensor, ORDERS: tl.constexpr, WIDTH: tl.constexpr,
    HEADS: tl.constexpr, UNROLLED: tl.constexpr,
) -> None:  # fmt: skip
    """One program scores one row for a few heads, then takes the largest score k times, the leftmost among equals."""
    row = tl.load(bucket + tl.program_id(0))
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    begin = tl.load(indptr + row)
    local = tl.arange(0, WIDTH)
    within = begin + local < tl.load(indptr + row + 1)
    scores = tl.zeros([HEADS, WIDTH], dtype=score.dtype.element_ty)
    if ORDERS <= UNROLLED:
        for p in tl.static_range(ORDERS):
            scores = _add_order(scores, value, coefficients, begin + local, within, head, heads, p, ORDERS)
    else:
        for p in range(ORDERS):
            scores = _add_order(scores, value, coefficients, begin + local, within, head, heads, p, ORDERS)
    scores = tl.where(within[None, :] & (scores == scores), scores, -float("inf"))  # NaN is never taken
    to = (head.to(tl.int64) * rows + row) * k
    for j in range(k):
        best, at = tl.max(scores, axis=1, return_indices=True, return_indices_tie_break_left=True)
        tl.store(score + to + j, best, mask=head < heads)
        tl.store(position + to + j, tl.where(best > -float("inf"), begin + at, -1), mask=head < heads)
        scores = tl.where(local[None, :] == at[:, None], -float("inf"), scores)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _add_order(
    scores: tl.tensor, value: tl.tensor, coefficients: tl.tensor, entry: tl.tensor, within: tl.tensor, head: tl.tensor,
    heads: tl.tensor, p: tl.tensor, ORDERS: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    held = tl.load(value + entry * ORDERS + p, mask=within, other=0.0).to(scores.dtype)
    scale = tl.load(coefficients + head * ORDERS + p, mask=head < heads, other=0.0)
    return scores + scale[:, None] * held[None, :]


@triton.jit(do_not_specialize=["selected", "blocks"])  # type: ignore[untyped-decorator,unused-ignore]
def _grad_kernel(
    value: tl.tensor, position: tl.tensor, grad: tl.tensor, partial: tl.tensor, selected: tl.tensor, blocks: tl.tensor,
    ORDERS: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """One program sums a part of one head's selected entries."""
    head = tl.program_id(0).to(tl.int64)
    p = tl.arange(0, PADDED)
    total = tl.zeros([BLOCK, PADDED], dtype=partial.dtype.element_ty)
    for start in range(tl.program_id(1) * BLOCK, selected, blocks * BLOCK):
        place = start + tl.arange(0, BLOCK)
        entry = tl.load(position + head * selected + place, mask=place < selected, other=-1)
        used = entry >= 0
        scale = tl.load(grad + head * selected + place, mask=used, other=0.0)
        held = tl.load(
            value + entry[:, None] * ORDERS + p[None, :], mask=used[:, None] & (p < ORDERS)[None, :], other=0.0
        )
        total += scale[:, None] * held.to(total.dtype)
    to = partial + (head * blocks + tl.program_id(1)) * ORDERS + p
    tl.store(to, tl.sum(total, axis=0), mask=p < ORDERS)
