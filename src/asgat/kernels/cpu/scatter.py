"""Weighted rows added to where they belong: the transposed product without a transposed pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from asgat.kernels.cpu.jit import FUSED, compiled, num_threads, use_threads

Array = np.ndarray[Any, Any]

LANES = 16  # columns in a cache line of float32: no two threads write to one line
NO_BOUNDS = np.empty(0, np.int64)


def scatter_rows(bounds: Array, width: int, index: Array, weight: Array, dense: Array, out: Array) -> None:
    """out[index[e]] += weight[e] · dense[r] for the entries e of every row r: ``width`` of them, or, if that is 0, those
    between bounds[r] and bounds[r + 1]. O(entries · features), nothing held.

    Pays where ``out`` fits in the cache. Threads share the columns, so that each sum has one order however many
    threads there are; narrow features leave some of them idle.
    """
    strips = min(num_threads(index.shape[0] * dense.shape[1]), -(-dense.shape[1] // LANES))
    if strips <= 1:
        _scatter(bounds, width, index, weight, dense, out, 0, dense.shape[1])
    else:
        with use_threads(strips):
            _scatter_strips(bounds, width, index, weight, dense, out, strips)


@compiled(FUSED)
def _scatter(
    bounds: Array, width: int, index: Array, weight: Array, dense: Array, out: Array, left: int, right: int
) -> None:
    for row in range(dense.shape[0]):
        begin = row * width if width > 0 else bounds[row]
        end = begin + width if width > 0 else bounds[row + 1]
        for e in range(begin, end):
            scale = weight[e]
            if scale != 0:
                target = index[e]
                for f in range(left, right):
                    out[target, f] += scale * dense[row, f]


@compiled(FUSED, parallel=True)
def _scatter_strips(
    bounds: Array, width: int, index: Array, weight: Array, dense: Array, out: Array, strips: int
) -> None:
    lines = (dense.shape[1] + LANES - 1) // LANES
    for strip in prange(strips):
        left = lines * strip // strips * LANES
        right = min(lines * (strip + 1) // strips * LANES, dense.shape[1])
        _scatter(bounds, width, index, weight, dense, out, left, right)
