"""What one rank holds, its block of nodes and their rows of the candidate table, and the rows it gets from others."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from asgat.config import ASGATConfig, TrainConfig
from asgat.data.dataset import Dataset, Split
from asgat.data.digest import dataset_digest
from asgat.disk.disk_graph import OnDiskGraph
from asgat.disk.graph_table import check_self_loops
from asgat.distributed.process_group import Group
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures, features_tensor
from asgat.nn.memory_plan import choose_form, table_settings
from asgat.nn.registry import model_spec
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation
from asgat.tables import RowOperator
from asgat.tables.candidate_table import Progress
from asgat.tables.sparse_rows import SparseRows
from asgat.tables.table_cache import TableRecipe, cached_table, caches_for
from asgat.training.inputs import normalise_rows

# Settings whose meaning does not change when the nodes are divided among ranks; any other must be at its default.
KNOWN = {
    "lr", "weight_decay", "dropout", "hidden", "layers", "epochs", "patience", "max_restarts", "normalize_features",
    "self_loops", "heads", "out_heads", "k", "elu", "root", "mix", "gain", "jump", "form", "candidates", "cap",
    "storage", "builder", "neighbourhood", "order", "filter", "filter_hidden", "filter_activation", "exact_sums",
    "heat_scale", "fit_error",
}  # fmt: skip


def block_bounds(num_nodes: int, ranks: int) -> npt.NDArray[np.int64]:
    """Where the blocks of nodes begin and end, [ranks + 1]: contiguous, their sizes at most one apart."""
    return np.arange(ranks + 1, dtype=np.int64) * num_nodes // ranks


class Exchange:
    r"""Gathers, for the nodes a rank attends to, their rows from the ranks that own them.

    A rank owns the nodes ``bounds[rank]`` to ``bounds[rank + 1] - 1`` and names once the nodes of others it needs.
    Every call then sends each rank what it asked for and nothing else, and the gradient of the rows received goes back
    to their owners, who add it up: O(needed · F) numbers each way. x [own, F] becomes [own + needed, F], the rank's own
    rows first. ``needed`` is ascending.
    """

    def __init__(self, group: Group, bounds: npt.NDArray[np.int64], needed: npt.NDArray[np.int64]) -> None:
        self.group, self.num_needed = group, len(needed)
        first, last = bounds[group.rank : group.rank + 2].tolist()
        self.own = last - first
        counts = torch.from_numpy(np.diff(np.searchsorted(needed, bounds))).to(group.device)
        asked = torch.empty_like(counts)
        dist.all_to_all_single(asked, counts)
        self.receives, self.sends = counts.tolist(), asked.tolist()
        wanted = asked.new_empty(sum(self.sends))
        dist.all_to_all_single(
            wanted, torch.from_numpy(np.ascontiguousarray(needed)).to(group.device), self.sends, self.receives
        )
        self.rows = wanted - first

    def __call__(self, x: Tensor) -> Tensor:
        out: Tensor = _Exchange.apply(x, self)  # type: ignore[no-untyped-call]
        return out

    def shared(self, weight: Tensor) -> Tensor:
        """A weight that all ranks hold, in double precision: its gradient is summed over them, and then rounded."""
        out: Tensor = _Shared.apply(weight, self.group)  # type: ignore[no-untyped-call]
        return out


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, exchange: Exchange) -> Tensor:
        ctx.exchange = exchange
        out = x.new_empty(exchange.own + exchange.num_needed, x.size(1))
        out[: exchange.own] = x
        sent = x.index_select(0, exchange.rows)
        dist.all_to_all_single(out[exchange.own :], sent, exchange.receives, exchange.sends)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        exchange = ctx.exchange
        back = grad.new_empty(exchange.rows.numel(), grad.size(1))
        dist.all_to_all_single(back, grad[exchange.own :].contiguous(), exchange.sends, exchange.receives)
        return grad[: exchange.own].clone().index_add_(0, exchange.rows, back), None


class _Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, group: Group) -> Tensor:
        ctx.group, ctx.dtype = group, weight.dtype
        return weight.to(torch.float64, copy=True)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.group.sum(grad.clone(memory_format=torch.contiguous_format)).to(ctx.dtype), None


class InMemory:
    """A data set that every rank has read whole, to take its part of, with the ``self_loops`` of some settings."""

    def __init__(self, dataset: Dataset, config: TrainConfig) -> None:
        self.dataset = dataset
        self.graph = dataset.graph.with_self_loops(config.self_loops)  # `similar` is refused
        self.name, self.metric, self.protocol = dataset.name, dataset.metric, dataset.protocol
        self.num_nodes, self.num_entries = dataset.num_nodes, self.graph.num_entries
        self.num_features, self.num_classes = dataset.num_features, dataset.num_classes
        self.num_splits, self.directed, self.folder = len(dataset.splits), dataset.directed, self.graph.folder

    def digest(self) -> str:
        return dataset_digest(self.dataset)

    def graph_digest(self) -> str:
        return self.graph.digest

    def matrix(self) -> SparseRows:
        return SparseRows.of(self.graph.shifted)

    def features(self, first: int, last: int) -> npt.NDArray[np.float32]:
        return self.dataset.x[first:last]

    def labels(self, first: int, last: int) -> npt.NDArray[np.int64]:
        return self.dataset.y[first:last]

    def split(self, number: int, first: int, last: int) -> Split:
        parts = self.dataset.splits[number].parts().values()
        return Split(*(nodes[(nodes >= first) & (nodes < last)] - first for nodes in parts))


Source = OnDiskGraph | InMemory  # where ranks read their parts from


def check_distributed(model: str, config: TrainConfig, source: Source) -> str:
    """The form of the table, ``"exact table"`` or ``"truncated table"``; refuses what ranks cannot share out."""
    spec = model_spec(model)
    if not isinstance(config, ASGATConfig):
        raise AsgatError(f"{model} cannot be trained in parts; --distributed is for the ASGAT models on a table.")
    if config.operator != "chebyshev":
        raise AsgatError(f"operator = {config.operator} cannot be trained in parts; --distributed needs chebyshev.")
    if source.directed:
        raise AsgatError("A directed graph cannot be trained in parts; leave out --distributed.")
    for key, value in vars(config).items():
        if key not in KNOWN and value != getattr(spec.config(), key):
            raise AsgatError(f"{key} = {value} cannot be trained in parts; leave it out with --distributed.")
    if not isinstance(source, InMemory):
        check_self_loops(config)
    form = choose_form(cast(Graph, source), config)  # counts nodes and entries, and asks for nothing else
    if "table" not in form:
        raise AsgatError(f"The {form} form scores all pairs and cannot be trained in parts; --set form=table.")
    return form


@dataclass(frozen=True, eq=False)
class Shard:
    """One rank's part: features, labels and rows of the table of the nodes ``first`` to ``last - 1``."""

    first: int
    last: int
    x: Tensor | SparseFeatures
    y: Tensor
    operator: RowOperator
    exchange: Exchange  # through which comes what they attend to

    def figures(self) -> dict[str, Any]:
        table = self.operator.table
        return {
            "nodes": self.last - self.first,
            "table_mb": table.nbytes / 2**20,
            "candidates_per_node": table.candidates_per_node,
            "needed_rows": self.exchange.num_needed,
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
    assert isinstance(config, ASGATConfig)
    bounds = block_bounds(source.num_nodes, group.size)
    first, last = int(bounds[group.rank]), int(bounds[group.rank + 1])
    settings = table_settings(source.num_nodes, config, form)
    sizes = source.graph_digest(), source.num_nodes, source.num_entries
    recipe = TableRecipe(*sizes, settings, device=group.device.type, rows=range(first, last))
    table = cached_table(recipe, source.matrix, caches_for(source.folder), progress)
    touched = torch.zeros(source.num_nodes, dtype=torch.bool)
    touched[table.index.cpu().long()] = True
    touched[first:last] = False
    needed = touched.nonzero().squeeze(1).numpy()
    number = torch.zeros(source.num_nodes, dtype=torch.int32)
    number[first:last] = torch.arange(last - first, dtype=torch.int32)
    number[touched] = torch.arange(last - first, last - first + len(needed), dtype=torch.int32)
    exchange = Exchange(group, bounds, needed)
    interpolation = ChebyshevInterpolation(config.order, dtype=dtype, device=group.device)
    held = RowOperator(table, settings.candidates, interpolation, config.exact_sums)
    operator = held.renumbered(number.to(group.device), last - first, exchange, exchange.shared)
    x = source.features(first, last)
    y = torch.from_numpy(source.labels(first, last)).to(group.device)
    return Shard(first, last, shard_features(x, config, group.device, dtype), y, operator, exchange)


def shard_features(
    x: npt.NDArray[np.float32], config: TrainConfig, device: torch.device, dtype: torch.dtype
) -> Tensor | SparseFeatures:
    """Features in the form that is faster to multiply; a dense matrix is not made sparse to find out."""
    x = normalise_rows(x) if config.normalize_features else x
    threshold = 0.15 if device.type == "cpu" else 0.05
    if np.count_nonzero(x) >= threshold * x.size:
        return torch.from_numpy(x).to(device, dtype)
    return features_tensor(x, device, dtype, threshold)
