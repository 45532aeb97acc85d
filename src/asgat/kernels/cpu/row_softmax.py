"""CPU kernels of :func:`asgat.kernels.row_softmax`."""

import math
from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor

from asgat.kernels.cpu.jit import FUSED, compiled, in_blocks, view

Array = np.ndarray[Any, Any]

ROWS = 64  # go through the three passes at once, so that they stay in the first-level cache


def row_softmax(score: Tensor) -> Tensor:
    out = torch.empty(score.shape, dtype=score.dtype)
    if not out.numel():
        return out
    rows = math.prod(score.shape[:-1])
    shape = rows, score.size(-1)
    arguments = view(score).reshape(shape), out.view(shape).numpy()
    in_blocks(8 * score.numel(), rows, _softmax, _softmax_blocks, *arguments)
    return out


def row_softmax_grad(weight: Tensor, grad: Tensor) -> Tensor:
    out = torch.empty(weight.shape, dtype=weight.dtype)
    rows = math.prod(weight.shape[:-1])
    shape = rows, weight.size(-1)
    arguments = view(weight).reshape(shape), view(grad).reshape(shape), out.view(shape).numpy()
    in_blocks(2 * weight.numel(), rows, _gradient, _gradient_blocks, *arguments)
    return out


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
def _softmax(score: Array, out: Array, start: int, stop: int) -> None:
    size = score.shape[1]
    for begin in range(start, stop, ROWS):
        end = min(begin + ROWS, stop)
        for row in range(begin, end):
            largest = score[row, 0]
            for j in range(1, size):
                largest = max(largest, score[row, j])
            for j in range(size):
                out[row, j] = score[row, j] - largest
        flat = out[begin:end].reshape(-1)
        if out.itemsize == 4:
            for i in range(flat.size):
                flat[i] = _exp(np.float32(flat[i]))
        else:
            for i in range(flat.size):
                flat[i] = math.exp(flat[i])
        for row in range(begin, end):
            total = out.dtype.type(0)
            for j in range(size):
                total += out[row, j]
            for j in range(size):
                out[row, j] /= total


@compiled(FUSED, parallel=True)
def _softmax_blocks(score: Array, out: Array, blocks: int) -> None:
    rows = score.shape[0]
    for block in prange(blocks):
        _softmax(score, out, rows * block // blocks, rows * (block + 1) // blocks)


@compiled(FUSED)
def _gradient(weight: Array, grad: Array, out: Array, start: int, stop: int) -> None:
    for row in range(start, stop):
        mean = out.dtype.type(0)
        for j in range(weight.shape[1]):
            mean += weight[row, j] * grad[row, j]
        for j in range(weight.shape[1]):
            out[row, j] = weight[row, j] * (grad[row, j] - mean)


@compiled(FUSED, parallel=True)
def _gradient_blocks(weight: Array, grad: Array, out: Array, blocks: int) -> None:
    rows = weight.shape[0]
    for block in prange(blocks):
        _gradient(weight, grad, out, rows * block // blocks, rows * (block + 1) // blocks)
