import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from asgat.config import ASGATDeepConfig
from asgat.data import load_dataset
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from reproduce.bench.deep_epoch import ResidualSAGE, SAGEBlock, bench_deep_epoch, csr_tensor, edge_list

CPU = torch.device("cpu")
QUICK: dict[str, Any] = {"hidden": 4, "heads": 2, "k": 3, "order": 4, "layers": 2}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("channels", "products"), [("filters", 4), ("filters+mean", 5), ("attention+filters", None)])
def test_rows_have_times_and_ratios(directed, channels, products):
    said: list[str] = []
    club = load_dataset("karate")
    club = replace(club, graph=Graph.from_edges(club.graph.edges_once()[0], 34, directed=directed))
    config = ASGATDeepConfig(**QUICK, channels=channels)
    row = bench_deep_epoch(club, config, CPU, said.append, repeats=1)
    times = [row[key] for key in ("asgat_ms", "sage_ms", "sage_tuned_ms")]
    assert all(math.isfinite(t) and t > 0 for t in times)
    assert row["ratio_to_sage"] == pytest.approx(times[0] / times[1])
    assert row["ratio_to_tuned_sage"] == pytest.approx(times[0] / times[2])
    assert row["products_per_layer"] == products
    if products:
        assert row["ratio_per_product"] == pytest.approx(row["ratio_to_tuned_sage"] / products)
    else:
        assert row["ratio_per_product"] is None
    assert (row["dataset"], row["layers"], row["hidden"], row["channels"]) == ("karate", 2, 4, channels)
    assert "karate: repeat 1 of 1" in said


def random_edges(nodes=12):
    rng = np.random.default_rng(0)
    return sp.csr_array(rng.random((nodes, nodes)) < 0.25).astype(np.float32)


def test_the_block_is_that_of_the_deep_model_with_means():
    """W2 GELU(W1 [z, S z]) + h, with S the mean over the nodes that point to a node and a linear map."""
    matrix = random_edges()
    torch.manual_seed(0)
    block = SAGEBlock(6, 0.0, directions=2)
    h = torch.randn(12, 6)
    out = block(h, edge_list(matrix.T), edge_list(matrix))
    z = block.norm(h)
    parts = [z]
    for conv, rows in zip(block.convs, (matrix.T, matrix), strict=True):
        dense = torch.from_numpy(rows.toarray())
        mean = dense / dense.sum(1, keepdim=True).clamp(min=1)
        parts.append(conv.get_submodule("lin_l")(mean @ z))
    expected = h + block.second(torch.nn.functional.gelu(block.first(torch.cat(parts, dim=-1))))
    torch.testing.assert_close(out, expected)


def test_the_tuned_form_is_the_plain_one():
    """Sparse features and sparse matrices: the same output and gradients."""
    matrix = random_edges()
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((12, 9)) * (rng.random((12, 9)) < 0.3)).astype(np.float32)
    torch.manual_seed(0)
    net = ResidualSAGE(9, ASGATDeepConfig(hidden=6, layers=2, dropout=0.0), 3, directions=2)
    found = []
    for features, convert in ((torch.from_numpy(x), edge_list), (SparseFeatures.from_dense(x), csr_tensor)):
        out = net(features, convert(matrix.T), convert(matrix))
        found.append([out.detach(), *torch.autograd.grad(out.square().sum(), list(net.parameters()))])
    for plain, tuned in zip(*found, strict=True):
        torch.testing.assert_close(tuned, plain, atol=1e-5, rtol=1e-4)


def test_dropout_acts_in_training_only():
    net = ResidualSAGE(4, ASGATDeepConfig(hidden=6, layers=1, dropout=0.5), 3)
    x, edges = torch.rand(12, 4), edge_list(random_edges())
    assert not torch.equal(net(x, edges), net(x, edges))
    net.eval()
    assert torch.equal(net(x, edges), net(x, edges))
