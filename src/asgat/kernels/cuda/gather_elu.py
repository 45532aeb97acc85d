"""CUDA kernels of :func:`asgat.kernels.gather_elu`."""

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

from asgat.kernels.cuda.gather_sum import (
    dropout_scale,
    entries_of,
    gather_sum,
    gather_sum_grad_weight,
    gather_sum_grad_x,
    tiles,
)

JOINED = True
ROWS = 16  # of one bias that a program adds
BLOCK = 256  # features of a program
PARTIAL = 32  # partial sums of a bias


def gather_elu(
    x: Tensor, index: Tensor, weight: Tensor, bias: Tensor | None, p: Tensor | None, seed: Tensor | None
) -> Tensor:
    return gather_sum(x, index, weight, bias, True, p, seed)


def gather_elu_grad(
    grad: Tensor, out: Tensor, x: Tensor, index: Tensor, weight: Tensor, p: Tensor | None, seed: Tensor | None,
    bias_shape: torch.Size | None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """Gradients to x, weight and bias."""
    if JOINED and not torch.are_deterministic_algorithms_enabled() and out.numel() and index.numel() and x.numel():
        return _all_at_once(grad, out, x, index, weight, p, seed, bias_shape)
    to_sums, to_bias = _to_sums(grad, out, p, seed, bias_shape)
    to_x = gather_sum_grad_x(to_sums, index, weight, x.size(0))
    return to_x, gather_sum_grad_weight(to_sums, x, index), to_bias


def _all_at_once(
    grad: Tensor, out: Tensor, x: Tensor, index: Tensor, weight: Tensor, p: Tensor | None, seed: Tensor | None,
    bias_shape: torch.Size | None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    to_x, to_weight = torch.zeros_like(x), torch.empty_like(weight)
    sizes, grid = tiles(out.size(0), out.size(1), index.size(1))
    runs = 1 if p is None else p.numel()
    biases = 0 if bias_shape is None else bias_shape[-2]
    runs = runs if bias_shape is None else max(runs, bias_shape[:-2].numel())
    partial = x.new_zeros(PARTIAL if biases else 0, runs * biases, x.size(1))
    with torch.cuda.device(grad.get_device()):
        _all_kernel[grid[:1]](
            grad, out, x, index, weight, to_x, to_weight, partial, x if p is None else p,
            index if seed is None else seed, x.size(0), *out.shape, out.size(0) // runs, runs,
            BIASES=biases, PARTIAL=PARTIAL, DROPS=p is not None, **sizes,
        )  # fmt: skip
    return to_x, to_weight, None if bias_shape is None else partial.sum(dim=0).view(bias_shape)


def _to_sums(
    grad: Tensor, out: Tensor, p: Tensor | None, seed: Tensor | None, bias_shape: torch.Size | None
) -> tuple[Tensor, Tensor | None]:
    """Gradients to the sums, and their sums over the rows of each bias."""
    to_sums = torch.empty_like(out)
    runs = 1 if p is None else p.numel()
    biases = 1 if bias_shape is None else bias_shape[-2]
    runs = runs if bias_shape is None else max(runs, bias_shape[:-2].numel())
    nodes, columns = out.size(0) // max(1, runs * biases), biases * out.size(1)
    blocks = triton.cdiv(nodes, ROWS)
    partial = out.new_empty(runs, blocks, columns)
    if out.numel() == 0:
        return to_sums, None if bias_shape is None else grad.new_zeros(bias_shape)
    with torch.cuda.device(grad.get_device()):
        _unit_kernel[triton.cdiv(columns, BLOCK), blocks, runs](
            grad, out, to_sums, partial, out if p is None else p, out if seed is None else seed, nodes, columns,
            DROPS=p is not None, ROWS=ROWS, BLOCK=BLOCK,
        )  # fmt: skip
    return to_sums, None if bias_shape is None else partial.sum(dim=1).view(bias_shape)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _through_unit(grad: tl.tensor, out: tl.tensor, scale: tl.tensor) -> tl.tensor:
    """The gradient before ELU and dropout, which kept an entry if its scale is not 0."""
    made = tl.where(scale > 0.0, out / scale, 0.0)
    grad = tl.where(scale > 0.0, grad * scale, 0.0)
    return tl.where(made > 0.0, grad, grad * (made + 1.0))


@triton.jit(do_not_specialize=["nodes"])  # type: ignore[untyped-decorator,unused-ignore]
def _unit_kernel(
    grad: tl.tensor, out: tl.tensor, to_sums: tl.tensor, partial: tl.tensor, p: tl.tensor, seed: tl.tensor,
    nodes: tl.tensor, columns: tl.tensor, DROPS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """One program passes a block of nodes and columns of one run back through ELU and dropout, and adds them up."""
    run = tl.program_id(2).to(tl.int64)
    node = run * nodes + tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    within = (node < (run + 1) * nodes)[:, None] & (column < columns)[None, :]
    place = node[:, None] * columns + column[None, :]
    held = tl.load(grad + place, mask=within, other=0.0)
    made = tl.load(out + place, mask=within, other=0.0)
    if DROPS:
        scale = dropout_scale(node, (run + 1) * nodes, column, columns, nodes, p, seed).to(held.dtype)
    else:
        scale = tl.full([ROWS, BLOCK], 1.0, dtype=held.dtype)
    held = _through_unit(held, made, scale)
    tl.store(to_sums + place, held, mask=within)
    to = partial + (run * tl.num_programs(1) + tl.program_id(1)) * columns + column
    tl.store(to, tl.sum(held, axis=0), mask=column < columns)


@triton.jit(do_not_specialize=["size", "rows", "rows_per_run", "runs"])  # type: ignore[untyped-decorator,unused-ignore]
def _all_kernel(
    grad: tl.tensor, out: tl.tensor, x: tl.tensor, index: tl.tensor, weight: tl.tensor, to_x: tl.tensor,
    to_weight: tl.tensor, partial: tl.tensor, p: tl.tensor, seed: tl.tensor, size: tl.tensor, rows: tl.tensor,
    features: tl.tensor, rows_per_run: tl.tensor, runs: tl.tensor, BIASES: tl.constexpr, PARTIAL: tl.constexpr,
    DROPS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, ENTRIES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """One program passes a few rows back through ELU and dropout and on to everything that was summed."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    for start in range(0, WIDTH, ENTRIES):
        entry, there = entries_of(row, rows, start, WIDTH, ENTRIES)
        source = tl.load(index + entry, mask=there, other=-1).to(tl.int64)
        share = tl.load(weight + entry, mask=there, other=0.0)
        used = (source >= 0) & (source < size)
        total = tl.zeros([ROWS, ENTRIES], dtype=to_weight.dtype.element_ty)
        for first in range(0, features, BLOCK):
            feature = first + tl.arange(0, BLOCK)
            in_features = feature < features
            within = (row < rows)[:, None] & in_features[None, :]
            place = row[:, None] * features + feature[None, :]
            held = tl.load(grad + place, mask=within, other=0.0)
            made = tl.load(out + place, mask=within, other=0.0)
            if DROPS:
                scale = dropout_scale(row, rows, feature, features, rows_per_run, p, seed).to(held.dtype)
            else:
                scale = tl.full([ROWS, BLOCK], 1.0, dtype=held.dtype)
            held = _through_unit(held, made, scale)
            if BIASES > 0:  # noqa: SIM102 (known at compile time)
                if start == 0:
                    part = row // BIASES % PARTIAL
                    own = (part * runs + row // rows_per_run) * BIASES + row % BIASES
                    to = partial + own[:, None] * features + feature[None, :]
                    tl.atomic_add(to, held, mask=within, sem="relaxed")
            at = source[:, :, None] * features + feature[None, None, :]
            mask = used[:, :, None] & in_features[None, None, :]
            gathered = tl.load(x + at, mask=mask, other=0.0)
            total += tl.sum(held[:, None, :] * gathered, axis=2)
            mask = mask & (share != 0.0)[:, :, None]
            tl.atomic_add(to_x + at, share[:, :, None] * held[:, None, :], mask=mask, sem="relaxed")
        tl.store(to_weight + entry, total, mask=there)
