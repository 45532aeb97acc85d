"""Compiled primitives: numba on CPU, Triton on CUDA, each a PyTorch operator with gradients.

Importing this package loads neither; the first call on a device does, and compiles what it needs.
"""

from asgat.kernels.chebyshev import chebyshev_filter
from asgat.kernels.csr_matmul import csr_matmul
from asgat.kernels.dropout import dropout
from asgat.kernels.elu import elu
from asgat.kernels.gather_elu import gather_elu
from asgat.kernels.gather_linear import gather_linear
from asgat.kernels.gather_sum import gather_sum
from asgat.kernels.ragged_rows import RaggedRows
from asgat.kernels.row_softmax import row_softmax
from asgat.kernels.select import nodes_at, rescore, select_top

__all__ = [
    "RaggedRows",
    "chebyshev_filter",
    "csr_matmul",
    "dropout",
    "elu",
    "gather_elu",
    "gather_linear",
    "gather_sum",
    "nodes_at",
    "rescore",
    "row_softmax",
    "select_top",
]
