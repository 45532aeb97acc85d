"""Time of one epoch of asgat-deep, compared with a residual GraphSAGE of the same width and depth."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asgat.config import ASGATDeepConfig
from asgat.data import Dataset
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn.pyg import SAGEConv
from asgat.nn.registry import model_spec
from asgat.spectral.shifted_laplacian import torch_csr
from asgat.training.inputs import graph_for, make_inputs
from asgat.training.runner import model_sizes
from reproduce.bench.timing import asgat_timer, medians, plain_timer


class SAGEBlock(nn.Module):
    """The residual block of asgat-deep, with PyG's ``SAGEConv`` in place of attention and filters.

    Its mean is over neighbours; with two lists of edges, one of them reversed, over out- and over in-neighbours.
    """

    def __init__(self, channels: int, dropout: float, directions: int) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(channels), dropout
        self.convs = nn.ModuleList(SAGEConv(channels, channels, root_weight=False) for _ in range(directions))
        self.first, self.second = nn.Linear((1 + directions) * channels, channels), nn.Linear(channels, channels)

    def forward(self, h: Tensor, *edges: Tensor) -> Tensor:
        z = self.norm(h)
        means = [conv(z, edge_index) for conv, edge_index in zip(self.convs, edges, strict=True)]
        hidden = F.gelu(self.first(torch.cat([z, *means], dim=-1)))
        out: Tensor = h + self.second(F.dropout(hidden, self.dropout, self.training))
        return out


class ResidualSAGE(nn.Module):
    """asgat-deep with :class:`SAGEBlock` s; x may be dense or sparse."""

    def __init__(self, in_channels: int, config: ASGATDeepConfig, out_channels: int, directions: int = 1) -> None:
        super().__init__()
        self.first, self.dropout = nn.Linear(in_channels, config.hidden), config.dropout
        self.blocks = nn.ModuleList(SAGEBlock(config.hidden, config.dropout, directions) for _ in range(config.layers))
        self.norm, self.last = nn.LayerNorm(config.hidden), nn.Linear(config.hidden, out_channels)

    def forward(self, x: Tensor | SparseFeatures, *edges: Tensor) -> Tensor:
        h = x.linear(self.first.weight) + self.first.bias if isinstance(x, SparseFeatures) else self.first(x)
        h = F.dropout(F.gelu(h), self.dropout, self.training)
        for block in self.blocks:
            h = block(h, *edges)
        out: Tensor = self.last(self.norm(h))
        return out


def edge_list(matrix: Any) -> Tensor:
    """The edges u → v of a matrix with an entry in row v and column u for each, [2, E]."""
    target, source = matrix.nonzero()
    return torch.from_numpy(np.stack([source, target]).astype(np.int64))


def csr_tensor(matrix: Any) -> Tensor:
    """The same edges as PyTorch's sparse matrix; PyG then multiplies instead of collecting messages."""
    rows = sp.csr_array(matrix, copy=True)
    rows.data[:] = 1.0
    return torch_csr(rows, torch.float32, torch.device("cpu"))


def bench_deep_epoch(
    data: Dataset, config: ASGATDeepConfig, device: torch.device, progress: Callable[[str], None], repeats: int = 7
) -> dict[str, Any]:
    """Milliseconds of one epoch of a single network on a data set, and their ratios.

    GraphSAGE is timed in the usual form (dense features, an edge list, a plain loop) and tuned: with the features
    and the loop of asgat-deep and, on the CPU, a sparse matrix instead of the edge list. Where a block has no
    attention, its sparse products are counted: R for filters, one for the mean; GraphSAGE has one. A directed graph
    doubles the products of both.
    """
    name, config = data.name, config.replace(members=1)
    progress(f"{name}: preparing the graph")
    x, operator = make_inputs(data, "asgat-deep", config, device)
    adjacency = graph_for(data, config).adjacency
    matrices = [adjacency.T, adjacency] if data.directed else [adjacency]
    edges = [edge_list(matrix).to(device) for matrix in matrices]
    tuned_edges = [csr_tensor(matrix) for matrix in matrices] if device.type == "cpu" else edges
    dense_x = x.to_dense() if isinstance(x, SparseFeatures) else x

    def asgat(own: Any) -> nn.Module:
        return model_spec("asgat-deep").make(own, **model_sizes(data))

    def sage(own: Any) -> nn.Module:
        return ResidualSAGE(x.shape[1], own, data.num_classes, len(edges))

    median = medians(
        {
            "asgat_ms": asgat_timer(asgat, (x, operator), data, config),
            "sage_ms": plain_timer(sage, (dense_x, *edges), data, config),
            "sage_tuned_ms": asgat_timer(sage, (x, *tuned_edges), data, config),
        },
        repeats,
        lambda text: progress(f"{name}: {text}"),
    )
    ratio = median["asgat_ms"] / median["sage_tuned_ms"]
    products = config.order * ("filters" in config.channels) + ("mean" in config.channels)
    return {
        "dataset": name,
        "nodes": data.num_nodes,
        **median,
        "ratio_to_sage": median["asgat_ms"] / median["sage_ms"],
        "ratio_to_tuned_sage": ratio,
        "products_per_layer": None if config.attends else products,
        "ratio_per_product": None if config.attends else ratio / products,
        **{key: getattr(config, key) for key in ("layers", "hidden", "heads", "k", "order", "channels", "adjacency")},
    }
