"""The matrix whose Chebyshev polynomials the operators are made of."""

import copy
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Literal, Self

import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.chebyshev import Boundary, chebyshev_filter

LambdaMax = Literal["bound", "lanczos"]
CSR = tuple[Tensor, Tensor, Tensor]  # indptr, index, value


class ShiftedLaplacian:
    r""":math:`X = 2L/\lambda_{\max} - I` of a graph: symmetric, with its spectrum in [-1, 1].

    ``lambda_max`` is 2 for ``"bound"``, valid for every graph; ``"lanczos"`` estimates the largest eigenvalue (times
    1.01). ``matrix`` is computed when it is first used; products are in ``dtype``.
    """

    def __init__(self, graph: Graph, lambda_max: LambdaMax, dtype: torch.dtype, device: torch.device) -> None:
        if lambda_max not in ("bound", "lanczos"):
            raise AsgatError(f"lambda_max must be bound or lanczos, not {lambda_max!r}.")
        self.lambda_max = 2.0 if lambda_max == "bound" else graph.lambda_max
        self.graph, self.dtype, self.device = graph, dtype, device

    @cached_property
    def matrix(self) -> Any:
        """X as arrays ``indptr``, ``indices`` and ``data``, in double precision."""
        if self.lambda_max == 2.0:
            return self.graph.shifted
        return self.graph.laplacian * (2.0 / self.lambda_max) - sp.eye_array(self.graph.num_nodes, format="csr")

    @cached_property
    def _csr(self) -> Tensor:
        return torch_csr(self.matrix, self.dtype, self.device)

    @cached_property
    def _double(self) -> Tensor:
        return torch_csr(self.matrix, torch.float64, self.device)

    @cached_property
    def _arrays(self) -> CSR:
        return csr_arrays(self.matrix, self.device, self.dtype)

    def polynomials(self, signal: Tensor, order: int) -> Iterator[Tensor]:
        """T_0(X) x, …, T_order(X) x for a signal [N, F]."""
        return polynomials(self._csr.matmul, signal, order)

    def rows(self, order: int, rows: slice) -> tuple[Tensor, Tensor]:
        """See :func:`polynomial_rows`."""
        nodes = torch.arange(self.graph.num_nodes, device=self.device)
        return polynomial_rows(self._double, order, nodes[rows], self.dtype)

    def apply(self, coefficients: Tensor, signal: Tensor) -> Tensor:
        r""":math:`\sum_i c_i T_i(X) x`, [heads, N, F], for c [heads, R + 1] and x [N, F] or [heads, N, F].

        Differentiable in both; O(R · E · F) time, O(heads · N · F) memory.
        """
        if signal.dim() == 3:
            return chebyshev_filter(*self._arrays, coefficients, signal.transpose(0, 1)).transpose(0, 1)
        return filter_by_each(self._arrays, coefficients, signal)

    def filter_channels(self, coefficients: Tensor, signal: Tensor) -> Tensor:
        """As :meth:`apply`, with every head on its slice of the channels: [N, F] → [N, F]."""
        return filter_slices(self._arrays, coefficients, signal)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        moved = copy.copy(self)
        moved.device, moved.dtype = device, dtype
        for cached in ("_csr", "_double", "_arrays"):
            moved.__dict__.pop(cached, None)
        return moved


def filter_by_each(arrays: CSR, coefficients: Tensor, signal: Tensor, boundary: Boundary | None = None) -> Tensor:
    """A signal [N, F] filtered by every head, [heads, N, F]; ``arrays`` are X in CSR form, or some rows of it."""
    return chebyshev_filter(*arrays, coefficients, signal.unsqueeze(1), boundary).transpose(0, 1)


def filter_slices(arrays: CSR, coefficients: Tensor, signal: Tensor, boundary: Boundary | None = None) -> Tensor:
    """A signal [N, F] with every head on its slice of the channels; as :func:`filter_by_each`."""
    rows, heads = signal.size(0), coefficients.size(0)
    slices = signal.reshape(rows, heads, signal.size(1) // heads)  # not -1: a rank may have no rows
    return chebyshev_filter(*arrays, coefficients, slices, boundary).view(signal.shape)


def polynomials(product: Callable[[Any], Any], signal: Any, order: int) -> Iterator[Any]:
    """T_0(X) x, …, T_order(X) x, with order at least 1, where ``product`` multiplies by X."""
    before, now = signal, product(signal)
    yield before
    yield now
    for _ in range(order - 1):
        before, now = now, 2.0 * product(now) - before
        yield now


def polynomial_rows(matrix: Tensor, order: int, rows: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Rows of all T_i(X), [order + 1, B, N], and the pairs [B, N] that none of them connects.

    From one-hot signals: X is symmetric, so a column is a row. X is in double precision, and rows are rounded: equal
    entries, as those of structurally equivalent nodes, are then equal to the last bit, and their scores tie.
    """
    one_hot = torch.zeros(matrix.size(0), len(rows), dtype=torch.float64, device=rows.device)
    one_hot[rows, torch.arange(len(rows), device=rows.device)] = 1.0
    basis = torch.empty(order + 1, len(rows), matrix.size(0), dtype=dtype, device=rows.device)
    unreached = torch.ones(basis.shape[1:], dtype=torch.bool, device=rows.device)
    for i, term in enumerate(polynomials(matrix.matmul, one_hot, order)):
        basis[i] = term.t()
        unreached &= term.t() == 0  # along shortest paths all terms of T_i have one sign: none cancels
    return basis, unreached


def csr_arrays(matrix: Any, device: torch.device, dtype: torch.dtype) -> CSR:
    """The arrays ``indptr``, ``indices`` and ``data`` of a matrix as tensors."""
    indptr, index = (torch.from_numpy(part.astype("int64")).to(device) for part in (matrix.indptr, matrix.indices))
    return indptr, index, torch.from_numpy(matrix.data).to(device, dtype)


def torch_csr(matrix: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A square matrix, given by the arrays ``indptr``, ``indices`` and ``data``, as a sparse tensor."""
    nodes = len(matrix.indptr) - 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support is in beta|invariant checks)")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr).long(),
            torch.from_numpy(matrix.indices).long(),
            torch.from_numpy(matrix.data),
            size=(nodes, nodes),
            dtype=dtype,
            device=device,
            check_invariants=False,
        )
