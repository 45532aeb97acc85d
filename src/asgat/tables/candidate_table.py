"""The candidate table: the kept values of all T_i(X) for every node, and bounds on those left out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

Progress = Callable[[int, int], None]

# Relative rounding and underflow of stored values: |stored - true| <= rounding * |true| + underflow.
ROUNDING = {
    torch.float64: (0.0, 0.0),  # the precision of the recurrence itself
    torch.float32: (2.0**-24, 2.0**-150),
    torch.float16: (2.0**-11, 2.0**-25),
}
_PER_ROW = ("above", "below", "complete")
_TENSORS = ("indptr", "index", "value", *_PER_ROW)


@dataclass(frozen=True, eq=False)
class CandidateTable:
    r"""For every row v a set of candidates :math:`C(v)` and the values :math:`T_i(X)_{vu}`, u in C(v), i = 0 … R.

    A node u is reachable from v where some :math:`T_i(X)_{vu} \ne 0`; only reachable nodes are candidates, and v always
    is one. With any coefficients c the score :math:`\psi_{vu} = \sum_i c_i T_i(X)_{vu}` of a candidate is a product
    with its R + 1 values, and in an exact table every reachable u outside C(v) has

    .. math:: \psi_{vu} \le \sum_i \max(c_i \tau^+_i(v), c_i \tau^-_i(v)).

    The table holds (R + 1) numbers per candidate and 2 (R + 1) per row; it never grows with N².

    Attributes:
        indptr: int64 [rows + 1]; row v holds the entries ``indptr[v]`` to ``indptr[v + 1] - 1``.
        index: int32 [nnz], the candidates, ascending inside a row.
        value: [nnz, R + 1] in float32, float64 or float16.
        above: float64 [rows, R + 1], the largest value :math:`\tau^+_i(v)` over the reachable nodes left out; 0 in a
            complete row, NaN where it is not known.
        below: float64 [rows, R + 1], the smallest, :math:`\tau^-_i(v)`.
        complete: bool [rows], every reachable node is a candidate and its values are true ones.
        exact: values are true up to the rounding of their storage, ``above`` and ``below`` are proven. Otherwise the
            table is truncated: values are approximate, and the values left out are not known.
    """

    indptr: Tensor
    index: Tensor
    value: Tensor
    above: Tensor
    below: Tensor
    complete: Tensor
    exact: bool

    @property
    def num_nodes(self) -> int:
        """Number of rows: all nodes, or those the table was built for."""
        return self.indptr.numel() - 1

    @property
    def order(self) -> int:
        return self.value.size(1) - 1

    @property
    def candidates_per_node(self) -> float:
        return self.index.numel() / max(self.num_nodes, 1)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; one that repeats a single row counts as that row."""
        tensors = [getattr(self, name) for name in _TENSORS]
        return sum(min(t.nbytes, t.untyped_storage().nbytes()) for t in tensors)

    @property
    def device(self) -> torch.device:
        return self.value.device

    def to(self, device: torch.device | str) -> Self:
        return replace(self, **{name: getattr(self, name).to(device) for name in _TENSORS})

    @classmethod
    def concatenate(cls, tables: Sequence[Self]) -> Self:
        """The rows of several tables, in order."""
        joined = {name: torch.cat([getattr(t, name) for t in tables]) for name in ("index", "value", *_PER_ROW)}
        indptr = _bounds(torch.cat([t.indptr.diff() for t in tables]))
        return cls(indptr, **joined, exact=all(t.exact for t in tables))

    def __repr__(self) -> str:
        kind = "exact" if self.exact else "truncated"
        return (
            f"CandidateTable({kind}, num_nodes={self.num_nodes}, order={self.order}, "
            f"candidates_per_node={self.candidates_per_node:.1f}, dtype={str(self.value.dtype).removeprefix('torch.')})"
        )


def _bounds(size: Tensor) -> Tensor:
    return torch.cat([size.new_zeros(1), size.cumsum(0)])
