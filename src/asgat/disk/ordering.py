"""An order of the nodes in which contiguous blocks have few edges between them."""

from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from asgat.errors import AsgatError

Order = Literal["none", "rcm", "metis"]
ORDERS: tuple[Order, ...] = ("none", "rcm", "metis")
METIS_PARTS = 64  # blocks METIS cuts a graph into: neighbouring ranks get whole ones


def locality_order(
    indptr: Any, indices: Any, order: Order, parts: int = METIS_PARTS, directed: bool = False
) -> npt.NDArray[np.int64]:
    """The nodes in their new order: ``result[i]`` is the node that becomes number i.

    ``"rcm"`` is reverse Cuthill-McKee, O(E log degree) time and about 10 bytes per entry of memory; ``"metis"`` puts
    the nodes of each of METIS's parts together and needs the extra ``asgat[metis]`` and about 16 bytes per entry;
    ``"none"`` leaves them as they are. The adjacency matrix is in CSR form, and symmetric unless ``directed``;
    directions are ignored, which takes about 20 more bytes per entry.
    """
    n = len(indptr) - 1
    if order == "none" or n == 0 or not len(indices):
        return np.arange(n, dtype=np.int64)
    if directed:
        matrix = _pattern(indptr, indices, n)
        both = sp.csr_array(matrix + matrix.T)
        indptr, indices = both.indptr, both.indices
    if order == "rcm":
        matrix = _pattern(indptr, indices, n)
        return reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int64)
    if order == "metis":
        try:
            pymetis = import_module("pymetis")
        except ImportError:
            raise AsgatError("METIS is not installed; `pip install 'asgat[metis]'`, or use --order rcm.") from None
        rows = pymetis.CSRAdjacency(adj_starts=np.asarray(indptr), adjacent=np.asarray(indices))
        _, part = pymetis.part_graph(min(parts, n), adjacency=rows)
        return np.argsort(np.asarray(part), kind="stable").astype(np.int64)
    raise AsgatError(f"order must be one of {', '.join(ORDERS)}, not {order!r}.")


def _pattern(indptr: Any, indices: Any, n: int) -> sp.csr_array:
    ones = np.ones(len(indices), dtype=np.int8)
    return sp.csr_array((ones, np.asarray(indices), np.asarray(indptr)), shape=(n, n))
