"""A square sparse matrix as plain arrays, for compiled loops."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asgat.errors import AsgatError


@dataclass(frozen=True, eq=False)
class SparseRows:
    """X in CSR form: indices ascending and all different inside a row, no stored zeros.

    With ``records`` (what the truncated builder reads of a node, computed before) the arrays are maps of files, private
    to the process: parts of them may be reordered in place, and parts that are not used are never read.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    data: npt.NDArray[np.float64]
    records: npt.NDArray[Any] | None = None

    @classmethod
    def of(cls, shifted: Any) -> "SparseRows":
        """From a SciPy sparse matrix; copied only if it is not in this form."""
        if isinstance(shifted, SparseRows):
            return shifted
        if shifted.ndim != 2 or shifted.shape[0] != shifted.shape[1]:
            raise AsgatError(f"X must be square, not {shifted.shape}.")
        matrix = sp.csr_array(shifted)
        if not matrix.has_canonical_format or (matrix.data == 0).any():
            matrix = matrix.copy()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
        return cls(
            matrix.indptr.astype(np.int64, copy=False),
            matrix.indices.astype(np.int32, copy=False),
            matrix.data.astype(np.float64, copy=False),
        )

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1
