"""The graph of a folder as a graph in memory: its arrays are maps, of which only the parts in use are read."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asgat.graph import Graph


class MappedGraph(Graph):
    """An undirected graph that stays in its folder. Nothing but its sizes is read until it is used.

    Args:
        source: the :class:`~asgat.disk.disk_graph.OnDiskGraph` of the folder.
    """

    source: Any

    def __init__(self, source: Any) -> None:
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "directed", False)

    @cached_property
    def adjacency(self) -> sp.csr_array:
        indptr, indices, weight = self.arrays
        return sp.csr_array((weight, indices, indptr), shape=(self.num_nodes, self.num_nodes))

    @cached_property
    def arrays(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        indptr, indices, weight = self.source.adjacency()
        return indptr, indices, np.broadcast_to(1.0, len(indices)) if weight is None else weight

    @property
    def num_nodes(self) -> int:
        return int(self.source.num_nodes)

    @property
    def num_entries(self) -> int:
        return int(self.source.num_entries)

    @cached_property
    def shifted(self) -> Any:
        return self.source.matrix()

    @cached_property
    def normalised_adjacency(self) -> sp.csr_array:
        rows = self.shifted
        return sp.csr_array((-rows.data, rows.indices, rows.indptr), shape=(self.num_nodes, self.num_nodes))

    @cached_property
    def digest(self) -> str:
        return str(self.source.graph_digest())

    @property
    def folder(self) -> Path:
        return Path(self.source.path)
