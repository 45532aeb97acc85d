"""Scores by Chebyshev polynomials of the Laplacian."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Self

import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.errors import AsgatError
from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.kernels.backend import compute_dtype
from asgat.kernels.each_run import aligned
from asgat.kernels.sparse_features import SparseFeatures
from asgat.spectral.spectral_operator import UNREACHABLE, SpectralOperator
from asgat.spectral.topk import top_k

LambdaMax = Literal["bound", "lanczos"]


class ChebyshevOperator(SpectralOperator):
    r"""Scores :math:`\psi = \sum_{i=0}^{R} c_i T_i(X)` with :math:`X = 2L/\lambda_{\max} - I`.

    The coefficients interpolate the filter at S Chebyshev points :math:`\lambda_m`,

    .. math::
        c_i = \frac{2 - [i = 0]}{S} \sum_{m=1}^{S} \cos\frac{\pi i (m - 1/2)}{S} \, g(\lambda_m), \qquad
        \lambda_m = \frac{\lambda_{\max}}{2} \left(\cos\frac{\pi (m - 1/2)}{S} + 1\right),

    so the filter is evaluated at S numbers only and the graph enters through :math:`T_0 = I`, :math:`T_1 = X`,
    :math:`T_{i+1} = 2 X T_i - T_{i-1}` alone. A node reaches the nodes within R hops.

    Rows are computed in blocks, O(R · E) time each, and the R + 1 matrices are kept where they fit ``cache_bytes``.
    Top-k selection runs without gradients; the R + 1 values of each kept pair are then combined differentiably, so
    training holds O(heads · N · k · R) numbers and never an N×N gradient.

    Args:
        graph: the graph.
        order: polynomial order R.
        sampling_points: S, at least R + 1, which is the default.
        lambda_max: ``"bound"`` takes 2, valid for every graph and the same for all of them; ``"lanczos"`` estimates
            the largest eigenvalue (times 1.01).
        damping: weigh the coefficients with Jackson's factors, which trades sharpness for freedom from ripples.
        dtype: of the scores.
        device: of the scores.
        cache_bytes: memory allowed for keeping all :math:`T_i(X)`.
        block_bytes: working memory allowed for one block of rows.
    """

    def __init__(
        self,
        graph: Graph,
        order: int = 15,
        sampling_points: int | None = None,
        lambda_max: LambdaMax = "bound",
        damping: bool = False,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        cache_bytes: int = 4 << 30,
        block_bytes: int = 1 << 30,
    ) -> None:
        if order < 1:
            raise AsgatError(f"order must be at least 1, but is {order}.")
        points = order + 1 if sampling_points is None else sampling_points
        if points < order + 1:
            raise AsgatError(f"sampling_points must be at least order + 1 = {order + 1}, but is {points}.")
        if lambda_max not in ("bound", "lanczos"):
            raise AsgatError(f"lambda_max must be bound or lanczos, not {lambda_max!r}.")
        self.num_nodes = graph.num_nodes
        self.order = order
        self.lambda_max = 2.0 if lambda_max == "bound" else graph.lambda_max
        self.cache_bytes, self.block_bytes = cache_bytes, block_bytes
        self.device, self.dtype = torch.device(device), dtype
        self._shifted = graph.laplacian * (2.0 / self.lambda_max) - sp.eye_array(graph.num_nodes, format="csr")
        self.points, self._transform = _interpolation(order, points, self.lambda_max, damping)
        self._prepare()

    def _prepare(self) -> None:
        """Everything that depends on device and precision."""
        self._matrix = _to_torch_csr(self._shifted, self.dtype, self.device)
        self._rows_of_x: SparseFeatures | None = None  # the same where gradients are wanted, made when they are
        self.points = self.points.to(self.device)
        self._transform = self._transform.to(self.device)
        self._interpolation = self.points.to(self.dtype), self._transform.to(self.dtype)
        self._cached: tuple[Tensor, Tensor] | None = None
        bytes_needed = (self.order + 1) * self.num_nodes**2 * self.dtype.itemsize
        if 0 < bytes_needed <= self.cache_bytes:
            cached = torch.empty(self.order + 1, self.num_nodes, self.num_nodes, dtype=self.dtype, device=self.device)
            for rows in self._blocks(heads=0):
                cached[:, rows] = self._recurrence(rows)
            self._cached = cached, _reached(cached)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Self:
        device, dtype = torch.device(device or self.device), dtype or self.dtype
        if device == self.device and dtype == self.dtype:
            return self
        moved = copy.copy(self)
        moved.device, moved.dtype = device, dtype
        moved._prepare()
        return moved

    def coefficients(self, filter: SpectralFilter) -> Tensor:
        """The coefficients c [heads, R + 1], differentiable in the filter; O(S · R) beside the filter itself."""
        if torch.is_autocast_enabled(self.device.type):
            with torch.autocast(self.device.type, enabled=False):  # a handful of numbers that everything hangs on
                return self.coefficients(filter)
        if self.exact_sums:
            return filter.transformed_in_double(self.points, self._transform).to(self.dtype)
        return filter.transformed(*self._interpolation)

    def scores(
        self, filter: SpectralFilter, rows: slice | None = None, include_unreachable: bool = False
    ) -> tuple[Tensor, Tensor]:
        basis, reached = self._basis(rows or slice(0, self.num_nodes))
        score = torch.tensordot(self.coefficients(filter), basis, dims=1)
        if not include_unreachable:
            score = score.masked_fill(~reached, UNREACHABLE)
        return torch.arange(self.num_nodes, device=self.device).expand(score.shape[1:]), score

    def top(self, filter: SpectralFilter, k: int, include_unreachable: bool = False) -> tuple[Tensor, Tensor]:
        coefficients = self.coefficients(filter)
        heads = coefficients.size(0)
        indices, values = [], []
        for rows in self._blocks(heads):
            with torch.no_grad():
                basis, reached = self._basis(rows)
                score = torch.tensordot(coefficients, basis, dims=1)
                if not include_unreachable:
                    score.masked_fill_(~reached, UNREACHABLE)
                index = top_k(score, k)
                kept = torch.stack([plane.expand_as(score).gather(-1, index) for plane in basis])
                missing = torch.isneginf(score.gather(-1, index))
            value = torch.einsum("hr,rhbk->hbk", coefficients, kept)
            indices.append(index)
            values.append(value.masked_fill(missing, UNREACHABLE))
        if not indices:
            empty = torch.empty(heads, 0, 0, device=self.device, dtype=self.dtype)
            return empty.long(), empty
        return torch.cat(indices, dim=1), torch.cat(values, dim=1)

    def apply(self, filter: SpectralFilter, signal: Tensor) -> Tensor:
        """See :meth:`SpectralOperator.apply`; O(R · E · F) time, O(heads · N · F) memory."""
        coefficients = self.coefficients(filter)
        if self._rows_of_x is None:
            self._rows_of_x = SparseFeatures.from_dense(self._shifted, self.device, self.dtype)
        dtype = compute_dtype(coefficients, signal)
        each = signal.to(dtype) if signal.dim() == 3 else signal.to(dtype).unsqueeze(0)
        filtered: Tensor = _Filtered.apply(coefficients.to(dtype), each, self)  # type: ignore[no-untyped-call]
        return filtered

    def _terms_of(self, signal: Tensor) -> Iterator[Tensor]:
        """T_0(X) x, …, T_R(X) x for signals [N, heads, F], by products that add up in a fixed order."""
        assert self._rows_of_x is not None
        for term in self._polynomials(signal.flatten(1), self._rows_of_x.matmul):
            yield term.view(signal.shape)

    def _polynomials(self, signal: Tensor, product: Callable[[Tensor], Tensor] | None = None) -> Iterator[Tensor]:
        """T_0(X) x, T_1(X) x, …, T_R(X) x for a signal [N, F]."""
        product = product or self._matrix.matmul
        before, now = signal, product(signal)
        yield before
        yield now
        for _ in range(self.order - 1):
            before, now = now, 2.0 * product(now) - before
            yield now

    def _recurrence(self, rows: slice) -> Tensor:
        """Rows of all T_i(X), [R + 1, B, N], from one-hot signals: X is symmetric, so a column is a row."""
        first, last, _ = rows.indices(self.num_nodes)
        last = max(first, last)
        one_hot = torch.zeros(self.num_nodes, last - first, dtype=self.dtype, device=self.device)
        one_hot[first:last].fill_diagonal_(1.0)
        basis = torch.empty(self.order + 1, last - first, self.num_nodes, dtype=self.dtype, device=self.device)
        for i, term in enumerate(self._polynomials(one_hot)):
            basis[i] = term.t()
        return basis

    def _basis(self, rows: slice) -> tuple[Tensor, Tensor]:
        """Rows of all T_i(X), [R + 1, B, N], and which of their entries are reached, [B, N]."""
        if self._cached is not None:
            return self._cached[0][:, rows], self._cached[1][rows]
        basis = self._recurrence(rows)
        return basis, _reached(basis)

    def _blocks(self, heads: int) -> Iterator[slice]:
        """Ranges of rows whose matrices, scores and selection keys fit ``block_bytes``."""
        item = self.dtype.itemsize
        per_row = self.num_nodes * ((self.order + 4) * item + heads * (2 * item + 3 * 8))
        size = max(1, self.block_bytes // max(per_row, 1))
        for start in range(0, self.num_nodes, size):
            yield slice(start, min(start + size, self.num_nodes))


class _Filtered(torch.autograd.Function):
    r"""The signals :math:`\sum_i c_i T_i(X) x`, [heads, N, F], for one x of every head, or one, [1, N, F], for all.

    X is symmetric, so the gradients need the same recurrence of what comes back, and nothing is kept of the forward
    pass. What a head is given does not depend on the others to the last bit.
    """

    @staticmethod
    def forward(ctx: Any, coefficients: Tensor, signal: Tensor, operator: ChebyshevOperator) -> Tensor:
        ctx.save_for_backward(coefficients, signal)
        ctx.operator = operator
        return _weighted_sum(coefficients, operator._terms_of(signal.transpose(0, 1)))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        coefficients, signal = ctx.saved_tensors
        terms = torch.stack(list(ctx.operator._terms_of(grad.transpose(0, 1))))  # [R + 1, N, heads, F]
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
    total = 0.0 + next(parts)  # not -0
    for part in parts:
        total += part
    filtered: Tensor = total.transpose(0, 1).contiguous()
    return filtered


def _reached(basis: Tensor) -> Tensor:
    """Pairs [B, N] that some T_i connects. Along shortest paths all terms of T_i have one sign: none cancels."""
    reached = basis[0] != 0
    for plane in basis[1:]:
        reached |= plane != 0
    return reached


def _interpolation(order: int, points: int, lambda_max: float, damping: bool) -> tuple[Tensor, Tensor]:
    """Chebyshev points [S] on [0, λmax] and the matrix [S, R + 1] that turns responses there into coefficients."""
    angle = math.pi * (torch.arange(1, points + 1, dtype=torch.float64) - 0.5) / points
    degree = torch.arange(order + 1, dtype=torch.float64)
    transform = (2.0 / points) * torch.cos(angle.unsqueeze(1) * degree)
    transform[:, 0] /= 2.0
    if damping:
        transform = transform * jackson(order)
    return lambda_max / 2.0 * (torch.cos(angle) + 1.0), transform


def jackson(order: int) -> Tensor:
    """Jackson's damping factors [order + 1]; they keep the partial sum of a non-negative response non-negative."""
    terms = order + 2
    degree = torch.arange(order + 1, dtype=torch.float64)
    angle = math.pi / terms
    return ((terms - degree) * torch.cos(angle * degree) + torch.sin(angle * degree) / math.tan(angle)) / terms


def _to_torch_csr(matrix: sp.csr_array, dtype: torch.dtype, device: torch.device) -> Tensor:
    matrix = sp.csr_array(matrix)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta|Sparse invariant checks")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr).long(),
            torch.from_numpy(matrix.indices).long(),
            torch.from_numpy(matrix.data),
            size=matrix.shape,
            dtype=dtype,
            device=device,
            check_invariants=False,
        )
