"""CPU kernels of :func:`asgat.kernels.gather_sum`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor

from asgat.kernels.cpu.csr_matmul import csr_matmul
from asgat.kernels.cpu.jit import RELAXED, compiled, num_threads, use_threads, view

Array = np.ndarray[Any, Any]


def gather_sum(x: Tensor, index: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if index.numel() == 0 or x.size(1) == 0:
        out = x.new_zeros(index.size(0), x.size(1))
    else:
        begin = torch.arange(0, index.numel() + 1, index.size(1), dtype=index.dtype)
        out = csr_matmul(begin, index.reshape(-1), weight.reshape(-1), x)
    if bias is not None and out.numel():
        out.view(-1, bias.numel()).add_(bias.detach().reshape(-1))
    return out


def gather_sum_grad_x(grad: Tensor, index: Tensor, weight: Tensor, size: int) -> Tensor:
    """A product with the transposed pattern: PyTorch's own gradient adds entry by entry, an order slower."""
    threads = num_threads(4 * index.numel())
    arguments = view(index), view(weight), size
    if threads == 1:
        transposed = _transpose(*arguments)
    else:
        with use_threads(threads):
            transposed = _transpose_blocks(*arguments, threads)
    indptr, source, value = map(torch.from_numpy, transposed)
    return csr_matmul(indptr, source, value, grad)


def gather_sum_grad_weight(grad: Tensor, x: Tensor, index: Tensor) -> Tensor:
    out = x.new_empty(index.shape)
    threads = num_threads(index.numel() * x.size(1))
    arguments = view(grad), view(x), view(index), out.numpy()
    if threads == 1:
        _dot_rows(*arguments, 0, index.size(0))
    else:
        with use_threads(threads):
            _dot_blocks(*arguments, threads)
    return out


# A stable counting sort of the entries of non-zero weight by their index. The order found is the same however many
# blocks of rows are counted and placed side by side.


@compiled(RELAXED)
def _count(index: Array, weight: Array, start: int, stop: int, count: Array) -> None:
    for row in range(start, stop):
        for j in range(index.shape[1]):
            if weight[row, j] != 0:
                count[index[row, j]] += 1


@compiled(RELAXED)
def _place(index: Array, weight: Array, start: int, stop: int, place: Array, source: Array, value: Array) -> None:
    for row in range(start, stop):
        for j in range(index.shape[1]):
            if weight[row, j] != 0:
                target = index[row, j]
                to = place[target]
                place[target] = to + 1
                source[to] = row
                value[to] = weight[row, j]


@compiled(RELAXED)
def _counts_to_places(count: Array) -> Array:
    """Turn counts [blocks, size] into the place of each block's first entry; the rows' bounds are returned."""
    blocks, size = count.shape
    indptr = np.empty(size + 1, np.int64)
    total = 0
    for target in range(size):
        indptr[target] = total
        for block in range(blocks):
            here = count[block, target]
            count[block, target] = total
            total += here
    indptr[size] = total
    return indptr


@compiled(RELAXED)
def _transpose(index: Array, weight: Array, size: int) -> tuple[Array, Array, Array]:
    place = np.zeros((1, size), np.int64)
    _count(index, weight, 0, index.shape[0], place[0])
    indptr = _counts_to_places(place)
    source = np.empty(indptr[size], np.int64)
    value = np.empty(indptr[size], weight.dtype)
    _place(index, weight, 0, index.shape[0], place[0], source, value)
    return indptr, source, value


@compiled(RELAXED, parallel=True)
def _transpose_blocks(index: Array, weight: Array, size: int, blocks: int) -> tuple[Array, Array, Array]:
    rows = index.shape[0]
    place = np.zeros((blocks, size), np.int64)
    for block in prange(blocks):
        _count(index, weight, rows * block // blocks, rows * (block + 1) // blocks, place[block])
    indptr = _counts_to_places(place)
    source = np.empty(indptr[size], np.int64)
    value = np.empty(indptr[size], weight.dtype)
    for block in prange(blocks):
        begin, end = rows * block // blocks, rows * (block + 1) // blocks
        _place(index, weight, begin, end, place[block], source, value)
    return indptr, source, value


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
