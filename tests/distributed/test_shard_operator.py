"""The operators of two ranks against that of the whole graph: values and gradients of every row."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from tests.distributed.ranks import free_port
from torch import multiprocessing

from asgat.data.synthetic import contextual_sbm
from asgat.distributed.process_group import Group
from asgat.distributed.shard import InMemory, build_shard
from asgat.filters import PolynomialFilter
from asgat.graph import Graph
from asgat.nn.from_config import make_operator
from asgat.nn.registry import make_config

PLAIN: Any = dict(form="table", order=4, heads=2, hidden=4, k=3, candidates=6, channels="attention+filters+mean")


def graphs():
    """An undirected graph of several components, with isolated nodes and self-loops; and a directed one."""
    draw = np.random.default_rng(0)
    edges = draw.integers(0, 18, size=(2, 30))
    edges = np.concatenate([edges, draw.integers(22, 41, size=(2, 30))], axis=1)  # 18 to 21 have no edges
    weight = draw.uniform(0.5, 2.0, size=60)
    return [Graph.from_edges(edges, 41, weight, directed=directed) for directed in (False, True)]


def check(rank, ranks, port):
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    group = Group(rank, ranks, torch.device("cpu"))
    for graph in graphs():
        compare(graph, group)
    dist.destroy_process_group()


def compare(graph, group):
    data = dataclasses.replace(contextual_sbm(num_nodes=41, num_features=3, seed=0), graph=graph)
    config: Any = make_config("asgat-deep", **PLAIN)
    copies = 2 if graph.directed else 1
    whole: Any = make_operator(graph, config, dtype=torch.float64)
    shard = build_shard(InMemory(data, config), "asgat-deep", config, group, torch.float64)
    operator, rows = shard.operator, slice(copies * shard.first, copies * shard.last)
    filter = PolynomialFilter(2).double()
    with torch.no_grad():
        for parameter in filter.parameters():
            parameter.copy_(torch.linspace(-1.0, 1.0, parameter.numel()).view_as(parameter))
    draw = torch.Generator().manual_seed(1)
    size = copies * data.num_nodes
    signal = torch.randn(size, 6, dtype=torch.float64, generator=draw)
    both = torch.randn(2, size, 6, dtype=torch.float64, generator=draw)
    by_node = torch.randn(data.num_nodes, 6, dtype=torch.float64, generator=draw)
    own_nodes = slice(shard.first, shard.last)
    cases: list[tuple[Any, Any, Any, Any]] = [
        (lambda op, x: op.filter_channels(filter, x), signal, (rows,), (rows,)),
        (lambda op, x: op.apply(filter, x), signal, (rows,), (slice(None), rows)),
        (lambda op, x: op.apply(filter, x), both, (slice(None), rows), (slice(None), rows)),
        (lambda op, x: op.neighbour_mean(x), by_node, (own_nodes,), (rows,)),
    ]
    for function, x, taken, given in cases:
        one, part = x.clone().requires_grad_(), x[taken].clone().requires_grad_()
        truth, found = function(whole, one), function(operator, part)
        torch.testing.assert_close(found, truth[given], atol=1e-12, rtol=0)
        grad = torch.randn(truth.shape, dtype=torch.float64, generator=draw)
        weights = [one, *filter.parameters()]
        expected = torch.autograd.grad(truth, weights, grad, allow_unused=True)
        got = torch.autograd.grad(found, [part, *filter.parameters()], grad[given], allow_unused=True)
        torch.testing.assert_close(got[0], expected[0][taken], atol=1e-12, rtol=0)
        for ours, theirs in zip(got[1:], expected[1:], strict=True):
            assert (ours is None) == (theirs is None)
            if theirs is not None:
                torch.testing.assert_close(group.sum(ours.clone()), theirs, atol=1e-10, rtol=0)
    # The same nodes are selected, with the same scores, and their rows arrive.
    (index, score), (truth_index, truth_score) = operator.top(filter, 3), whole.top(filter, 3)
    torch.testing.assert_close(score, truth_score[:, rows])
    kept = score > -torch.inf
    gathered = operator.exchange(signal[rows].clone())
    assert torch.equal(gathered[index.long()][kept], signal[truth_index.long()[:, rows]][kept])
    certificate, truth_bound = operator.certify(filter, index, score), whole.certify(filter, truth_index, truth_score)
    torch.testing.assert_close(certificate.bound, truth_bound.bound[:, rows])
    pairs, _ = operator.scores(filter)
    assert pairs.size(0) == operator.num_nodes
    assert operator.to(dtype=torch.float64) is operator
    moved = operator.to(dtype=torch.float32)
    assert moved.filter_channels(filter.float(), signal[rows].float()).dtype == torch.float32
    assert moved.neighbour_mean(by_node[own_nodes].float()).dtype == torch.float32


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_rows_of_ranks_are_those_of_the_whole_graph(ranks):
    spawn: Any = multiprocessing.spawn  # type: ignore[attr-defined]
    spawn(check, (ranks, free_port()), nprocs=ranks)
