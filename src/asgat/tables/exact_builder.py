"""The candidate table from exact rows of T_i(X): for graphs up to some hundred thousand nodes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.spectral.shifted_laplacian import polynomial_rows, torch_csr
from asgat.tables.building import check_build, map_in_order
from asgat.tables.candidate_table import CandidateTable, Progress
from asgat.tables.sparse_rows import SparseRows

Array = npt.NDArray[Any]

WIDTH = 16  # rows computed at once: enough for vector instructions, few enough for a plane [N, 16] to stay in the cache
_ROWS_PER_TASK = 64
DEVICE_BYTES = 4 << 30  # working memory of a block on an accelerator


def build_exact(
    shifted: Any,
    order: int,
    candidates: int = 32,
    cap: int = 256,
    rows: Any = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> CandidateTable:
    r"""The candidate table of :math:`X`, every value and every bound on what was left out computed in float64.

    Row v's candidates are, for every order i, the largest entries of row v of :math:`T_i(X)` in magnitude, v itself,
    and v's neighbours.

    O(R · (E + N)) time per row, N · (R + 1) · 128 bytes of working memory per thread: 40 MB for Pubmed at order 15.

    Args:
        shifted: X, symmetric, a scipy sparse array.
        order: polynomial order R.
        candidates: entries kept of every order; ties go to the lower index.
        cap: largest number of neighbours kept, those with the largest :math:`|X_{vu}|` first.
        rows: the rows to build, in this order; all by default.
        dtype: of the stored values: float32, float64 or float16.
        device: where the table is built and stored.
        progress: called with the number of rows done and the number of all rows.
    """
    matrix = SparseRows.of(shifted)
    chosen = check_build(matrix.num_nodes, order, candidates, rows, dtype)
    if cap < 0:
        raise AsgatError(f"cap must not be negative, but is {cap}.")
    device = torch.device(device)
    if device.type == "cpu":
        size = _ROWS_PER_TASK
        tasks = [chosen[start : start + size] for start in range(0, len(chosen), size)]
        parts = map_in_order(lambda task: _rows_on_cpu(matrix, order, candidates, cap, task, dtype), tasks)
    else:
        parts = _rows_on_device(matrix, order, candidates, cap, chosen, dtype, device)
    done, collected = 0, [_no_rows(order, dtype, device)]
    for part in parts:
        collected.append(part)
        done += part.num_nodes
        if progress is not None:
            progress(done, len(chosen))
    return CandidateTable.concatenate(collected)


def exact_rows(shifted: Any, order: int, rows: Any) -> npt.NDArray[np.float64]:
    """True rows of all T_i(X), [R + 1, rows, N] in float64; O(R · E) time per row."""
    from asgat.tables.exact_kernels import recurrence

    matrix = SparseRows.of(shifted)
    chosen = check_build(matrix.num_nodes, order, 1, rows, torch.float64)
    result = np.empty((order + 1, len(chosen), matrix.num_nodes))

    def fill(start: int) -> None:
        block = chosen[start : start + WIDTH]
        planes = np.empty((order + 1, matrix.num_nodes, WIDTH))
        state = np.empty(planes.shape[1:], dtype=np.uint8)
        recurrence(matrix.indptr, matrix.indices, matrix.data, block, planes, state, 1)
        result[:, start : start + WIDTH] = planes[:, :, : len(block)].transpose(0, 2, 1)

    for _ in map_in_order(fill, range(0, len(chosen), WIDTH)):
        pass
    return result


def _no_rows(order: int, dtype: torch.dtype, device: torch.device) -> CandidateTable:
    indptr, none = torch.zeros(1, dtype=torch.int64, device=device), torch.empty(0, order + 1, device=device)
    bounds = none.double()
    return CandidateTable(indptr, none[:, 0].int(), none.to(dtype), bounds, bounds, none[:, 0].bool(), exact=True)


def _rows_on_cpu(
    matrix: SparseRows, order: int, candidates: int, cap: int, rows: Array, dtype: torch.dtype
) -> CandidateTable:
    from asgat.tables import exact_kernels as kernels

    n, p = matrix.num_nodes, order + 1
    planes = np.empty((p, n, WIDTH))
    state = np.empty((n, WIDTH), dtype=np.uint8)
    above, below = np.empty((len(rows), p)), np.empty((len(rows), p))
    count = np.zeros(len(rows), dtype=np.int64)
    complete = np.zeros(len(rows), dtype=bool)
    index, value = [], []
    for start in range(0, len(rows), WIDTH):
        block, here = rows[start : start + WIDTH], slice(start, start + WIDTH)
        kernels.recurrence(matrix.indptr, matrix.indices, matrix.data, block, planes, state, candidates)
        for column, v in enumerate(block):
            state[_neighbours(matrix, v, cap), column] = kernels.CANDIDATE
            state[v, column] = kernels.CANDIDATE
        kernels.left_out(planes, state, above[here], below[here], count[here], complete[here])
        found_index = np.empty(count[here].sum(), dtype=np.int32)
        found_value = np.empty((len(found_index), p))
        kernels.gather(planes, state, count[here], found_index, found_value)
        index.append(torch.from_numpy(found_index))
        value.append(torch.from_numpy(found_value).to(dtype))
    indptr, high, low, full = map(torch.from_numpy, (np.concatenate([[0], count]).cumsum(), above, below, complete))
    return CandidateTable(indptr, torch.cat(index), torch.cat(value), high, low, full, exact=True)


def _neighbours(matrix: SparseRows, v: int, cap: int) -> Array:
    """Up to ``cap`` neighbours of v, the largest |X_vu| first, ties to the lower index."""
    entries = slice(matrix.indptr[v], matrix.indptr[v + 1])
    nodes, size = matrix.indices[entries], np.abs(matrix.data[entries])
    nodes, size = nodes[nodes != v], size[nodes != v]
    if len(nodes) > cap:
        nodes = nodes[np.argsort(-size, kind="stable")[:cap]]
    return np.asarray(nodes)


# -- accelerator: sparse products of one-hot columns, in blocks of rows that fit the working memory -------------------


def _rows_on_device(
    matrix: SparseRows, order: int, candidates: int, cap: int, rows: Array, dtype: torch.dtype, device: torch.device
) -> Iterator[CandidateTable]:
    x = torch_csr(matrix, torch.float64, device)
    size = max(1, DEVICE_BYTES // max(1, matrix.num_nodes * (order + 16) * 8))
    for start in range(0, len(rows), size):
        block = torch.from_numpy(rows[start : start + size]).to(device)
        basis, unreached = polynomial_rows(x, order, block, torch.float64)
        chosen = basis[0] == 1.0  # the node itself: T_0(X) = I
        chosen |= _largest(basis[1].abs().masked_fill(chosen, 0.0), cap)  # neighbours: T_1(X) = X
        for plane in basis[1:]:
            chosen |= _largest(plane.abs(), candidates)
        left_out = ~unreached & ~chosen
        complete = ~left_out.any(dim=1)
        above = torch.stack([plane.masked_fill(~left_out, -torch.inf).amax(dim=1) for plane in basis], dim=1)
        below = torch.stack([plane.masked_fill(~left_out, torch.inf).amin(dim=1) for plane in basis], dim=1)
        row, index = chosen.nonzero(as_tuple=True)
        count = chosen.sum(dim=1)
        yield CandidateTable(
            torch.cat([count.new_zeros(1), count.cumsum(0)]),
            index.int(),
            basis[:, row, index].t().contiguous().to(dtype),
            above.masked_fill(complete.unsqueeze(1), 0.0),
            below.masked_fill(complete.unsqueeze(1), 0.0),
            complete,
            exact=True,
        )


def _largest(magnitude: Tensor, count: int) -> Tensor:
    """The ``count`` largest of every row, zeros excepted, as a mask; ties go to the lower index."""
    if count == 0:
        return torch.zeros_like(magnitude, dtype=torch.bool)
    least = magnitude.topk(min(count, magnitude.size(1)), dim=1).values[:, -1:]
    more = magnitude > least
    tied = (magnitude == least) & (magnitude > 0)
    return more | (tied & (tied.cumsum(dim=1) <= count - more.sum(dim=1, keepdim=True)))
