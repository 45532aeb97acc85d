"""CPU kernels of :func:`asgat.kernels.gather_sum`."""

from typing import Any

import numpy as np
from numba import prange
from torch import Tensor

from asgat.kernels.cpu.csr_matmul import csr_matmul, even_bounds
from asgat.kernels.cpu.jit import RELAXED, compiled, in_blocks, num_threads, use_threads, view

Array = np.ndarray[Any, Any]
BUCKET_BYTES = 1 << 20  # of the output, within the cache of a core


def gather_sum(x: Tensor, index: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if index.numel() == 0 or x.size(1) == 0:
        out = x.new_zeros(index.size(0), x.size(1))
    else:
        out = csr_matmul(
            even_bounds(index.size(0), index.size(1), index.dtype), index.reshape(-1), weight.reshape(-1), x
        )
    if bias is not None and out.numel():
        out.view(-1, bias.numel()).add_(bias.detach().reshape(-1))
    return out


def gather_sum_grad_x(grad: Tensor, index: Tensor, weight: Tensor, size: int) -> Tensor:
    """Adds row by row; PyTorch's gradient is ten times slower."""
    out = grad.new_zeros(size, grad.size(1))
    threads = num_threads(index.numel() * grad.size(1))
    arguments = view(grad), view(index), view(weight), out.numpy()
    fitting = BUCKET_BYTES // max(1, out.element_size() * grad.size(1))
    if threads == 1 and size <= 4 * fitting:
        _add_rows(*arguments)
    else:
        width = min(fitting, size // (4 * threads))  # with one bucket each, threads would wait for the fullest
        with use_threads(threads):
            _add_buckets(*arguments, threads, max(width, 1).bit_length() - 1)
    return out


def gather_sum_grad_weight(grad: Tensor, x: Tensor, index: Tensor) -> Tensor:
    out = x.new_empty(index.shape)
    arguments = view(grad), view(x), view(index), out.numpy()
    in_blocks(index.numel() * x.size(1), index.size(0), _dot_rows, _dot_blocks, *arguments)
    return out


# A large output is processed in buckets that fit a core's cache: entries are sorted into the buckets of their targets,
# in their order, and then added bucket by bucket. Every sum has the order of the entries.


@compiled(RELAXED)
def _add_rows(grad: Array, index: Array, weight: Array, out: Array) -> None:
    """Entries of weight 0 are added as well: under dropout a test would be predicted wrong half of the time."""
    for row in range(index.shape[0]):
        for j in range(index.shape[1]):
            scale, target = weight[row, j], index[row, j]
            for f in range(grad.shape[1]):
                out[target, f] += scale * grad[row, f]


@compiled(RELAXED)
def _count(index: Array, weight: Array, start: int, stop: int, shift: int, count: Array) -> None:
    for row in range(start, stop):
        for j in range(index.shape[1]):
            if weight[row, j] != 0:
                count[index[row, j] >> shift] += 1


@compiled(RELAXED)
def _deal(
    index: Array, weight: Array, start: int, stop: int, shift: int, place: Array, target: Array, source: Array,
    scale: Array,
) -> None:  # fmt: skip
    for row in range(start, stop):
        for j in range(index.shape[1]):
            if weight[row, j] != 0:
                bucket = index[row, j] >> shift
                to = place[bucket]
                place[bucket] = to + 1
                target[to], source[to], scale[to] = index[row, j], row, weight[row, j]


@compiled(RELAXED, parallel=True)
def _add_buckets(grad: Array, index: Array, weight: Array, out: Array, blocks: int, shift: int) -> None:
    rows, buckets = index.shape[0], ((out.shape[0] - 1) >> shift) + 1
    place = np.zeros((blocks, buckets), np.int64)
    for block in prange(blocks):
        _count(index, weight, rows * block // blocks, rows * (block + 1) // blocks, shift, place[block])
    begin = np.zeros(buckets + 1, np.int64)
    for bucket in range(buckets):
        begin[bucket + 1] = begin[bucket]
        for block in range(blocks):
            here = place[block, bucket]
            place[block, bucket] = begin[bucket + 1]
            begin[bucket + 1] += here
    target, source = np.empty(begin[buckets], np.int32), np.empty(begin[buckets], np.int32)
    scale = np.empty(begin[buckets], weight.dtype)
    for block in prange(blocks):
        start, stop = rows * block // blocks, rows * (block + 1) // blocks
        _deal(index, weight, start, stop, shift, place[block], target, source, scale)
    for bucket in prange(buckets):
        for e in range(begin[bucket], begin[bucket + 1]):
            for f in range(grad.shape[1]):
                out[target[e], f] += scale[e] * grad[source[e], f]


@compiled(RELAXED)
def _dot_rows(grad: Array, x: Array, index: Array, out: Array, start: int, stop: int) -> None:
    for row in range(start, stop):
        for j in range(index.shape[1]):
            source = index[row, j]
            total = grad.dtype.type(0)
            for f in range(x.shape[1]):
                total += grad[row, f] * x[source, f]
            out[row, j] = total


@compiled(RELAXED, parallel=True)
def _dot_blocks(grad: Array, x: Array, index: Array, out: Array, blocks: int) -> None:
    rows = index.shape[0]
    for block in prange(blocks):
        _dot_rows(grad, x, index, out, rows * block // blocks, rows * (block + 1) // blocks)
