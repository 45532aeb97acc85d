"""CPU kernel of :func:`asgat.kernels.dropout`."""

from typing import Any

import numpy as np
from numba import prange
from torch import Tensor

from asgat.kernels.cpu.jit import FUSED, compiled, in_blocks

Array = np.ndarray[Any, Any]


def dropout_runs(x: Tensor, p: Tensor, seed: Tensor) -> Tensor:
    out = x.new_empty(p.numel(), x.size(1))
    arguments = x.numpy(), out.numpy(), p.numpy(), seed.numpy()
    in_blocks(8 * out.numel(), x.size(1), _drop_runs, _drop_blocks, *arguments)
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
def _drop(x: Array, out: Array, scale: Any, limit: Any, low: Any, high: Any, start: int, stop: int) -> None:
    zero = out.dtype.type(0)
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


@compiled(FUSED)
def _drop_runs(x: Array, out: Array, p: Array, seed: Array, start: int, stop: int) -> None:
    """Some entries of every run; a single row of x is shared by all runs."""
    for run in range(out.shape[0]):
        scale, limit = out.dtype.type(1.0 / (1.0 - p[run])), np.uint32(min(p[run] * 2.0**32, 2.0**32 - 1))
        low, high = np.uint32(seed[run] & 0xFFFFFFFF), np.uint32(seed[run] >> 32)
        _drop(x[run % x.shape[0]], out[run], scale, limit, low, high, start, stop)


@compiled(FUSED, parallel=True)
def _drop_blocks(x: Array, out: Array, p: Array, seed: Array, blocks: int) -> None:
    size = x.shape[1]
    for block in prange(blocks):
        _drop_runs(x, out, p, seed, size * block // blocks, size * (block + 1) // blocks)
