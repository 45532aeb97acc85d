"""Sparse node features, multiplied without being made dense."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from asgat import kernels
from asgat.errors import AsgatError
from asgat.kernels.dense_matmul import dense_matmul
from asgat.kernels.dropout import drops


@dataclass(eq=False, repr=False)
class SparseFeatures:
    r"""A feature matrix [N, F] with most entries zero, in CSR form with the pattern of its transpose.

    Takes the place of a dense ``x``: its products have gradients to the other factor, never to the features. Build it
    with :meth:`from_dense`; dropout and dtype changes share the pattern.

    Args:
        value: the non-zero entries, row by row, [nnz].
        indptr, index: bounds of the rows and column of each entry, [N + 1] and [nnz].
        indptr_t, index_t: the same of the transpose, [F + 1] and [nnz].
        order_t: the position in ``value`` of each entry of the transpose, [nnz].

    Example:
        >>> x = SparseFeatures.from_dense(np.array([[0.0, 2.0], [0.0, 0.0]]))
        >>> x.shape, x.density
        (torch.Size([2, 2]), 0.25)
        >>> x.linear(torch.tensor([[1.0, 3.0]]))
        tensor([[6.],
                [0.]])
    """

    value: Tensor
    indptr: Tensor
    index: Tensor
    indptr_t: Tensor
    index_t: Tensor
    order_t: Tensor

    @classmethod
    def from_dense(cls, x: Any, device: torch.device | str | None = None, dtype: torch.dtype = torch.float32) -> Self:
        """From a numpy array, a tensor or a SciPy sparse matrix; O(N · F) once, O(nnz) for a sparse one.

        ``device`` defaults to the tensor's, or to the CPU.
        """
        if device is None:
            device = x.device if isinstance(x, Tensor) else "cpu"
        csr = _to_csr(x)
        transpose = sp.csr_array((np.arange(csr.nnz), csr.indices, csr.indptr), shape=csr.shape).tocsc()
        arrays = csr.indptr, csr.indices, transpose.indptr, transpose.indices, transpose.data
        pattern = [torch.from_numpy(array.astype(np.int64)).to(device) for array in arrays]
        return cls(torch.from_numpy(csr.data).to(device, dtype), *pattern)

    @property
    def shape(self) -> torch.Size:
        return torch.Size([self.indptr.numel() - 1, self.indptr_t.numel() - 1])

    def size(self, dim: int) -> int:
        return self.shape[dim]

    @property
    def dtype(self) -> torch.dtype:
        return self.value.dtype

    @property
    def device(self) -> torch.device:
        return self.value.device

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(getattr(self, field.name).nbytes) for field in fields(self))

    @property
    def density(self) -> float:
        """Share of the N · F entries that are stored."""
        return self.value.numel() / max(1, self.shape.numel())

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Self:
        moved = {field.name: getattr(self, field.name).to(device=device) for field in fields(self)}
        return replace(self, **moved | {"value": self.value.to(device=device, dtype=dtype)})

    def dropout(self, p: float, training: bool = True) -> Self:
        """Dropout on the non-zeros alone: the same distribution as on the dense matrix, whose zeros stay zero."""
        return replace(self, value=kernels.dropout(self.value, p)) if drops(p, training) else self

    def matmul(self, dense: Tensor) -> Tensor:
        """The product with [F, C], O(nnz · C)."""
        if dense.dim() != 2 or dense.size(0) != self.shape[1]:
            raise AsgatError(f"Features {list(self.shape)} cannot be multiplied by {list(dense.shape)}.")
        return kernels.csr_matmul(self.indptr, self.index, self.value, self.indptr_t, self.index_t, self.order_t, dense)

    def linear(self, weight: Tensor) -> Tensor:
        r""":math:`x W^\top` for a weight [C, F] as :class:`torch.nn.Linear` has it; copies the weight once."""
        return self.matmul(weight.t())

    def to_dense(self) -> Tensor:
        """The features as [N, F]. Costly: meant for tests and for layers that need it."""
        rows, columns = self.shape
        lengths = self.indptr.diff()
        row = torch.arange(rows, device=self.device).repeat_interleave(lengths, output_size=self.value.numel())
        flat = self.value.new_zeros(rows * columns).scatter_(0, row * columns + self.index, self.value)
        return flat.view(rows, columns)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.shape)}, density={self.density:.4f}, {self.dtype}, {self.device})"


def dropout(x: Tensor | SparseFeatures, p: float, training: bool = True) -> Tensor | SparseFeatures:
    """Dropout on features of either form."""
    return x.dropout(p, training) if isinstance(x, SparseFeatures) else kernels.dropout(x, p, training)


def matmul(x: Tensor | SparseFeatures, weight: Tensor) -> Tensor:
    """x W, for features of either form and a weight [in, out]."""
    return x.matmul(weight) if isinstance(x, SparseFeatures) else dense_matmul(x, weight)


def linear(x: Tensor | SparseFeatures, weight: Tensor) -> Tensor:
    r""":math:`x W^\top` for features of either form."""
    return x.linear(weight) if isinstance(x, SparseFeatures) else F.linear(x, weight)


def sparse_below(device: torch.device) -> float:
    """The share of non-zeros below which the sparse form is faster to multiply."""
    return 0.15 if device.type == "cpu" else 0.05


def features_tensor(
    x: Any, device: torch.device | str | None = None, dtype: torch.dtype = torch.float32, threshold: float | None = None
) -> SparseFeatures | Tensor:
    """The features in the form that is faster to multiply: sparse if less than ``threshold`` of them is non-zero.

    By default that is 15 % on the CPU and 5 % on CUDA, which is better at dense products.
    """
    device = torch.device(x.device if device is None and isinstance(x, Tensor) else device or "cpu")
    if threshold is None:
        threshold = sparse_below(device)
    rows = _to_array(x)
    if not sp.issparse(rows) and np.count_nonzero(rows) >= threshold * max(1, rows.size):
        return torch.tensor(rows, dtype=dtype, device=device)
    features = SparseFeatures.from_dense(rows, device, dtype)
    return features if features.density < threshold else features.to_dense()


def _to_array(x: Any) -> Any:
    """A numpy array or a SciPy sparse matrix [N, F]."""
    if isinstance(x, Tensor):
        x = (x.to_dense() if x.layout != torch.strided else x).detach().cpu().numpy()
    if not sp.issparse(x):
        x = np.asarray(x)
    if x.ndim != 2:
        raise AsgatError(f"Features must have shape [N, F], not {list(x.shape)}.")
    return x


def _to_csr(x: Any) -> sp.csr_array:
    csr = sp.csr_array(_to_array(x), copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    return csr
