"""CPU kernel of :func:`asgat.kernels.dropout`."""

from typing import Any

import numpy as np
from numba import prange
from torch import Tensor

from asgat.kernels.cpu.jit import FUSED, compiled, in_blocks

Array = np.ndarray[Any, Any]


def dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    out = x.new_empty(x.numel())
    in_blocks(8 * out.numel(), out.numel(), _drop, _drop_blocks, x.numpy(), out.numpy(), p, seed.item())
    return out


@compiled(FUSED)
def _mix(word: Any) -> Any:
    """A 32-bit hash in which every bit of the input changes about half of the output's. Numba computes with 64-bit
    integers, hence the many types."""
    word = np.uint32(word ^ (word >> np.uint32(16)))
    word = np.uint32(word * np.uint32(0x7FEB352D))
    word = np.uint32(word ^ (word >> np.uint32(15)))
    word = np.uint32(word * np.uint32(0x846CA68B))
    return np.uint32(word ^ (word >> np.uint32(16)))


@compiled(FUSED)
def _drop(x: Array, out: Array, p: float, seed: int, start: int, stop: int) -> None:
    scale, zero = out.dtype.type(1.0 / (1.0 - p)), out.dtype.type(0)
    limit = np.uint32(min(p * 2.0**32, 2.0**32 - 1))
    low, high = np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)
    begin = start
    while begin < stop:  # once for every 2^32 entries, so that the inner loop has 32-bit integers and is vectorised
        upper = begin >> 32
        end = min(stop, (upper + 1) << 32)
        first, second = np.uint32(begin), np.uint32(high + np.uint32(upper))
        source, target = x[begin:end], out[begin:end]
        for i in range(end - begin):
            # Twice, so that no two seeds give shifted or permuted masks; beyond 2^32 entries the second half differs.
            word = _mix(np.uint32(_mix(np.uint32(np.uint32(first + np.uint32(i)) ^ low)) + second))
            target[i] = source[i] * scale if word >= limit else zero
        begin = end


@compiled(FUSED, parallel=True)
def _drop_blocks(x: Array, out: Array, p: float, seed: int, blocks: int) -> None:
    size = x.size
    for block in prange(blocks):
        _drop(x, out, p, seed, size * block // blocks, size * (block + 1) // blocks)
