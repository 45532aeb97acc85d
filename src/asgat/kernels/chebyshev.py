"""Signals filtered by polynomials of a symmetric sparse matrix."""

from typing import Any, Protocol

import torch
from torch import Tensor

from asgat.kernels.backend import compute_dtype, kernel
from asgat.kernels.once_differentiable import once_differentiable
from asgat.kernels.operator import Operator


class Boundary(Protocol):
    """Rows of a signal that a partial matrix needs and does not have: they follow its own rows."""

    num_needed: int

    def fill(self, rows: Tensor) -> None:
        """Writes the last ``num_needed`` rows of [own + num_needed, F], whose first ones are known."""


def chebyshev_filter(
    indptr: Tensor,
    index: Tensor,
    value: Tensor,
    coefficients: Tensor,
    signal: Tensor,
    boundary: Boundary | None = None,
) -> Tensor:
    r"""Every head filters its own channels: :math:`\sum_i c_i T_i(X) x`, with gradients to c and x.

    X is symmetric, so the gradients need the same recurrence of the incoming gradient, and nothing is saved from the
    forward pass. Computed in float32, or in float64 if either input is. All sums have a fixed order, and on the CPU the
    result of a head does not depend on the others, to the last bit.

    Cost: O(order · nnz · heads · F) time; O(N · heads · F) memory, on CUDA order times that backward.

    Args:
        indptr, index, value: the matrix X [N, N] in CSR form, with its spectrum in [-1, 1].
        coefficients: of every head, [heads, order + 1], with an order of at least 1.
        signal: one for every head, [N, heads, F], or one for all of them, [N, 1, F].
        boundary: if given, the arrays are N rows of X, with N + ``num_needed`` columns, and every order fills those
            rows of the signal that others have. The others call the same function with theirs. The gradient of the
            coefficients is that of these rows alone.

    Shapes:
        - **output**: [N, heads, F]
    """
    dtype = compute_dtype(coefficients, signal)
    arrays = indptr, index, value.to(dtype), coefficients.to(dtype), signal.to(dtype)
    out: Tensor = (
        _chebyshev_filter(*arrays) if boundary is None else _PartialFilter.apply(boundary, *arrays)  # type: ignore[no-untyped-call]
    )
    return out


class _PartialFilter(torch.autograd.Function):
    """X is symmetric as a whole, so that the gradient is the same recurrence, with the same exchange."""

    @staticmethod
    def forward(ctx: Any, boundary: Boundary, *arrays: Tensor) -> Tensor:
        ctx.boundary = boundary
        ctx.save_for_backward(*arrays)
        out: Tensor = _filter(*arrays, boundary)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, None, *_filter_grad(*ctx.saved_tensors, grad, ctx.boundary)


def _fake(indptr: Tensor, index: Tensor, value: Tensor, coefficients: Tensor, signal: Tensor) -> Tensor:
    return signal.new_empty(signal.size(0), coefficients.size(0), signal.size(2))


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, None, *_chebyshev_filter_grad(*ctx.saved_tensors, grad)


_filter, _filter_grad = kernel("chebyshev", "chebyshev_filter"), kernel("chebyshev", "chebyshev_filter_grad")
_chebyshev_filter = Operator(
    "asgat::chebyshev_filter",
    "(Tensor indptr, Tensor index, Tensor value, Tensor coefficients, Tensor signal) -> Tensor",
    _filter,
    _fake,
    _setup_context,
    _backward,
)
_chebyshev_filter_grad = Operator(
    "asgat::chebyshev_filter_grad",
    "(Tensor indptr, Tensor index, Tensor value, Tensor coefficients, Tensor signal, Tensor grad) -> (Tensor, Tensor)",
    _filter_grad,
    lambda *inputs: (inputs[3].new_empty(inputs[3].shape), inputs[4].new_empty(inputs[4].shape)),
)
