"""CPU kernels of :func:`asgat.kernels.select_top`."""

from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from asgat.kernels.cpu.csr_matmul import csr_matmul, even_bounds
from asgat.kernels.cpu.jit import FUSED, NO_NAN, compiled, in_blocks, num_threads, use_threads, view

Array = np.ndarray[Any, Any]

CHUNK = 256  # entries scored at once: their values, orders × 256, stay in the first-level cache
TILE = 8  # entries transposed at once
GROUP = 16  # scores whose largest is remembered
SUMMED = 1 << 13  # rows whose gradients are summed at once
TRANSPOSED_BYTES = 1 << 28  # size of a table up to which its transpose is kept
FULL, HALF, BRAIN = 0, 1, 2  # how a value is stored: as it is, or as the 16 bits of a float16 or a bfloat16


def select_top(
    value: Tensor, indptr: Tensor, order: Any, widths: Any, counts: Any, coefficients: Tensor, k: int, hint: Tensor
) -> tuple[Tensor, Tensor]:
    """Rows are processed in order; the buckets (order, widths, counts) are for CUDA."""
    heads, rows = coefficients.size(0), indptr.numel() - 1
    position = torch.empty(heads, rows, k, dtype=hint.dtype)
    score = coefficients.new_empty(heads, rows, k)
    bounds = view(indptr)
    transposed = _transposed(value, indptr, bounds, coefficients.dtype, again=hint.numel() > 0)
    arguments = *_bits(value), transposed, bounds, view(coefficients), view(hint), position.numpy(), score.numpy()
    threads = num_threads(value.numel() * heads)
    if threads == 1:
        _select_rows(*arguments, 0, rows)
    else:
        # More blocks than threads, of about as many entries each: rows of equal length differ in insertions.
        ends = np.searchsorted(bounds, np.linspace(0, bounds[-1], 4 * threads + 1)[1:-1])
        with use_threads(threads):
            _select_blocks(*arguments, np.concatenate([[0], ends, [rows]]))
    return score, position


def nodes_at(nodes: Tensor, position: Tensor) -> Tensor:
    heads, rows, k = position.shape
    out = nodes.new_empty(rows, heads, k)  # so that aggregating, which goes row by row, copies nothing
    in_blocks(4 * out.numel(), rows, _nodes_at, _nodes_at_blocks, view(nodes), view(position), out.numpy())
    return out.transpose(0, 1)


def select_top_grad(value: Tensor, position: Tensor, grad: Tensor) -> Tensor:
    if value.dtype == grad.dtype == torch.float32 and value.numel():
        return _sum_rows(value, position, grad)
    heads, rows, _ = position.shape
    orders = value.size(1)
    # The number of partial sums depends on the rows alone, not on which thread is first: a run can be repeated.
    parts = max(1, min(64, rows // 64))
    partial = grad.new_zeros(parts, heads, orders)
    arguments = *_bits(value), view(position), view(grad), partial.numpy()
    in_blocks(grad.numel() * orders, parts, _grad_parts, _grad_blocks, *arguments)
    _fold(partial.numpy())
    return partial[0]


def _sum_rows(value: Tensor, position: Tensor, grad: Tensor) -> Tensor:
    """By PyTorch's bag kernel, which is faster than compiled loops: sums of every row and head, then those over rows.
    Some rows at a time, to save memory."""
    heads, rows, k = position.shape
    total = grad.new_zeros(heads, value.size(1))
    positions, grads = view(position), view(grad)
    for first in range(0, rows, SUMMED):
        count = min(SUMMED, rows - first)
        entry, scale = torch.empty(count, heads, k, dtype=torch.int64), grad.new_empty(count, heads, k)
        arguments = positions, grads, first, entry.numpy(), scale.numpy()
        in_blocks(4 * entry.numel(), count, _rows_first, _rows_first_blocks, *arguments)
        bounds = even_bounds(count * heads, k, torch.int64)
        sums = csr_matmul(bounds, entry.view(-1), scale.view(-1), value).view(count, heads, -1)
        _fold(sums.numpy())
        total += sums[0]
    return total


_kept: Any = WeakTensorKeyDictionary()


def _transposed(value: Tensor, indptr: Tensor, bounds: Array, dtype: torch.dtype, again: bool) -> Array:
    """A table with entries as columns, chunk by chunk of every row, made once if it is selected from again: transposing
    takes a quarter to a half of the time of a selection. Empty for a large table, which is transposed as it is read."""
    if not again or value.dtype != dtype or value.numel() * value.element_size() > TRANSPOSED_BYTES:
        return view(value.new_empty(0, dtype=dtype))
    found = _kept.get(value)
    if found is None or found[0] != value._version or found[1] is not indptr:
        transposed = np.empty(value.numel(), view(value).dtype)
        _transpose_rows(view(value), bounds, transposed)
        found = _kept[value] = value._version, indptr, transposed
    kept: Array = found[2]
    return kept


def _bits(value: Tensor) -> tuple[Array, int]:
    """Numba does not support 16-bit floats: they are passed as integers."""
    if value.dtype in (torch.float16, torch.bfloat16):
        half = HALF if value.dtype == torch.float16 else BRAIN
        return view(value.view(torch.int16)), half
    return view(value), FULL


@compiled(FUSED)
def _decode(stored: Any, half: int) -> Any:
    """One stored value as a float."""
    if half == FULL:
        return np.float64(stored)
    word = np.uint32(np.uint16(stored))
    if half == BRAIN:
        return np.float64(np.uint32(word << np.uint32(16)).view(np.float32))
    # Exponent and mantissa move into place, and the product corrects the exponent's offset, denormals included.
    magnitude = np.uint32((word & np.uint32(0x7FFF)) << np.uint32(13)).view(np.float32)
    if magnitude >= np.float32(2.0**-96):  # from infinity or NaN
        magnitude = np.float32(np.inf)
    sign = np.float32(-1.0) if word & np.uint32(0x8000) else np.float32(1.0)
    return np.float64(sign * magnitude * np.float32(2.0**112))


@compiled(FUSED)
def _transpose(stored: Array, begin: int, size: int, values: Array) -> None:
    """Entries become columns, a few at a time, which is twice as fast as one by one."""
    orders, i = values.shape[0], 0
    while i + TILE <= size:
        source, target = stored[begin + i : begin + i + TILE], values[:, i : i + TILE]  # indices that count from 0
        for p in range(orders):
            for j in range(TILE):
                target[p, j] = source[j, p]
        i += TILE
    while i < size:
        for p in range(orders):
            values[p, i] = stored[begin + i, p]
        i += 1


@compiled(FUSED)
def _transpose_rows(stored: Array, indptr: Array, transposed: Array) -> None:
    orders = stored.shape[1]
    for row in range(indptr.shape[0] - 1):
        for begin in range(indptr[row], indptr[row + 1], CHUNK):
            size = min(CHUNK, indptr[row + 1] - begin)
            chunk = transposed[begin * orders : (begin + size) * orders].reshape(orders, size)
            _transpose(stored, begin, size, chunk)


@compiled(FUSED)
def _score(values: Array, size: int, coefficients: Array, head: int, score: Array) -> None:
    """Four orders in one pass over the entries, so that the scores are read and written less often."""
    orders = coefficients.shape[1]
    for i in range(size):
        score[i] = coefficients[head, 0] * values[0, i]
    p = 1
    while p + 4 <= orders:
        c0, c1 = coefficients[head, p], coefficients[head, p + 1]
        c2, c3 = coefficients[head, p + 2], coefficients[head, p + 3]
        for i in range(size):
            low = c0 * values[p, i] + c1 * values[p + 1, i]
            score[i] += low + (c2 * values[p + 2, i] + c3 * values[p + 3, i])
        p += 4
    while p < orders:
        c0 = coefficients[head, p]
        for i in range(size):
            score[i] += c0 * values[p, i]
        p += 1


@compiled(FUSED)
def _clean(score: Array, size: int) -> int:
    """NaN becomes -∞, and so does the rest of the last group; returns the number of groups."""
    for i in range(size):
        if not score[i] > -np.inf:
            score[i] = -np.inf
    groups = (size + GROUP - 1) // GROUP
    for i in range(size, groups * GROUP):
        score[i] = -np.inf
    return groups


@compiled(NO_NAN)
def _largest(score: Array) -> Any:
    """Takes a slice because only a loop from 0 is vectorised: other indices might be negative."""
    largest = score[0]
    for i in range(score.shape[0]):
        largest = score[i] if score[i] > largest else largest
    return largest


@compiled(NO_NAN)
def _merge(score: Array, groups: int, begin: int, best_position: Array, best: Array, top: Array) -> None:
    """Move the largest score left, the leftmost among equals, into a row's best until none is above the k-th best.
    Searching groups by their largest score mispredicts few branches, on which an insertion sort spends its time. Only a
    larger score displaces another, so ties keep the lower position."""
    k = best.shape[0]
    for group in range(groups):
        top[group] = _largest(score[group * GROUP : (group + 1) * GROUP])
    place = 0
    while place < k:
        new = _largest(top[:groups])
        if new <= best[k - 1]:
            return
        group = 0
        while top[group] != new:
            group += 1
        i = group * GROUP
        while score[i] != new:
            i += 1
        while best[place] >= new:
            place += 1
        if best[place] > -np.inf:
            for j in range(k - 1, place, -1):
                best[j] = best[j - 1]
                best_position[j] = best_position[j - 1]
        best[place] = new
        best_position[place] = begin + i
        place += 1
        score[i] = -np.inf
        top[group] = _largest(score[group * GROUP : (group + 1) * GROUP])


@compiled(NO_NAN)
def _before(new: Any, new_position: int, old: Any, old_position: int) -> bool:
    return new > old or (new == old and new_position < old_position)


@compiled(NO_NAN)
def _insert(new: Any, new_position: int, count: int, best_position: Array, best: Array) -> None:
    """Insert an entry in order among the first ``count`` of a row's best; the last of k is dropped."""
    place = min(count, best.shape[0] - 1)
    while place > 0 and _before(new, new_position, best[place - 1], best_position[place - 1]):
        best[place] = best[place - 1]
        best_position[place] = best_position[place - 1]
        place -= 1
    best[place] = new
    best_position[place] = new_position


@compiled(FUSED)
def _refine(score: Array, begin: int, hint: Array, best_position: Array, best: Array) -> bool:
    """Sort the entries of the hint, then insert all that score higher: little work where scores have changed little,
    and the same result whatever the hint. False where the hint has less than k entries with a score."""
    k, lowest = best.shape[0], best.dtype.type(np.inf)
    for j in range(k):
        if hint[j] < 0:
            return False
        new = score[hint[j] - begin]
        if new < lowest:
            best[j], best_position[j] = new, hint[j]
            lowest = new
        elif new >= lowest:
            _insert(new, hint[j], j, best_position, best)
            lowest = best[j]
        else:  # not a number
            return False
    if lowest == -np.inf:
        return False
    reaching = 0
    for i in range(score.shape[0]):
        reaching += score[i] >= lowest
    if reaching == k:
        return True
    for j in range(k):
        score[hint[j] - begin] = -np.inf
    for i in range(score.shape[0]):
        if score[i] >= best[k - 1] and _before(score[i], begin + i, best[k - 1], best_position[k - 1]):
            _insert(score[i], begin + i, k, best_position, best)
    return True


@compiled(FUSED)
def _select_rows(
    stored: Array, half: int, transposed: Array, indptr: Array, coefficients: Array, hint: Array, position: Array,
    score: Array, start: int, stop: int,
) -> None:  # fmt: skip
    heads, orders = coefficients.shape
    values = np.empty((orders, CHUNK), coefficients.dtype)
    scores = np.empty(CHUNK, coefficients.dtype)
    top = np.empty(CHUNK // GROUP, coefficients.dtype)
    for row in range(start, stop):
        hinted = hint.shape[0] > 0 and 0 < indptr[row + 1] - indptr[row] <= CHUNK
        if not hinted:
            position[:, row], score[:, row] = -1, -np.inf
        for begin in range(indptr[row], indptr[row + 1], CHUNK):
            size = min(CHUNK, indptr[row + 1] - begin)
            chunk = values
            if transposed.shape[0]:
                chunk = transposed[begin * orders : (begin + size) * orders].reshape(orders, size)
            elif half == FULL:  # tested here: inside the loop the test would cost more than the copy
                _transpose(stored, begin, size, values)
            else:
                for i in range(size):
                    for p in range(orders):
                        values[p, i] = _decode(stored[begin + i, p], half)
            for head in range(heads):
                _score(chunk, size, coefficients, head, scores)
                if hinted:
                    if _refine(scores[:size], begin, hint[head, row], position[head, row], score[head, row]):
                        continue
                    position[head, row], score[head, row] = -1, -np.inf
                groups = _clean(scores, size)
                _merge(scores, groups, begin, position[head, row], score[head, row], top)


@compiled(FUSED, parallel=True)
def _select_blocks(
    stored: Array, half: int, transposed: Array, indptr: Array, coefficients: Array, hint: Array, position: Array,
    score: Array, bounds: Array,
) -> None:  # fmt: skip
    for block in prange(bounds.shape[0] - 1):
        begin, end = bounds[block], bounds[block + 1]
        _select_rows(stored, half, transposed, indptr, coefficients, hint, position, score, begin, end)


@compiled(FUSED)
def _grad_part(stored: Array, half: int, position: Array, grad: Array, partial: Array, start: int, stop: int) -> None:
    heads, _, k = position.shape
    for head in range(heads):
        for row in range(start, stop):
            for j in range(k):
                entry, scale = position[head, row, j], grad[head, row, j]
                if entry < 0:
                    continue
                if half == FULL:
                    for p in range(partial.shape[1]):
                        partial[head, p] += scale * stored[entry, p]
                else:
                    for p in range(partial.shape[1]):
                        partial[head, p] += scale * _decode(stored[entry, p], half)


@compiled(FUSED)
def _nodes_at(nodes: Array, position: Array, out: Array, start: int, stop: int) -> None:
    for row in range(start, stop):
        for head in range(position.shape[0]):
            for j in range(position.shape[2]):
                out[row, head, j] = nodes[position[head, row, j]]  # -1 is the last


@compiled(FUSED, parallel=True)
def _nodes_at_blocks(nodes: Array, position: Array, out: Array, blocks: int) -> None:
    rows = out.shape[0]
    for block in prange(blocks):
        _nodes_at(nodes, position, out, rows * block // blocks, rows * (block + 1) // blocks)


@compiled(FUSED)
def _rows_first(position: Array, grad: Array, first: int, entry: Array, scale: Array, start: int, stop: int) -> None:
    """Turn [heads, rows, k] into [rows, heads, k], from row ``first`` on; a missing entry gets weight 0."""
    for row in range(start, stop):
        for head in range(position.shape[0]):
            for j in range(position.shape[2]):
                at = position[head, first + row, j]
                entry[row, head, j] = at if at >= 0 else 0
                scale[row, head, j] = grad[head, first + row, j] if at >= 0 else 0


@compiled(FUSED, parallel=True)
def _rows_first_blocks(position: Array, grad: Array, first: int, entry: Array, scale: Array, blocks: int) -> None:
    rows = entry.shape[0]
    for block in prange(blocks):
        _rows_first(position, grad, first, entry, scale, rows * block // blocks, rows * (block + 1) // blocks)


@compiled(FUSED)
def _fold(partial: Array) -> None:
    """Add all blocks to the first, in their order. PyTorch's sum may take another order for other numbers of heads."""
    for block in range(1, partial.shape[0]):
        for head in range(partial.shape[1]):
            for p in range(partial.shape[2]):
                partial[0, head, p] += partial[block, head, p]


@compiled(FUSED)
def _grad_parts(stored: Array, half: int, position: Array, grad: Array, partial: Array, first: int, last: int) -> None:
    rows, parts = position.shape[1], partial.shape[0]
    for part in range(first, last):
        start, stop = rows * part // parts, rows * (part + 1) // parts
        _grad_part(stored, half, position, grad, partial[part], start, stop)


@compiled(FUSED, parallel=True)
def _grad_blocks(stored: Array, half: int, position: Array, grad: Array, partial: Array, blocks: int) -> None:
    parts = partial.shape[0]
    for block in prange(blocks):
        _grad_parts(stored, half, position, grad, partial, parts * block // blocks, parts * (block + 1) // blocks)
