"""CPU kernels of :func:`asgat.kernels.row_softmax`."""

import math
from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor

from asgat.kernels.cpu.attention_sum import softmax, softmax_blocks
from asgat.kernels.cpu.jit import FUSED, compiled, in_blocks, view

Array = np.ndarray[Any, Any]


def row_softmax(score: Tensor) -> Tensor:
    out = torch.empty(score.shape, dtype=score.dtype)
    if not out.numel():
        return out
    rows = math.prod(score.shape[:-1])
    shape = rows, score.size(-1)
    arguments = view(score).reshape(shape), out.view(shape).numpy()
    in_blocks(8 * score.numel(), rows, softmax, softmax_blocks, *arguments)
    return out


def row_softmax_grad(weight: Tensor, grad: Tensor) -> Tensor:
    out = torch.empty(weight.shape, dtype=weight.dtype)
    rows = math.prod(weight.shape[:-1])
    shape = rows, weight.size(-1)
    arguments = view(weight).reshape(shape), view(grad).reshape(shape), out.view(shape).numpy()
    in_blocks(2 * weight.numel(), rows, _gradient, _gradient_blocks, *arguments)
    return out


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
