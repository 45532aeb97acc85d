"""CPU kernel of :func:`asgat.kernels.csr_matmul`."""

from functools import lru_cache

import torch
from torch import Tensor

SUM = 0  # mode of PyTorch's bag kernel


def csr_matmul(indptr: Tensor, index: Tensor, value: Tensor, dense: Tensor) -> Tensor:
    """PyTorch's bag kernel keeps the sums of a row in registers, unlike compiled loops. One thread sums a row, in
    order of its entries."""
    if index.numel() == 0 or dense.size(1) == 0:
        return dense.new_zeros(indptr.numel() - 1, dense.size(1))
    weight, dense = value.detach().contiguous(), dense.detach().contiguous()
    out, *_ = torch.embedding_bag(dense, index, indptr.to(index.dtype), False, SUM, False, weight, True)
    return out


@lru_cache(maxsize=8)  # for the layers of a model: on a small graph even this takes time
def even_bounds(rows: int, size: int, dtype: torch.dtype) -> Tensor:
    """Bounds of rows of equal size."""
    return torch.arange(0, rows * size + 1, size, dtype=dtype)
