"""A product with a sparse matrix whose pattern is fixed and whose values change."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from asgat.kernels.backend import compute_dtype, kernels
from asgat.kernels.operator import Operator


def csr_matmul(
    indptr: Tensor,
    index: Tensor,
    value: Tensor,
    indptr_t: Tensor,
    index_t: Tensor,
    order_t: Tensor,
    dense: Tensor,
) -> Tensor:
    r"""Row r of the output is :math:`\sum_e value_e \, dense_{index_e}` over e in ``indptr[r]:indptr[r + 1]``.

    Stacked runs share the pattern: with ``dense`` [R, M, F] and ``value`` [nnz] or [R, nnz] the output is [R, N, F].

    The gradient to ``dense`` is the product with the transposed pattern, which the caller builds once; there is none
    to ``value``, which holds features under dropout. Computed in float32, or in float64 if either input is. All sums
    have a fixed order.

    Cost: O(nnz · F) time forward and backward; memory beside the outputs is O(nnz) for the gradient.

    Args:
        indptr, index, value: an [N, M] matrix in CSR form: [N + 1], [nnz], [nnz]. Indices are within 0..M-1.
        indptr_t, index_t: the pattern of its transpose: [M + 1], [nnz].
        order_t: where each entry of the transpose stands in ``value``, [nnz].
        dense: right factor, [M, F].

    Shapes:
        - **output**: [N, F]
    """
    dtype = compute_dtype(value, dense)
    out: Tensor = _csr_matmul(indptr, index, value.to(dtype), indptr_t, index_t, order_t, dense.to(dtype))
    return out


def _product(indptr: Tensor, index: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    out: Tensor = kernels("csr_matmul", dense).csr_matmul(indptr, index, value, dense)
    return out


def _empty(indptr: Tensor, dense: Tensor) -> Tensor:
    return dense.new_empty(*dense.shape[:-2], indptr.numel() - 1, dense.size(-1))


def _forward(
    indptr: Tensor,
    index: Tensor,
    value: Tensor,
    indptr_t: Tensor,
    index_t: Tensor,
    order_t: Tensor,
    dense: Tensor,
) -> Tensor:
    return _product(indptr, index, value, dense)


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    _, _, value, indptr_t, index_t, order_t, _ = inputs
    ctx.save_for_backward(value, indptr_t, index_t, order_t)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    value, indptr_t, index_t, order_t = ctx.saved_tensors
    return None, None, None, None, None, None, _csr_product(indptr_t, index_t, value.index_select(-1, order_t), grad)


_csr_product = Operator(
    "asgat::csr_product",
    _product,
    lambda indptr, index, value, dense: _empty(indptr, dense),
)
_csr_matmul = Operator(
    "asgat::csr_matmul",
    _forward,
    lambda indptr, index, value, indptr_t, index_t, order_t, dense: _empty(indptr, dense),
    _setup_context,
    _backward,
)
