"""Time of one epoch of asgat-cheb, compared with PyG's GAT of the same width."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.config import ASGATConfig
from asgat.data import Dataset
from asgat.errors import AsgatError, suggest
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.pyg import GATConv
from asgat.nn.registry import make_config, model_spec
from asgat.training.inputs import make_inputs, normalise_rows
from asgat.tuning.space import CHEBYSHEV
from reproduce.bench.timing import Timer, asgat_timer, medians, plain_timer

DENSE_LIMIT = 6000  # the dense form is timed up to this many nodes
TABLE: dict[str, Any] = {"form": "table", "candidates": 32, "cap": 256}


def published_config(dataset: str, **changes: Any) -> ASGATConfig:
    """The published settings of asgat-cheb for a data set, with the table all benchmarks share."""
    if dataset not in CHEBYSHEV:
        raise AsgatError(f"No published settings for {dataset!r}. {suggest(dataset, list(CHEBYSHEV))}")
    config = make_config("asgat-cheb", **{**CHEBYSHEV[dataset], **TABLE, **changes})
    assert isinstance(config, ASGATConfig)
    return config


class GAT(nn.Module):
    """Two layers of PyG's ``GATConv``; with ``sparse`` the first product skips zeros, and all nodes need self-loops."""

    def __init__(self, in_channels: int, config: ASGATConfig, out_channels: int, sparse: bool = False) -> None:
        super().__init__()
        width = config.heads * config.hidden
        loops = not sparse  # the tuned form gets them with its edges: adding them waits for the device
        shared = {"dropout": config.dropout, "add_self_loops": loops}
        self.first = GATConv(in_channels, config.hidden, heads=config.heads, **shared)
        self.last = GATConv(width, out_channels, heads=1, concat=False, **shared)
        self.dropout = config.dropout
        if sparse:
            self.product = self.first.lin
            self.first.lin = nn.Identity()

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor) -> Tensor:
        if isinstance(x, SparseFeatures):
            hidden = x.dropout(self.dropout, self.training).linear(self.product.weight)
        else:
            hidden = F.dropout(x, self.dropout, self.training)
        hidden = F.elu(self.first(hidden, edge_index))
        out: Tensor = self.last(F.dropout(hidden, self.dropout, self.training), edge_index)
        return out


def bench_epoch(
    data: Dataset, config: ASGATConfig, device: torch.device, progress: Callable[[str], None], repeats: int = 7
) -> dict[str, Any]:
    """Milliseconds of one epoch on a data set, medians over interleaved repeats, and their ratios.

    GAT is timed as users write it (dense features, a plain loop), and tuned: sparse features and asgat's loop.
    """
    name = data.name
    progress(f"{name}: building the table")
    started = time.perf_counter()
    inputs = make_inputs(data, "asgat-cheb", config, device)
    build_s = time.perf_counter() - started
    edges, looped = (
        torch.from_numpy(data.graph.with_self_loops(loops).edge_index()).to(device)
        for loops in (config.self_loops, "add")
    )
    dense_x = torch.from_numpy(normalise_rows(data.x)).to(device)
    sparse_x = SparseFeatures.from_dense(dense_x, device)

    def asgat(own: Any) -> nn.Module:
        return model_spec("asgat-cheb").build(own, data.num_features, data.num_classes)

    def gat(own: Any, sparse: bool = False) -> nn.Module:
        return GAT(data.num_features, own, data.num_classes, sparse)

    contenders: dict[str, Timer] = {
        "asgat_ms": asgat_timer(asgat, inputs, data, config),
        "gat_ms": plain_timer(gat, (dense_x, edges), data, config),
        "gat_tuned_ms": asgat_timer(partial(gat, sparse=True), (sparse_x, looped), data, config),
    }
    if data.num_nodes <= DENSE_LIMIT:
        all_pairs = make_inputs(data, "asgat-cheb", config.replace(form="dense"), device)
        contenders["dense_ms"] = asgat_timer(asgat, all_pairs, data, config)
    slowest = {"dense_ms": 3}  # shown for orientation only
    median = medians(contenders, repeats, lambda text: progress(f"{name}: {text}"), slowest)
    return {
        "dataset": name,
        "nodes": data.num_nodes,
        **{key: median.get(key) for key in ("asgat_ms", "gat_ms", "gat_tuned_ms", "dense_ms")},
        "speedup_vs_gat": median["gat_ms"] / median["asgat_ms"],
        "speedup_vs_tuned_gat": median["gat_tuned_ms"] / median["asgat_ms"],
        "build_s": build_s,
        **{key: getattr(config, key) for key in ("candidates", "cap", "order")},
        "dtype": config.storage,
        "candidates_per_node": inputs[1].table.candidates_per_node,
    }
