"""Joined rows that are never stored, against stored ones; when they are not."""

import importlib

import numpy as np
import pytest
import torch
from torch import Tensor

from asgat.graph import Graph
from asgat.kernels import gather_linear
from asgat.nn import ASGATDeep, joined_linear
from asgat.nn.joined_linear import IN_BLOCKS, in_blocks

kernel = importlib.import_module("asgat.kernels.gather_linear")
CHANNELS = ["attention", "attention+filters", "attention+filters+mean", "filters"]
X = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))


def graph(directed: bool) -> Graph:
    rng = np.random.default_rng(0)
    return Graph.from_edges(rng.integers(0, 30, (2, 70)), 30, rng.uniform(0.5, 2.0, 70), directed=directed)


def model(seed: int = 0, directed: bool = False, channels="attention+filters", dropout: float = 0.4) -> ASGATDeep:
    torch.manual_seed(seed)
    return ASGATDeep(5, 8, 3, 2, 2, 4, dropout, channels=channels, directed=directed, order=4)


def step(net: ASGATDeep) -> list[Tensor]:
    """The logits of a training step with dropout, in double precision, and the gradients."""
    net, x = net.double(), X.double()
    operator = net.operator_for(x, graph(net.operators.directed))
    torch.manual_seed(1)
    out = net(x, operator)
    assert isinstance(out, Tensor)
    return [out.detach(), *torch.autograd.grad(out.square().mean(), list(net.parameters()))]


@pytest.fixture
def in_small_blocks(monkeypatch):
    monkeypatch.setattr(joined_linear, "IN_BLOCKS", 0)
    monkeypatch.setattr(kernel, "ROWS", 8)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("channels", CHANNELS)
def test_blocks_change_nothing_but_rounding(monkeypatch, in_small_blocks, channels, directed):
    blocked = step(model(0, directed, channels))
    monkeypatch.setattr(joined_linear, "IN_BLOCKS", IN_BLOCKS)
    for ours, theirs in zip(blocked, step(model(0, directed, channels)), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-10)


def test_they_are_used_where_rounding_may_depend_on_blocks(monkeypatch, in_small_blocks):
    used: list[int] = []

    def counted(*parts):
        used.append(1)
        return gather_linear(*parts)

    monkeypatch.setattr(joined_linear, "gather_linear", counted)
    step(model())
    assert len(used) == 2, "once in each block of the model"
    with torch.autocast("cpu", torch.bfloat16):
        model()(X, graph(False))
    assert len(used) == 2


def test_large_graphs_on_the_cpu_are_joined_in_blocks():
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert in_blocks(IN_BLOCKS + 1, cpu)
    assert not in_blocks(IN_BLOCKS, cpu)
    assert not in_blocks(10 * IN_BLOCKS, cuda)


def test_it_compiles_without_a_break(in_small_blocks):
    net = model(dropout=0.0)
    operator = net.operator_for(X, graph(False))
    eager = net(X, operator)
    compiled = torch.compile(net, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(X, operator), eager, atol=1e-5, rtol=1e-4)
    torch._dynamo.reset()
