"""The matrix whose Chebyshev polynomials the operators are made of."""

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Literal, Self

import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.backend import compute_dtype
from asgat.kernels.each_run import aligned
from asgat.kernels.sparse_features import SparseFeatures

LambdaMax = Literal["bound", "lanczos"]


class ShiftedLaplacian:
    r""":math:`X = 2L/\lambda_{\max} - I` of a graph: symmetric, with its spectrum in [-1, 1].

    ``lambda_max`` is 2 for ``"bound"``, valid for every graph; ``"lanczos"`` estimates the largest eigenvalue (times
    1.01). ``matrix`` is X as a SciPy array in double precision; products are in ``dtype``.
    """

    def __init__(self, graph: Graph, lambda_max: LambdaMax, dtype: torch.dtype, device: torch.device) -> None:
        if lambda_max not in ("bound", "lanczos"):
            raise AsgatError(f"lambda_max must be bound or lanczos, not {lambda_max!r}.")
        self.lambda_max = 2.0 if lambda_max == "bound" else graph.lambda_max
        self.matrix = graph.laplacian * (2.0 / self.lambda_max) - sp.eye_array(graph.num_nodes, format="csr")
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
        """See :func:`polynomial_rows`."""
        nodes = torch.arange(self.matrix.shape[0], device=self.device)
        return polynomial_rows(self._double, order, nodes[rows], self.dtype)

    def apply(self, coefficients: Tensor, signal: Tensor) -> Tensor:
        r""":math:`\sum_i c_i T_i(X) x`, [heads, N, F], for c [heads, R + 1] and x [N, F] or [heads, N, F].

        Differentiable in both; O(R · E · F) time, O(heads · N · F) memory.
        """
        dtype = compute_dtype(coefficients, signal)
        each = signal.to(dtype) if signal.dim() == 3 else signal.to(dtype).unsqueeze(0)
        filtered: Tensor = _Filtered.apply(coefficients.to(dtype), each, self)  # type: ignore[no-untyped-call]
        return filtered

    def terms(self, signal: Tensor, order: int) -> Iterator[Tensor]:
        """T_0(X) x, … for signals [N, heads, F], by products that add up in a fixed order."""
        for term in polynomials(self._with_gradient.matmul, signal.flatten(1), order):
            yield term.view(signal.shape)

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        moved = copy.copy(self)
        moved.device, moved.dtype = device, dtype
        for cached in ("_csr", "_double", "_with_gradient"):
            moved.__dict__.pop(cached, None)
        return moved


class _Filtered(torch.autograd.Function):
    r"""The signals :math:`\sum_i c_i T_i(X) x`, [heads, N, F], for one x of every head, or one, [1, N, F], for all.

    X is symmetric, so the gradients need the same recurrence of the incoming gradient, and nothing is saved from the
    forward pass. The result of a head does not depend on the others, to the last bit.
    """

    @staticmethod
    def forward(ctx: Any, coefficients: Tensor, signal: Tensor, matrix: ShiftedLaplacian) -> Tensor:
        ctx.save_for_backward(coefficients, signal)
        ctx.matrix = matrix
        return _weighted_sum(coefficients, matrix.terms(signal.transpose(0, 1), coefficients.size(1) - 1))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        coefficients, signal = ctx.saved_tensors
        terms = torch.stack(list(ctx.matrix.terms(grad.transpose(0, 1), coefficients.size(1) - 1)))
        to_coefficients = to_signal = None
        if ctx.needs_input_grad[0]:
            each = zip(terms.unbind(2), signal.expand_as(grad), strict=True)
            to_coefficients = torch.stack([term.flatten(1).mv(aligned(own.reshape(-1))) for term, own in each])
        if ctx.needs_input_grad[1]:
            to_signal = _weighted_sum(coefficients, terms)
            to_signal = to_signal if signal.size(0) == grad.size(0) else to_signal.sum(dim=0, keepdim=True)
        return to_coefficients, to_signal, None


def _weighted_sum(coefficients: Tensor, terms: Iterable[Tensor]) -> Tensor:
    """Σ_i c_i times term i [N, heads or 1, F]: [heads, N, F]."""
    parts = (c.unsqueeze(-1) * term for c, term in zip(coefficients.t(), terms, strict=True))
    total: Tensor = 0.0 + next(parts)  # not -0
    for part in parts:
        total += part
    return total.transpose(0, 1).contiguous()


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
