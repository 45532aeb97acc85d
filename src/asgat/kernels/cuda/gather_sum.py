"""CUDA kernels of :func:`asgat.kernels.gather_sum`."""

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from asgat.kernels.cuda.csr_matmul import csr_matmul
from asgat.kernels.cuda.dropout import chance, kept_scale

FEW = 1 << 22  # sums up to which a program gathers all entries of a row at once


def gather_sum(
    x: Tensor, index: Tensor, weight: Tensor, bias: Tensor | None, elu: bool = False, p: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """With ``elu`` that of the sums, in single precision; with a seed under dropout. See gather_elu."""
    out = x.new_empty(index.size(0), x.size(1))
    if out.numel() == 0:
        return out
    sizes, grid = tiles(out.size(0), out.size(1), index.size(1), out.numel() <= FEW)
    with torch.cuda.device(x.get_device()):
        _gather_kernel[grid](
            x.contiguous(), index.contiguous(), weight.contiguous(), x if bias is None else bias.contiguous(), out,
            *((x, index) if seed is None else (chance(p, x.device), seed)), x.size(0), *out.shape,
            BIASES=0 if bias is None else bias.size(0), ELU=elu, DROPS=seed is not None, **sizes,
        )  # fmt: skip
    return out


def gather_sum_grad_x(grad: Tensor, index: Tensor, weight: Tensor, size: int) -> Tensor:
    if torch.are_deterministic_algorithms_enabled():
        return _grad_x_in_order(grad, index, weight, size)
    out = grad.new_zeros(size, grad.size(1))
    if out.numel() == 0 or index.numel() == 0:
        return out
    sizes, grid = tiles(grad.size(0), grad.size(1), index.size(1))
    with torch.cuda.device(grad.get_device()):
        _scatter_kernel[grid](
            grad.contiguous(), index.contiguous(), weight.contiguous(), out, size, *grad.shape, **sizes,
        )  # fmt: skip
    return out


def gather_sum_grad_weight(grad: Tensor, x: Tensor, index: Tensor) -> Tensor:
    out = x.new_empty(index.shape)
    if x.numel() == 0 or index.numel() == 0:
        return out.zero_()
    sizes, grid = tiles(grad.size(0), grad.size(1), index.size(1))
    with torch.cuda.device(grad.get_device()):
        _dot_kernel[grid[:1]](
            grad.contiguous(), x.contiguous(), index.contiguous(), out, x.size(0), *grad.shape, **sizes,
        )  # fmt: skip
    return out


def _grad_x_in_order(grad: Tensor, index: Tensor, weight: Tensor, size: int) -> Tensor:
    """Sort the entries by target and let each target sum its own: a fixed order, at the price of the sort."""
    target, order = index.reshape(-1).sort(stable=True)
    indptr = torch.searchsorted(target, torch.arange(size + 1, device=index.device, dtype=index.dtype))
    return csr_matmul(indptr, order // max(1, index.size(1)), weight.reshape(-1)[order], grad)


def tiles(rows: int, features: int, width: int, at_once: bool = True) -> tuple[dict[str, int], tuple[int, int]]:
    """Rows, entries and features that a program loads at once, and the grid of programs.

    Few programs load all entries of a row ``at_once``: a loop over them would wait for memory in every turn. Many
    programs fill the device anyway, and those that keep less are then faster.
    """
    block = min(256, max(16, triton.next_power_of_2(features)))
    entries = min(16, triton.next_power_of_2(max(1, width))) if at_once else 1
    together = max(1, (4096 if at_once else 1024) // (block * entries))
    sizes = {"WIDTH": width, "ROWS": together, "ENTRIES": entries, "BLOCK": block}
    return sizes, (triton.cdiv(rows, together), triton.cdiv(features, block))


@triton.jit(do_not_specialize=["size", "rows"])  # type: ignore[untyped-decorator,unused-ignore]
def _gather_kernel(
    x: tl.tensor, index: tl.tensor, weight: tl.tensor, bias: tl.tensor, out: tl.tensor, p: tl.tensor, seed: tl.tensor,
    size: tl.tensor, rows: tl.tensor, features: tl.tensor, BIASES: tl.constexpr, ELU: tl.constexpr,
    DROPS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, ENTRIES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    feature = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_features = feature < features
    total = tl.zeros([ROWS, BLOCK], dtype=out.dtype.element_ty)
    if BIASES > 0:
        offset = bias + (row % BIASES)[:, None] * features + feature[None, :]
        total += tl.load(offset, mask=(row < rows)[:, None] & in_features[None, :], other=0.0)
    for start in range(0, WIDTH, ENTRIES):
        entry, there = entries_of(row, rows, start, WIDTH, ENTRIES)
        source = tl.load(index + entry, mask=there, other=-1).to(tl.int64)
        scale = tl.load(weight + entry, mask=there, other=0.0)
        used = (scale != 0.0) & (source >= 0) & (source < size)
        place = x + source[:, :, None] * features + feature[None, None, :]
        held = tl.load(place, mask=used[:, :, None] & in_features[None, None, :], other=0.0)
        total += tl.sum(scale[:, :, None] * held, axis=1)
    if ELU:
        total = tl.where(total > 0.0, total, expm1(total))
    if DROPS:
        scale = dropout_scale(row, feature, features, p, seed).to(total.dtype)
        total = tl.where(scale > 0.0, total * scale, 0.0)
    to = out + row[:, None] * features + feature[None, :]
    tl.store(to, total, mask=(row < rows)[:, None] & in_features[None, :])


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def expm1(x: tl.tensor) -> tl.tensor:
    """e^x - 1 in single precision for x <= 0, as on the CPU."""
    x = tl.where(x == x, tl.minimum(tl.maximum(x, -87.0), 0.0), x)
    n = tl.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * 0.693359375) + n * 2.12194440e-4
    q = 1 / 24 + r * (1 / 120 + r * (1 / 720))
    q = r + r * r * (0.5 + r * (1 / 6 + r * q))
    power = ((n.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)
    return power * q + (power - 1.0)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def dropout_scale(row: tl.tensor, feature: tl.tensor, features: tl.tensor, p: tl.tensor, seed: tl.tensor) -> tl.tensor:
    """What dropout multiplies some entries of [rows, features] by."""
    return kept_scale(row[:, None] * features + feature[None, :], tl.load(seed), tl.load(p))


@triton.jit(do_not_specialize=["size", "rows"])  # type: ignore[untyped-decorator,unused-ignore]
def _scatter_kernel(
    grad: tl.tensor, index: tl.tensor, weight: tl.tensor, out: tl.tensor, size: tl.tensor, rows: tl.tensor,
    features: tl.tensor, WIDTH: tl.constexpr, ROWS: tl.constexpr, ENTRIES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    feature = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_features = feature < features
    held = tl.load(
        grad + row[:, None] * features + feature[None, :], mask=(row < rows)[:, None] & in_features[None, :], other=0.0
    )
    for start in range(0, WIDTH, ENTRIES):
        entry, there = entries_of(row, rows, start, WIDTH, ENTRIES)
        target = tl.load(index + entry, mask=there, other=-1).to(tl.int64)
        scale = tl.load(weight + entry, mask=there, other=0.0)
        used = (scale != 0.0) & (target >= 0) & (target < size)
        to = out + target[:, :, None] * features + feature[None, None, :]
        mask = used[:, :, None] & in_features[None, None, :]
        tl.atomic_add(to, scale[:, :, None] * held[:, None, :], mask=mask, sem="relaxed")


@triton.jit(do_not_specialize=["size", "rows"])  # type: ignore[untyped-decorator,unused-ignore]
def _dot_kernel(
    grad: tl.tensor, x: tl.tensor, index: tl.tensor, out: tl.tensor, size: tl.tensor, rows: tl.tensor,
    features: tl.tensor, WIDTH: tl.constexpr, ROWS: tl.constexpr, ENTRIES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    for start in range(0, WIDTH, ENTRIES):
        entry, there = entries_of(row, rows, start, WIDTH, ENTRIES)
        source = tl.load(index + entry, mask=there, other=-1).to(tl.int64)
        used = (source >= 0) & (source < size)
        total = tl.zeros([ROWS, ENTRIES], dtype=out.dtype.element_ty)
        for first in range(0, features, BLOCK):
            feature = first + tl.arange(0, BLOCK)
            in_features = feature < features
            mask = (row < rows)[:, None] & in_features[None, :]
            held = tl.load(grad + row[:, None] * features + feature[None, :], mask=mask, other=0.0)
            place = x + source[:, :, None] * features + feature[None, None, :]
            gathered = tl.load(place, mask=used[:, :, None] & in_features[None, None, :], other=0.0)
            total += tl.sum(held[:, None, :] * gathered, axis=2)
        tl.store(out + entry, total, mask=there)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def entries_of(
    row: tl.tensor, rows: tl.tensor, start: tl.tensor, WIDTH: tl.constexpr, ENTRIES: tl.constexpr
) -> tl.tensor:
    """Places of some entries of every row, and whether they are there."""
    place = start + tl.arange(0, ENTRIES)
    return row[:, None] * WIDTH + place[None, :], (row < rows)[:, None] & (place < WIDTH)[None, :]
