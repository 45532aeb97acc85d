"""Products with rows of a sparse matrix that may be the map of a file: only the rows in use are read."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.kernels.csr_matmul import csr_product

ROWS = 1 << 14  # of a block
Ints = npt.NDArray[np.int64]


class MatrixRows:
    """A square matrix in CSR form, given by its arrays ``indptr``, ``indices`` and ``data``."""

    def __init__(self, matrix: Any) -> None:
        self.indptr, self.indices, self.data = matrix.indptr, matrix.indices, matrix.data
        self._place = np.zeros(len(self.indptr) - 1, dtype=np.int32)

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    def columns(self, rows: Tensor) -> Tensor:
        """The columns of all entries of some rows, on the CPU."""
        return torch.from_numpy(self.indices[self._entries(rows.cpu().numpy())[1]].astype(np.int64))

    def part(self, rows: Tensor, columns: Tensor) -> sp.csr_array:
        """The entries in some rows and columns; O(entries of the rows)."""
        chosen = columns.cpu().numpy()
        size, entry = self._entries(rows.cpu().numpy())
        self._place[chosen] = np.arange(len(chosen), dtype=np.int32)
        node = self.indices[entry]
        column = self._place[node]
        there = chosen[column] == node if len(chosen) else np.zeros(len(node), dtype=bool)
        self._place[chosen] = 0
        row = np.repeat(np.arange(len(size)), size)[there]
        return sp.csr_array((self.data[entry[there]], (row, column[there])), shape=(len(size), len(chosen)))

    def polynomials(self, now: Tensor, before: Tensor, order: int) -> Iterator[Tensor]:
        """T_0(X) x, …, T_order(X) x, a block of rows at a time, for x given in ``now``; each is valid until the next.

        Both tensors are overwritten; nothing else of their size is allocated.
        """
        yield now
        for i in range(order):
            for first in range(0, self.num_nodes, ROWS):
                product, rows = self.product(first, first + ROWS, now), before[first : first + ROWS]
                if i == 0:
                    rows.copy_(product)
                else:
                    torch.sub(product.mul_(2.0), rows, out=rows)
            now, before = before, now
            yield now

    def product(self, first: int, last: int, signal: Tensor) -> Tensor:
        """Rows ``first`` to ``last - 1`` of the product with a signal [N, F]."""
        bounds = np.asarray(self.indptr[first : last + 1], dtype=np.int64)
        entries = slice(int(bounds[0]), int(bounds[-1]))
        arrays = bounds - bounds[0], self.indices[entries].astype(np.int64), self.data[entries]
        indptr, index, value = (torch.from_numpy(array).to(signal.device) for array in arrays)
        out: Tensor = csr_product(indptr, index, value.to(signal.dtype), signal)
        return out

    def _entries(self, rows: Ints) -> tuple[Ints, Ints]:
        """The number of entries of some rows, and the positions of all of them."""
        start = self.indptr[rows].astype(np.int64)
        size = self.indptr[rows + 1] - start
        within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        return size, np.repeat(start, size) + within
