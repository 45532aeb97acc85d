"""What one rank holds: its block of nodes, with their features, labels and operator."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from asgat.config import SpectralConfig, TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.data.digest import dataset_digest
from asgat.disk.disk_graph import OnDiskGraph
from asgat.disk.graph_table import check_self_loops
from asgat.distributed.exchange import Exchange, block_bounds
from asgat.distributed.process_group import Group
from asgat.distributed.shard_operator import AttentionRows, FilterRows, MeanRows, ShardOperator
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures, features_tensor, sparse_below
from asgat.nn.asgat import append_adjacency
from asgat.nn.memory_plan import choose_form, step_size, table_settings
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation
from asgat.tables import RowOperator
from asgat.tables.candidate_table import Progress
from asgat.tables.sparse_rows import SparseRows
from asgat.tables.table_cache import TableRecipe, cached_table, caches_for
from asgat.training.inputs import check_direction, graph_for, normalise_rows


class InMemory:
    """A data set that every rank has read whole, to take its part of, with the graph that some settings mean."""

    def __init__(self, dataset: Dataset, config: TrainConfig) -> None:
        self.dataset = dataset
        graph = graph_for(dataset, config)
        self.graph = graph.spectral_graph  # of a directed one its double cover
        self.name, self.metric, self.protocol = dataset.name, dataset.metric, dataset.protocol
        self.num_nodes, self.num_entries = dataset.num_nodes, graph.num_entries
        self.num_features, self.num_classes = dataset.num_features, dataset.num_classes
        self.num_splits, self.directed, self.folder = len(dataset.splits), dataset.directed, None

    def digest(self) -> str:
        return dataset_digest(self.dataset)

    def graph_digest(self) -> str:
        return self.graph.digest

    def matrix(self) -> SparseRows:
        return SparseRows.of(self.graph.shifted)

    def entries_before(self) -> npt.NDArray[Any]:
        """The number of entries in the rows of the nodes before each node, and of all, [N + 1]."""
        return self.graph.adjacency.indptr[:: 2 if self.directed else 1]

    def features_before(self) -> npt.NDArray[Any]:
        """The number of non-zero features of the nodes before each node, and of all, [N + 1]."""
        return np.concatenate([[0], np.cumsum(np.count_nonzero(self.dataset.x, axis=1))])

    def mean_rows(self, first: int, last: int) -> sp.csr_array:
        return self.graph.mean_adjacency[first:last]

    def features(self, first: int, last: int) -> npt.NDArray[np.float32]:
        return self.dataset.x[first:last]

    def labels(self, first: int, last: int) -> npt.NDArray[np.int64]:
        return self.dataset.y[first:last]

    def split(self, number: int, first: int, last: int) -> Split:
        parts = self.dataset.splits[number].parts().values()
        return Split(*(nodes[(nodes >= first) & (nodes < last)] - first for nodes in parts))


Source = OnDiskGraph | InMemory  # where ranks read their parts from


def check_distributed(model: str, config: TrainConfig, source: Source) -> str:
    """The form of the operator: ``"exact table"``, ``"truncated table"``, or ``"matrix"`` where nothing is scored.

    Refuses what ranks cannot share out.
    """
    if not isinstance(config, SpectralConfig):
        raise AsgatError(f"{model} cannot be trained in parts; --distributed is for the ASGAT models.")
    if config.operator != "chebyshev":
        raise AsgatError(f"operator = {config.operator} cannot be trained in parts; --distributed needs chebyshev.")
    check_direction(source, model)
    if not isinstance(source, InMemory):
        check_self_loops(config)
        if config.similar:
            raise AsgatError("A graph on disk has the edges it was converted with; set similar=0.")
    # It counts nodes and entries, and asks for nothing else.
    form = choose_form(source.graph if isinstance(source, InMemory) else cast(Graph, source), config)
    if form in ("dense", "exact"):
        raise AsgatError(f"The {form} form scores all pairs and cannot be trained in parts; --set form=table.")
    return form


@dataclass(frozen=True, eq=False)
class Shard:
    """One rank's part: features, labels and operator of the nodes ``first`` to ``last - 1``."""

    first: int
    last: int
    x: Tensor | SparseFeatures
    y: Tensor
    operator: ShardOperator

    def step_bytes(self, config: SpectralConfig) -> int:
        """What a training step holds at one time, by the memory plan and with the rows it gets from others."""
        operator = self.operator
        received = operator.attention.exchange.num_needed if operator.attention else 0
        parts = step_size(config, len(self.y), operator.num_nodes, config.k or 0, operator.device)
        return sum(parts) + (config.layers + 2) * received * config.hidden * operator.dtype.itemsize

    def figures(self) -> dict[str, Any]:
        operator, x = self.operator, self.x
        table = operator.table
        return {
            "nodes": self.last - self.first,
            "table_mb": 0.0 if table is None else table.nbytes / 2**20,
            "features_mb": x.nbytes / 2**20,
            "candidates_per_node": 0.0 if table is None else table.candidates_per_node,
            "needed_rows": operator.attention.exchange.num_needed if operator.attention else 0,
            "boundary_rows": operator.boundary_rows,
        }


def build_shard(
    source: Source,
    model: str,
    config: TrainConfig,
    group: Group,
    dtype: torch.dtype = torch.float32,
    progress: Progress | None = None,
) -> Shard:
    """Builds a rank's part: reads its rows, builds its rows of the table, agrees with the others on what to exchange.

    The table takes rows · |C| · (4 + (R + 1) · itemsize) bytes, and while it is built 5 bytes per node of the graph.
    """
    form = check_distributed(model, config, source)
    assert isinstance(config, SpectralConfig)
    nodes = divide(source, config, form, group)
    bounds = (2 if source.directed else 1) * nodes  # of rows: both copies of a node are on its rank
    (first, last), (start, end) = (part[group.rank : group.rank + 2].tolist() for part in (nodes, bounds))
    channels = getattr(config, "channels", "filters" if getattr(config, "propagate", False) else "")
    own = rows_of(source.matrix(), start, end) if "filters" in channels or config.adjacency else None
    interpolation = ChebyshevInterpolation(config.order, dtype=dtype, device=group.device)
    operator = ShardOperator(group, bounds, interpolation)
    if form != "matrix":
        graph = source.graph if isinstance(source, InMemory) else source
        settings = table_settings(int(bounds[-1]), config, form)
        sizes = source.graph_digest(), int(bounds[-1]), graph.num_entries
        recipe = TableRecipe(*sizes, settings, device=group.device.type, rows=range(start, end))
        table = cached_table(recipe, source.matrix, caches_for(source.folder), progress)
        held = RowOperator(table, settings.candidates, interpolation)
        operator.attention = AttentionRows.of(held, Exchange(group, bounds, table.index))
    if own is not None and "filters" in channels:
        operator.filters = FilterRows.of(own, Exchange(group, bounds, torch.from_numpy(own.indices)), dtype)
    if "mean" in channels:
        mean = source.mean_rows(start, end)
        mean.indices //= 2 if source.directed else 1  # both copies of a node have its row
        operator.means = MeanRows.of(mean, Exchange(group, nodes, torch.from_numpy(mean.indices)), dtype)
    x = shard_features(source.features(first, last), config, group.device, dtype, own if config.adjacency else None)
    return Shard(first, last, x, torch.from_numpy(source.labels(first, last)).to(group.device), operator)


def divide(source: Source, config: SpectralConfig, form: str, group: Group) -> npt.NDArray[np.int64]:
    """The blocks of nodes of all ranks, [ranks + 1]: contiguous, with about the same share of table and features each.

    How many candidates a node has is known only when they are found. An exact table keeps a node's neighbours and, for
    every order, as many more for each node: half of it is taken to go by entries and half by nodes. A row of a
    truncated table has one size.
    """
    n, entries = source.num_nodes, source.entries_before()
    features = source.features_before() if isinstance(source, InMemory) else None  # those on disk are not read for it

    def stored(v: int) -> int:
        """Non-zero features of the first v nodes, with the adjacency rows that follow them."""
        counted = v * source.num_features if features is None else int(features[v])
        return counted + (int(entries[v]) if config.adjacency else 0)

    copies = 2 if source.directed else 1
    width = source.num_features + (copies * n if config.adjacency else 0)
    sparse = stored(n) < sparse_below(group.device) * n * width

    def cost(v: int) -> float:
        in_nodes = v / n
        in_entries = int(entries[v]) / max(1, int(entries[-1]))
        table = in_nodes if form == "truncated table" else (in_nodes + in_entries) / 2
        return table + (stored(v) / max(1, stored(n)) if sparse else in_nodes)

    return block_bounds(n, group.size, cost)


def rows_of(matrix: SparseRows, first: int, last: int) -> sp.csr_array:
    """A copy of some rows of X."""
    bounds = matrix.indptr[first : last + 1]
    entries = slice(int(bounds[0]), int(bounds[-1]))
    arrays = matrix.data[entries].copy(), matrix.indices[entries].copy(), bounds - bounds[0]
    return sp.csr_array(arrays, shape=(last - first, matrix.num_nodes))


def shard_features(
    x: npt.NDArray[np.float32],
    config: TrainConfig,
    device: torch.device,
    dtype: torch.dtype,
    shifted: sp.csr_array | None = None,
) -> Tensor | SparseFeatures:
    """Features in the form that is faster to multiply.

    ``shifted`` are the nodes' rows of X where adjacency rows follow the features.
    """
    x = normalise_rows(x) if config.normalize_features else x
    if shifted is not None:
        return features_tensor(append_adjacency(x, -shifted), device, dtype)
    if np.count_nonzero(x) >= sparse_below(device) * x.size:
        return torch.from_numpy(x).to(device, dtype)  # without the copy that features_tensor makes
    return features_tensor(x, device, dtype)
