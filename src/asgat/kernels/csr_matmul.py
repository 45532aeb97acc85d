"""A product with a sparse matrix whose pattern is fixed and whose values change."""

from typing import Any

from torch import Tensor

from asgat.kernels.backend import compute_dtype, kernel
from asgat.kernels.operator import Operator


def csr_matmul(
    indptr: Tensor, index: Tensor, value: Tensor, indptr_t: Tensor, index_t: Tensor, order_t: Tensor, dense: Tensor
) -> Tensor:
    r"""Row r of the output is :math:`\sum_e value_e \, dense_{index_e}` over e in ``indptr[r]:indptr[r + 1]``.

    The gradient to ``dense`` is the product with the transposed pattern, which the caller builds once; there is none
    to ``value``, which holds features under dropout. Computed in float32, or in float64 if either input is. All sums
    have a fixed order.

    Cost: O(nnz · F) time forward and backward; O(nnz) memory in addition to the outputs for the gradient.

    Args:
        indptr, index, value: an [N, M] matrix in CSR form: [N + 1], [nnz], [nnz]. Indices are within 0..M-1.
        indptr_t, index_t: the pattern of its transpose: [M + 1], [nnz].
        order_t: position in ``value`` of each entry of the transpose, [nnz].
        dense: right factor, [M, F].

    Shapes:
        - **output**: [N, F]
    """
    dtype = compute_dtype(value, dense)
    out: Tensor = _csr_matmul(indptr, index, value.to(dtype), indptr_t, index_t, order_t, dense.to(dtype))
    return out


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[2:6])


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    value, indptr_t, index_t, order_t = ctx.saved_tensors
    return *(None,) * 6, csr_product(indptr_t, index_t, value.index_select(0, order_t), grad)


def _fake(indptr: Tensor, *others: Tensor) -> Tensor:
    dense = others[-1]
    return dense.new_empty(indptr.numel() - 1, dense.size(1))


_product = kernel("csr_matmul", "csr_matmul")
csr_product = Operator(
    "asgat::csr_product", "(Tensor indptr, Tensor index, Tensor value, Tensor dense) -> Tensor", _product, _fake
)
_csr_matmul = Operator(
    "asgat::csr_matmul",
    "(Tensor indptr, Tensor index, Tensor value, Tensor indptr_t, Tensor index_t, Tensor order_t, Tensor dense)"
    " -> Tensor",
    lambda indptr, index, value, *others: _product(indptr, index, value, others[-1]),
    _fake,
    _setup_context,
    _backward,
)
