"""CPU kernels of :func:`asgat.kernels.attention_sum.attention_sum`: every head a few rows at a time."""

import math
from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor

from asgat.kernels.cpu.gather_sum import gather_sum, gather_sum_grad_x
from asgat.kernels.cpu.jit import FUSED, RELAXED, SERIAL_WORK, compiled, in_blocks, view

Array = np.ndarray[Any, Any]

ROWS = 64  # go through softmax, dropout and sums at once, so that their weights stay in the first-level cache
SCATTERED = 1 << 22  # bytes of a gradient to x that is written to at random


def attention_sum(
    score: Tensor, index: Tensor, x: Tensor, bias: Tensor | None, p: float, seed: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The output, the weights, and the weights under dropout by rows, [N, H, K]. Sums are those of
    :func:`asgat.kernels.cpu.gather_sum.gather_sum`."""
    heads, rows, size = score.shape
    weight = torch.empty(score.shape, dtype=score.dtype)
    kept = torch.empty(rows, heads, size, dtype=score.dtype)
    drawn = (0.0, 0) if seed is None else (p, seed.item())
    in_blocks(16 * score.numel(), rows, _weigh_rows, _weigh_blocks, view(score), *drawn, weight.numpy(), kept.numpy())
    out = gather_sum(x, index.transpose(0, 1).reshape(-1, size), kept.view(-1, size), bias)
    return out.view(rows, heads, -1), weight, kept


def attention_sum_grad(
    grad: Tensor, index: Tensor, x: Tensor, weight: Tensor, kept: Tensor, needs_x: bool
) -> tuple[Tensor, Tensor | None]:
    """Gradients to the scores and to x."""
    heads, rows, size = weight.shape
    work = x.size(1) * weight.numel()
    scatter = needs_x and work < SERIAL_WORK and x.element_size() * x.numel() <= SCATTERED
    to_score, grad, by_row = torch.empty(weight.shape, dtype=weight.dtype), grad.contiguous(), index.transpose(0, 1)
    to_x = torch.zeros(x.shape if scatter else (0, 0), dtype=x.dtype)
    arguments = view(grad), view(by_row), view(x), view(weight), kept.numpy(), to_score.numpy(), to_x.numpy()
    if scatter:
        _grad_rows(*arguments, 0, rows)
    else:
        in_blocks(work, rows, _grad_rows, _grad_blocks, *arguments)
    if not needs_x or scatter:
        return to_score, to_x if needs_x else None
    return to_score, gather_sum_grad_x(
        grad.view(rows * heads, -1), by_row.reshape(-1, size), kept.view(-1, size), x.size(0)
    )


@compiled(FUSED)
def _exp(x: Any) -> Any:
    """e^x in single precision for x <= 0, relative error 2e-7: x = n ln 2 + r, and a polynomial of r. Plain arithmetic
    is vectorised; the library's function is not."""
    bounded = max(x, np.float32(-87.0))
    n = np.floor(bounded * np.float32(1.4426950408889634) + np.float32(0.5))
    r = (bounded - n * np.float32(0.693359375)) + n * np.float32(2.12194440e-4)
    p = np.float32(1 / 120) + r * np.float32(1 / 720)
    p = np.float32(1 / 6) + r * (np.float32(1 / 24) + r * p)
    p = np.float32(1.0) + r * (np.float32(1.0) + r * (np.float32(0.5) + r * p))
    power = np.uint32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return p * power if x >= np.float32(-87.0) else np.float32(0.0)


@compiled(FUSED)
def _softmax(score: Array, out: Array) -> None:
    rows, size = score.shape
    for row in range(rows):
        largest = score[row, 0]
        for j in range(1, size):
            largest = max(largest, score[row, j])
        for j in range(size):
            out[row, j] = score[row, j] - largest
    flat = out.reshape(-1)
    if out.itemsize == 4:
        for i in range(flat.size):
            flat[i] = _exp(np.float32(flat[i]))
    else:
        for i in range(flat.size):
            flat[i] = math.exp(flat[i])
    for row in range(rows):
        total = out.dtype.type(0)
        for j in range(size):
            total += out[row, j]
        for j in range(size):
            out[row, j] /= total


@compiled(FUSED)
def softmax(score: Array, out: Array, start: int, stop: int) -> None:
    for begin in range(start, stop, ROWS):
        end = min(begin + ROWS, stop)
        _softmax(score[begin:end], out[begin:end])


@compiled(FUSED, parallel=True)
def softmax_blocks(score: Array, out: Array, blocks: int) -> None:
    rows = score.shape[0]
    for block in prange(blocks):
        softmax(score, out, rows * block // blocks, rows * (block + 1) // blocks)


@compiled(FUSED)
def _mix(word: Any) -> Any:
    """The hash of dropout.py, where it is not called from: compiled code calls functions of its own file only."""
    word = np.uint32(word ^ (word >> np.uint32(16)))
    word = np.uint32(word * np.uint32(0x7FEB352D))
    word = np.uint32(word ^ (word >> np.uint32(15)))
    word = np.uint32(word * np.uint32(0x846CA68B))
    return np.uint32(word ^ (word >> np.uint32(16)))


@compiled(FUSED)
def _factors(p: float, seed: int, begin: int, out: Array) -> None:
    """What dropout multiplies the weights from place ``begin`` on by: 0 or a scale; 1 without dropout."""
    if p == 0.0:
        out[:] = 1
        return
    scale, zero = out.dtype.type(1.0 / (1.0 - p)), out.dtype.type(0)
    limit = np.uint32(min(p * 2.0**32, 2.0**32 - 1))
    low, high = np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)
    first, done = begin, 0
    while done < out.size:  # in parts without a multiple of 2^32 inside
        upper = first >> 32
        count = min(out.size - done, ((upper + 1) << 32) - first)
        start, second, target = np.uint32(first), np.uint32(high + np.uint32(upper)), out[done : done + count]
        for i in range(count):
            word = _mix(np.uint32(_mix(np.uint32(np.uint32(start + np.uint32(i)) ^ low)) + second))
            target[i] = scale if word >= limit else zero
        first, done = first + count, done + count


@compiled(FUSED)
def _weigh_rows(score: Array, p: float, seed: int, weight: Array, kept: Array, start: int, stop: int) -> None:
    heads, rows, size = score.shape
    held = np.empty(ROWS * size, kept.dtype)
    for head in range(heads):
        for begin in range(start, stop, ROWS):
            end = min(begin + ROWS, stop)
            own = weight[head, begin:end]
            _softmax(score[head, begin:end], own)
            factor = held[: own.size]
            _factors(p, seed, (head * rows + begin) * size, factor)
            for row in range(begin, end):
                for j in range(size):
                    kept[row, head, j] = factor[(row - begin) * size + j] * weight[head, row, j]


@compiled(FUSED, parallel=True)
def _weigh_blocks(score: Array, p: float, seed: int, weight: Array, kept: Array, blocks: int) -> None:
    rows = score.shape[1]
    for block in prange(blocks):
        _weigh_rows(score, p, seed, weight, kept, rows * block // blocks, rows * (block + 1) // blocks)


@compiled(RELAXED)
def _grad_rows(
    grad: Array, index: Array, x: Array, weight: Array, kept: Array, to_score: Array, to_x: Array, start: int,
    stop: int,
) -> None:  # fmt: skip
    """A weight that dropout set to 0 has no gradient of its own, and one that is 0 itself gives none to its score."""
    heads, _, size = weight.shape
    width = grad.shape[2]
    for row in range(start, stop):
        for head in range(heads):
            mean = grad.dtype.type(0)
            for j in range(size):
                source, scale = index[row, head, j], kept[row, head, j]
                total = grad.dtype.type(0)
                if to_x.shape[0]:
                    for f in range(width):
                        to_x[source, f] += scale * grad[row, head, f]
                for f in range(width):
                    total += grad[row, head, f] * x[source, f]
                total *= scale
                to_score[head, row, j] = total
                mean += total
            for j in range(size):
                to_score[head, row, j] -= weight[head, row, j] * mean


@compiled(RELAXED, parallel=True)
def _grad_blocks(
    grad: Array, index: Array, x: Array, weight: Array, kept: Array, to_score: Array, to_x: Array, blocks: int
) -> None:
    rows = weight.shape[1]
    for block in prange(blocks):
        _grad_rows(grad, index, x, weight, kept, to_score, to_x, rows * block // blocks, rows * (block + 1) // blocks)
