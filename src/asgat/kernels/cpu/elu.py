"""CPU kernels of :func:`asgat.kernels.elu.elu`."""

import math
from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor

from asgat.kernels.cpu.jit import FUSED, compiled, in_blocks, view

Array = np.ndarray[Any, Any]


def elu(x: Tensor) -> Tensor:
    out = torch.empty(x.shape, dtype=x.dtype)
    in_blocks(4 * out.numel(), out.numel(), _elu, _elu_blocks, view(x).reshape(-1), out.view(-1).numpy())
    return out


def elu_grad(out: Tensor, grad: Tensor) -> Tensor:
    to_x = torch.empty(out.shape, dtype=out.dtype)
    arguments = view(out).reshape(-1), view(grad).reshape(-1), to_x.view(-1).numpy()
    in_blocks(to_x.numel(), to_x.numel(), _gradient, _gradient_blocks, *arguments)
    return to_x


@compiled(FUSED)
def _expm1(x: Any) -> Any:
    """e^x - 1 in single precision for x <= 0, in plain arithmetic, which is vectorised: x = n ln 2 + r, a polynomial q
    of r for e^r - 1, and 2^n q + (2^n - 1), which is accurate near 0 as well."""
    bounded = max(min(x, np.float32(0.0)), np.float32(-87.0))
    n = np.floor(bounded * np.float32(1.4426950408889634) + np.float32(0.5))
    r = (bounded - n * np.float32(0.693359375)) + n * np.float32(2.12194440e-4)
    q = np.float32(1 / 24) + r * (np.float32(1 / 120) + r * np.float32(1 / 720))
    q = r + r * r * (np.float32(0.5) + r * (np.float32(1 / 6) + r * q))
    power = np.uint32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return power * q + (power - np.float32(1.0))


@compiled(FUSED)
def _elu(x: Array, out: Array, start: int, stop: int) -> None:
    source, target = x[start:stop], out[start:stop]
    if out.itemsize == 4:
        for i in range(stop - start):
            below = _expm1(np.float32(source[i]))
            target[i] = below if source[i] <= 0 else source[i]  # NaN stays
    else:
        for i in range(stop - start):
            target[i] = math.expm1(source[i]) if source[i] <= 0 else source[i]


@compiled(FUSED, parallel=True)
def _elu_blocks(x: Array, out: Array, blocks: int) -> None:
    for block in prange(blocks):
        _elu(x, out, x.size * block // blocks, x.size * (block + 1) // blocks)


@compiled(FUSED)
def _gradient(out: Array, grad: Array, to_x: Array, start: int, stop: int) -> None:
    """The derivative is e^x = out + 1 for x <= 0."""
    made, given, target = out[start:stop], grad[start:stop], to_x[start:stop]
    for i in range(stop - start):
        target[i] = given[i] * (made[i] + made.dtype.type(1)) if made[i] <= 0 else given[i]


@compiled(FUSED, parallel=True)
def _gradient_blocks(out: Array, grad: Array, to_x: Array, blocks: int) -> None:
    for block in prange(blocks):
        _gradient(out, grad, to_x, out.size * block // blocks, out.size * (block + 1) // blocks)
