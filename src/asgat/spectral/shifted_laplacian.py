"""The matrix whose Chebyshev polynomials the operators are made of."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures

LambdaMax = Literal["bound", "lanczos"]

_LEAST = 1e-20


class ShiftedLaplacian:
    r""":math:`X = 2L/\lambda_{\max} - I` of a graph: symmetric, with its spectrum in [-1, 1].

    ``lambda_max`` is 2 for ``"bound"``, valid for every graph; ``"lanczos"`` estimates the largest eigenvalue (times
    1.01). ``matrix`` is X as a SciPy array in double precision; products are in ``dtype``. Its entries for edges are at
    least 1e-20 in magnitude: far below rounding, but products of up to fifteen of them do not underflow and hide nodes.
    """

    def __init__(self, graph: Graph, lambda_max: LambdaMax, dtype: torch.dtype, device: torch.device) -> None:
        if lambda_max not in ("bound", "lanczos"):
            raise AsgatError(f"lambda_max must be bound or lanczos, not {lambda_max!r}.")
        self.lambda_max = 2.0 if lambda_max == "bound" else graph.lambda_max
        self.matrix = graph.laplacian * (2.0 / self.lambda_max) - sp.eye_array(graph.num_nodes, format="csr")
        weak = graph.normalised_adjacency.copy()
        weak.data = np.where(weak.data < _LEAST, _LEAST, 0.0)
        if weak.data.any():
            self.matrix = sp.csr_array(self.matrix - weak)
        self.dtype, self.device = dtype, device

    @cached_property
    def _csr(self) -> Tensor:
        return torch_csr(self.matrix, self.dtype, self.device)

    @cached_property
    def _double(self) -> Tensor:
        return torch_csr(self.matrix, torch.float64, self.device)

    @cached_property
    def _with_gradient(self) -> SparseFeatures:
        return SparseFeatures.from_dense(self.matrix, self.device, self.dtype)

    def polynomials(self, signal: Tensor, order: int) -> Iterator[Tensor]:
        """T_0(X) x, …, T_order(X) x for a signal [N, F]."""
        return polynomials(self._csr.matmul, signal, order)

    def rows(self, order: int, rows: slice) -> tuple[Tensor, Tensor]:
        """Rows of all T_i(X), [order + 1, B, N], and the pairs [B, N] that none of them connects.

        From one-hot signals: X is symmetric, so a column is a row. Computed in double precision and then rounded: equal
        entries, as those of structurally equivalent nodes, are then equal to the last bit, and their scores tie.
        """
        nodes = self.matrix.shape[0]
        first, last, _ = rows.indices(nodes)
        last = max(first, last)
        one_hot = torch.zeros(nodes, last - first, dtype=torch.float64, device=self.device)
        one_hot[first:last].fill_diagonal_(1.0)
        basis = torch.empty(order + 1, last - first, nodes, dtype=self.dtype, device=self.device)
        unreached = torch.ones(basis.shape[1:], dtype=torch.bool, device=self.device)
        for i, term in enumerate(polynomials(self._double.matmul, one_hot, order)):
            basis[i] = term.t()
            unreached &= term.t() == 0  # along shortest paths all terms of T_i have one sign: none cancels
        return basis, unreached

    def apply(self, coefficients: Tensor, signal: Tensor) -> Tensor:
        r""":math:`\sum_i c_i T_i(X) x`, [heads, N, F], for c [heads, R + 1] and x [N, F] or [heads, N, F].

        Differentiable in both; O(R · E · F) time, O(heads · N · F) memory.
        """
        heads, (nodes, width) = coefficients.size(0), signal.shape[-2:]
        per_head = signal.dim() == 3
        flat = signal.transpose(0, 1).flatten(1) if per_head else signal
        total = signal.new_zeros(heads, nodes, width)
        terms = polynomials(self._with_gradient.matmul, flat, coefficients.size(1) - 1)
        for coefficient, term in zip(coefficients.t(), terms, strict=True):
            own = term.view(nodes, heads, width).transpose(0, 1) if per_head else term
            total = total + coefficient[:, None, None] * own
        return total

    def to(self, device: torch.device, dtype: torch.dtype) -> ShiftedLaplacian:
        moved = copy.copy(self)
        moved.device, moved.dtype = device, dtype
        for cached in ("_csr", "_double", "_with_gradient"):
            moved.__dict__.pop(cached, None)
        return moved


def polynomials(product: Callable[[Tensor], Tensor], signal: Tensor, order: int) -> Iterator[Tensor]:
    """T_0(X) x, …, T_order(X) x, with order at least 1, where ``product`` multiplies by X."""
    before, now = signal, product(signal)
    yield before
    yield now
    for _ in range(order - 1):
        before, now = now, 2.0 * product(now) - before
        yield now


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
