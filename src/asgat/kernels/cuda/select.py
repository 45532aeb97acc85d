"""CUDA kernels of :func:`asgat.kernels.select_top`."""

from collections.abc import Sequence

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from asgat.kernels.plain import select_rows

HEADS_AT_ONCE = 16  # heads for which a program reads its row of the table once, at most
SCORES_AT_ONCE = 1 << 10  # that a program keeps, at most, unless one row has more
PROGRAMS = 1 << 12  # that fill a device; where there are fewer, each takes one head
LONGEST = 1 << 13  # entries of a row that a program keeps; longer rows are sorted instead
VALUES_PER_WARP = 1 << 12
REGISTERS = None  # of a thread
TILE = 4  # neighbouring values of an entry that are loaded at once
ENTRIES = 64  # selected entries a program adds at a time for the gradient
PARTIAL = 1 << 10  # partial sums of all heads
UNROLLED = 32  # orders up to which all loads of a program are under way at once


def select_top(
    value: Tensor, indptr: Tensor, order: Tensor, widths: Sequence[int], counts: Sequence[int], coefficients: Tensor,
    k: int, hint: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    heads, orders = coefficients.shape
    rows = indptr.numel() - 1
    value, coefficients = value.contiguous(), coefficients.contiguous()
    score, position = coefficients.new_empty(heads, rows, k), indptr.new_empty(heads, rows, k)
    if value.numel() == 0 or max(widths) > LONGEST:  # otherwise the kernel writes all of them
        score.fill_(-torch.inf)
        position.fill_(-1)
    if score.numel() == 0 or value.numel() == 0:
        return score, position
    done = 0
    for width, count in zip(widths, counts, strict=True):
        bucket = order[done : done + count]
        done += count
        if width > LONGEST:
            select_rows(value, indptr, bucket, width, coefficients, score, position)
            continue
        at_once = max(1, min(HEADS_AT_ONCE, SCORES_AT_ONCE // width, count * heads // PROGRAMS))
        groups = triton.cdiv(heads, at_once)
        values = width * triton.next_power_of_2(min(orders, UNROLLED))
        with torch.cuda.device(value.get_device()):
            _select_kernel[count, groups](
                value, indptr, bucket, coefficients, score, position, rows, heads, k,
                ORDERS=orders, TILE=TILE, WIDTH=width, HEADS=triton.next_power_of_2(triton.cdiv(heads, groups)),
                UNROLLED=UNROLLED, num_warps=min(16, max(1, values // VALUES_PER_WARP)), maxnreg=REGISTERS,
            )  # fmt: skip
    return score, position


def select_top_grad(value: Tensor, position: Tensor, grad: Tensor) -> Tensor:
    heads, orders = position.size(0), value.size(1)
    selected = position.size(1) * position.size(2)
    if value.numel() == 0 or selected == 0 or heads == 0:
        return grad.new_zeros(heads, orders)
    blocks = min(max(1, PARTIAL // heads), triton.cdiv(selected, ENTRIES))
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
    position: tl.tensor, rows: tl.tensor, heads: tl.tensor, k: tl.tensor, ORDERS: tl.constexpr, TILE: tl.constexpr,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, UNROLLED: tl.constexpr,
) -> None:  # fmt: skip
    """One program scores one row for a few heads, then takes the largest score k times, the leftmost among equals."""
    row = tl.load(bucket + tl.program_id(0))
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    begin = tl.load(indptr + row)
    local = tl.arange(0, WIDTH)
    within = begin + local < tl.load(indptr + row + 1)
    scores = tl.zeros([HEADS, WIDTH], dtype=score.dtype.element_ty)
    for h in tl.static_range(HEADS):  # all of them read the same values, which are loaded once
        own = coefficients + tl.minimum(tl.program_id(1) * HEADS + h, heads - 1) * ORDERS
        parts = tl.zeros([WIDTH, TILE], dtype=score.dtype.element_ty)
        if ORDERS <= UNROLLED:
            for p in tl.static_range(0, ORDERS, TILE):
                parts = _add_orders(parts, value, own, begin, within, p, ORDERS, TILE)
        else:
            for p in range(0, ORDERS, TILE):
                parts = _add_orders(parts, value, own, begin, within, p, ORDERS, TILE)
        scores = tl.where((tl.arange(0, HEADS) == h)[:, None], tl.sum(parts, axis=1)[None, :], scores)
    scores = _sortable(tl.where(within[None, :] & (scores == scores), scores, -float("inf")))  # NaN is never taken
    lowest = _sortable(tl.full([HEADS], -float("inf"), dtype=score.dtype.element_ty))
    to = (head.to(tl.int64) * rows + row) * k
    for j in range(k):
        best = tl.max(scores, axis=1)
        at = tl.min(tl.where(scores == best[:, None], local[None, :], WIDTH), axis=1)
        tl.store(score + to + j, _unsorted(best), mask=head < heads)
        tl.store(position + to + j, tl.where(best > lowest, begin + at, -1), mask=head < heads)
        scores = tl.where(local[None, :] == at[:, None], lowest[:, None], scores)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _add_orders(
    parts: tl.tensor, value: tl.tensor, coefficients: tl.tensor, begin: tl.tensor, within: tl.tensor, start: tl.tensor,
    ORDERS: tl.constexpr, TILE: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Adds what a few neighbouring orders contribute to one head's scores."""
    p = start + tl.arange(0, TILE)
    entry = begin + tl.arange(0, parts.shape[0])
    place = value + entry[:, None] * ORDERS + p[None, :]
    held = tl.load(place, mask=within[:, None] & (p < ORDERS)[None, :], other=0.0).to(parts.dtype)
    return parts + held * tl.load(coefficients + p, mask=p < ORDERS, other=0.0)[None, :]


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _sortable(scores: tl.tensor) -> tl.tensor:
    """Whole numbers in the order of single-precision scores: a warp finds their largest in one instruction."""
    if scores.dtype == tl.float32:
        bits = tl.where(scores == 0.0, 0.0, scores).to(tl.int32, bitcast=True)  # -0 equals 0
        scores = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return scores


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _unsorted(scores: tl.tensor) -> tl.tensor:
    """What :func:`_sortable` was given."""
    if scores.dtype == tl.int32:
        scores = (scores ^ ((scores >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
    return scores


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
