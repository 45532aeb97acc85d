"""The deep model against dense mathematics, value by value and gradient by gradient."""

import copy
import io
from functools import partial
from typing import Any, cast, get_args

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from tests import dense
from tests.strategies import ZOO, edge_lists

from asgat.config import Channels
from asgat.errors import AsgatError
from asgat.filters import MLPFilter
from asgat.graph import Graph
from asgat.nn import ASGATDeep, DeepBlock
from asgat.nn.asgat import with_adjacency
from asgat.nn.ensemble import Ensemble
from asgat.tables import TableOperator

ORDER, HEADS, K, WIDTH = 4, 2, 3, 4


def model(directed=False, num_nodes=None, channels="attention+filters+mean", num_layers=2, **arguments):
    torch.manual_seed(0)
    made = ASGATDeep(
        3,
        WIDTH,
        2,
        num_layers,
        HEADS,
        K,
        channels=channels,
        num_nodes=num_nodes,
        directed=directed,
        filter=partial(MLPFilter, hidden=(7, 5)),
        order=ORDER,
        **arguments,
    ).double()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if parameter.dim() == 1 and "filter" not in name:
                parameter.add_(torch.randn(parameter.shape, dtype=torch.float64))
    return made


def cover_of(graph: Graph) -> tuple[Any, Any]:
    """A graph's adjacency, that of its double cover with all sources first, entry by entry; and where copies are."""
    a, n = graph.adjacency.toarray(), graph.num_nodes
    return Graph.from_scipy(np.block([[np.zeros((n, n)), a], [a.T, np.zeros((n, n))]])), n


def dense_model(net: ASGATDeep, x: torch.Tensor, graph: Graph):
    """Every block with N×N (or 2N×2N) matrices. Also the rows whose selection rounding does not decide."""
    directed = graph.directed
    cover, n = cover_of(graph) if directed else (graph, graph.num_nodes)
    a = torch.from_numpy(cover.adjacency.toarray())
    mean = a / a.sum(1, keepdim=True).clamp(min=1e-300)
    hops = dense.hops(cover)
    reached = (hops >= 0) & (hops <= ORDER)
    clear = True

    def copies(z, weight):
        return torch.cat([z @ part for part in weight.chunk(2, dim=1)]) if directed else z @ weight

    def nodes(out):
        return torch.cat([out[:n], out[n:]], dim=1) if directed else out

    h = F.gelu(x @ net.in_weight + net.in_bias)
    for block in cast(Any, net.blocks):
        z = F.layer_norm(h, (WIDTH,)) * block.norm_weight + block.norm_bias
        parts = [z]
        if block.attention is not None:
            score = dense.interpolant_scores(cover, block.attention.filter, ORDER) * torch.from_numpy(reached)
            clear = clear and not dense.tied_rows(score, K, reached).any()
            weights = dense.attention(score, K, reached)
            parts.append(nodes(torch.cat([one @ copies(z, block.attention.weight) for one in weights], dim=1)))
        if block.filters is not None:
            matrix = dense.interpolant_scores(cover, block.filters.filter, ORDER)
            signal = copies(z, block.filters.weight) if directed else z
            parts.append(nodes(torch.cat([g @ s for g, s in zip(matrix, signal.chunk(HEADS, 1), strict=True)], dim=1)))
        if block.mean:
            parts.append(nodes(mean @ (torch.cat([z, z]) if directed else z)))
        hidden = F.gelu(torch.cat(parts, dim=1) @ block.weight1 + block.bias1)
        h = h + hidden @ block.weight2 + block.bias2
    out = (F.layer_norm(h, (WIDTH,)) * net.norm_weight + net.norm_bias) @ net.out_weight + net.out_bias
    return out, clear


def compare(net, x, graph):
    out, (truth, clear) = net(x, graph), dense_model(net, x, graph)
    if not clear:  # equal scores: rounding chooses among equals
        return False
    torch.testing.assert_close(out, truth, atol=1e-9, rtol=0)
    wanted = [x, *net.parameters()]
    grad = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    gradients = (torch.autograd.grad(y, wanted, grad, allow_unused=True) for y in (out, truth))
    for ours, theirs in zip(*gradients, strict=True):
        zero = torch.zeros(())
        torch.testing.assert_close(
            zero if ours is None else ours, zero.expand(()) if theirs is None else theirs, atol=1e-7, rtol=0,
            check_dtype=False,
        )  # fmt: skip
    return True


def features(graph, size=3):
    x = torch.randn(graph.num_nodes, size, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    return x.requires_grad_()


@pytest.mark.parametrize("channels", get_args(Channels))
@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=15)
@given(edges=edge_lists(max_nodes=8))
def test_random_graphs(channels, directed, edges):
    graph = Graph.from_edges(edges.ends, edges.num_nodes, edges.weight, directed=directed)
    compare(model(directed, channels=channels), features(graph), graph)


@pytest.mark.parametrize("directed", [False, True])
def test_graphs_without_ties(directed):
    """Generic weights: nothing is skipped, one-way and two-way edges, a self-loop, a node without edges."""
    rng = np.random.default_rng(5)
    ends = np.array([[0, 1, 2, 3, 3, 4, 6, 6, 7, 0], [1, 2, 0, 0, 3, 1, 7, 8, 6, 4]])
    graph = Graph.from_edges(ends, 10, rng.uniform(0.3, 2.0, ends.shape[1]), directed=directed)
    assert compare(model(directed), features(graph), graph)


@pytest.mark.parametrize("directed", [False, True])
def test_adjacency(directed):
    """x W_in + A E is the product of the features with the adjacency rows appended."""
    graph = Graph.from_edges([[0, 1, 2, 2], [1, 2, 0, 3]], 5, [1.0, 2.0, 0.5, 3.0], directed=directed)
    a = graph.adjacency.toarray()
    root = np.sqrt(np.outer(np.where(a.sum(1), a.sum(1), 1), np.where(a.sum(0), a.sum(0), 1)))
    rows = with_adjacency(np.ones((5, 3), "f"), graph).toarray()
    if directed:
        np.testing.assert_allclose(rows[:, 3:][:, 1::2], a / root, atol=1e-7)
        np.testing.assert_allclose(rows[:, 3:][:, 0::2], (a / root).T, atol=1e-7)
    else:
        np.testing.assert_allclose(rows[:, 3:], a / root, atol=1e-7)
    net = model(directed, num_nodes=5)
    assert net.in_weight.shape == (rows.shape[1], WIDTH)
    assert net(torch.from_numpy(rows).double(), graph).shape == (5, 2)
    with pytest.raises(AsgatError, match="adjacency=false"):
        net(torch.ones(4, rows.shape[1], dtype=torch.float64), Graph.from_edges([[0], [1]], 4, directed=directed))


def test_another_graph():
    net = model()
    for name in ("generic", "path", "no edges"):
        graph = ZOO[name]
        assert net(features(graph), graph).shape == (graph.num_nodes, 2)


def test_saved_and_loaded():
    net, graph = model(cached=True), ZOO["generic"]
    x = features(graph)
    out = net(x, graph)
    other = model()
    other.reset_parameters()
    assert not torch.equal(other(x, graph), out)
    other.load_state_dict(net.state_dict())
    assert torch.equal(other(x, graph), out)
    assert torch.equal(copy.deepcopy(net)(x, graph), out)
    stream = io.BytesIO()
    torch.save(net, stream)
    stream.seek(0)
    loaded = torch.load(stream, weights_only=False)
    assert loaded.operators.kept is None
    assert torch.equal(loaded(x, graph), out)


def test_attention_and_certificates():
    net, graph = model(num_layers=3), ZOO["generic"]
    operator = TableOperator(graph, order=ORDER, candidates=4, dtype=torch.float64)
    out, attentions = net(features(graph), operator, return_attention_weights=True)
    assert len(attentions) == len(net.convs) == len(net.filter_convs) == len(net.certificates(operator)) == 3
    assert out.shape == (graph.num_nodes, 2)
    assert model(channels="filters").convs == []


@pytest.mark.parametrize("input_dropout", [False, True])
def test_dropout_of_the_input(input_dropout):
    """Nothing depends on an entry of x that is dropped, and all are used in evaluation."""
    net, graph = model(dropout=0.5, input_dropout=input_dropout), ZOO["generic"]
    x = features(graph, 3)
    torch.manual_seed(3)
    (used,) = torch.autograd.grad(net.train()(x, graph).sum(), x)
    assert bool((used == 0).any()) is input_dropout
    (used,) = torch.autograd.grad(net.eval()(x, graph).sum(), x)
    assert bool((used != 0).all())


@pytest.mark.parametrize("channels", ["filters", "attention+mean"])
def test_an_ensemble(channels):
    members = [model(channels=channels), model(channels=channels)]
    members[1].reset_parameters()
    graph = ZOO["generic"]
    x = features(graph)
    mean = torch.stack([member(x, graph).softmax(-1) for member in members]).mean(0)
    torch.testing.assert_close(Ensemble(members)(x, graph), mean.log())


def test_it_learns_what_attention_to_few_nodes_cannot():
    """The sum over many neighbours: filters fit it, attention to three nodes does not."""
    torch.manual_seed(0)
    ends = np.random.default_rng(0).integers(0, 200, (2, 1500))
    graph = Graph.from_edges(ends, 200)
    x = torch.randn(200, 3, dtype=torch.float64)
    target = (torch.from_numpy(graph.normalised_adjacency.toarray()) @ x[:, 0] > 0).long()
    losses = {}
    for channels in ("filters", "attention"):
        net = ASGATDeep(3, 16, 2, 1, HEADS, K, channels=channels, order=ORDER).double()
        adam = torch.optim.AdamW(net.parameters(), lr=0.02)
        operator = net.operator_for(x, graph)
        for _ in range(150):
            loss = F.cross_entropy(net(x, operator), target)
            adam.zero_grad()
            loss.backward()
            adam.step()
        losses[channels] = loss.item()
    assert losses["filters"] < 0.6 * losses["attention"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_layers": 0}, "num_layers"),
        ({"heads": 3}, "66 would do"),
        ({"channels": "attention+attention"}, "channels must be one of"),
        ({"k": 0}, "k must be"),
        ({"operator": "fourier"}, "Unknown operator"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(AsgatError, match=words):
        ASGATDeep(3, 64, 2, **arguments)


def test_a_block_alone():
    block = DeepBlock(8, heads=2, k=3)
    graph = ZOO["generic"]
    operator = TableOperator(graph, order=15, candidates=4)
    h = torch.randn(graph.num_nodes, 8)
    assert block(h, operator).shape == h.shape
    with torch.no_grad():
        block.weight2.zero_()
    assert torch.equal(block(h, operator), h), "the residual alone"


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_without_a_graph_break(backend, directed):
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(0, 40, (2, 120)), 40, rng.uniform(0.5, 2.0, 120), directed=directed)
    operator = TableOperator(graph.spectral_graph, ORDER, candidates=6, cap=3)
    net, x = model(directed).float(), torch.randn(40, 3)
    results = []
    for run in (net, torch.compile(net, fullgraph=True, backend=backend)):
        net.zero_grad()
        out = run(x, operator)
        out.square().sum().backward()
        results.append([out.detach(), *(p.grad.clone() for p in net.parameters() if p.grad is not None)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    torch._dynamo.reset()
