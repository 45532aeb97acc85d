"""CUDA kernels of :func:`asgat.kernels.chebyshev_filter`."""

from typing import Any

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from asgat.kernels import plain

ROWS = 64  # summed by one program of the gradient to the coefficients


def chebyshev_filter(
    indptr: Tensor, index: Tensor, value: Tensor, coefficients: Tensor, signal: Tensor, boundary: Any = None
) -> Tensor:
    if boundary or signal.size(1) < coefficients.size(0) or not signal.numel() or not index.numel():
        return plain.chebyshev_filter(indptr, index, value, coefficients, signal, boundary)
    return _filter(indptr, index, value, coefficients, signal.contiguous())[0]


def chebyshev_filter_grad(
    indptr: Tensor,
    index: Tensor,
    value: Tensor,
    coefficients: Tensor,
    signal: Tensor,
    grad: Tensor,
    boundary: Any = None,
) -> tuple[Tensor, Tensor]:
    if boundary or signal.size(1) < coefficients.size(0) or not signal.numel() or not index.numel():
        return plain.chebyshev_filter_grad(indptr, index, value, coefficients, signal, grad, boundary)
    to_signal, terms = _filter(indptr, index, value, coefficients, grad.contiguous(), keep=True)
    orders, nodes, heads, features = terms.shape
    width, blocks = heads * features, triton.cdiv(nodes, ROWS)
    block = min(128, max(16, triton.next_power_of_2(width)))
    sums = terms.new_empty(blocks, orders, width)
    with torch.cuda.device(signal.get_device()):
        _dot_kernel[blocks, triton.cdiv(width, block), orders](
            terms, signal.contiguous(), sums, nodes, width, ROWS=ROWS, BLOCK=block
        )
    return sums.sum(0).view(orders, heads, features).sum(-1).t(), to_signal


def _filter(
    indptr: Tensor, index: Tensor, value: Tensor, coefficients: Tensor, x: Tensor, keep: bool = False
) -> tuple[Tensor, Tensor]:
    """The filtered signals and, if they are to be kept, all terms T_i(X) x, [order + 1, N, heads, F]."""
    nodes, heads, features = x.shape
    orders, width = coefficients.size(1), heads * features
    out = torch.empty_like(x)
    terms = x.new_empty(orders if keep else 3, *x.shape)
    if keep:
        terms[0] = x
    entries = min(64, max(4, triton.next_power_of_2(index.numel() // nodes) // 2))
    block = min(2048 // entries, max(16, triton.next_power_of_2(width)))
    shared = indptr, index, value.contiguous(), coefficients.contiguous()
    with torch.cuda.device(x.get_device()):
        for i in range(1, orders):
            now = x if i == 1 else terms[(i - 1) % len(terms)]
            before = x if i <= 2 else terms[(i - 2) % len(terms)]
            _step_kernel[nodes, triton.cdiv(width, block)](
                *shared, now, before, terms[i % len(terms)], out, width, features, orders, i,
                FIRST=i == 1, ENTRIES=entries, BLOCK=block, num_warps=max(1, min(4, entries * block // 512)),
            )  # fmt: skip
    return out, terms


@triton.jit(do_not_specialize=["orders", "i"])  # type: ignore[untyped-decorator,unused-ignore]
def _step_kernel(
    indptr: tl.tensor, index: tl.tensor, value: tl.tensor, coefficients: tl.tensor, now: tl.tensor, before: tl.tensor,
    new: tl.tensor, out: tl.tensor, width: tl.tensor, features: tl.tensor, orders: tl.tensor, i: tl.tensor,
    FIRST: tl.constexpr, ENTRIES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """One program computes one row of the next term and adds it, times its coefficient, to the filtered signal."""
    row = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < width
    begin, end = tl.load(indptr + row), tl.load(indptr + row + 1)
    total = tl.zeros([ENTRIES, BLOCK], dtype=out.dtype.element_ty)
    for start in range(begin, end, ENTRIES):
        entry = start + tl.arange(0, ENTRIES)
        weight = tl.load(value + entry, mask=entry < end, other=0.0)
        source = tl.load(index + entry, mask=entry < end, other=0).to(tl.int64)
        place = now + source[:, None] * width + channel[None, :]
        total += weight[:, None] * tl.load(place, mask=(entry < end)[:, None] & inside[None, :], other=0.0)
    term = tl.sum(total, axis=0)
    place = row * width + channel
    own = coefficients + (channel // features) * orders
    factor = tl.load(own + i, mask=inside, other=0.0)
    if FIRST:
        total_before = tl.load(own, mask=inside, other=0.0) * tl.load(now + place, mask=inside, other=0.0)
    else:
        term = 2.0 * term - tl.load(before + place, mask=inside, other=0.0)
        total_before = tl.load(out + place, mask=inside, other=0.0)
    tl.store(new + place, term, mask=inside)
    tl.store(out + place, total_before + factor * term, mask=inside)


@triton.jit(do_not_specialize=["nodes"])  # type: ignore[untyped-decorator,unused-ignore]
def _dot_kernel(
    terms: tl.tensor, signal: tl.tensor, sums: tl.tensor, nodes: tl.tensor, width: tl.tensor,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """One program multiplies a block of rows of one term with the signal and sums them, channel by channel."""
    first, which = tl.program_id(0).to(tl.int64) * ROWS, tl.program_id(2).to(tl.int64)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([8, BLOCK], dtype=sums.dtype.element_ty)
    for start in range(0, ROWS, 8):
        row = first + start + tl.arange(0, 8)
        inside = (row < nodes)[:, None] & (channel < width)[None, :]
        place = row[:, None] * width + channel[None, :]
        term = tl.load(terms + which * nodes * width + place, mask=inside, other=0.0)
        total += term * tl.load(signal + place, mask=inside, other=0.0)
    place = (tl.program_id(0) * tl.num_programs(2) + which) * width + channel
    tl.store(sums + place, tl.sum(total, axis=0), mask=channel < width)
