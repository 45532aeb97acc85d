"""Learned filters over the whole spectrum, against U g(Λ) Uᵀ."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from tests import dense
from tests.strategies import ZOO, edge_lists, generic_graph, graphs

from asgat.errors import AsgatError
from asgat.filters import MLPFilter
from asgat.graph import Graph
from asgat.kernels.sparse_features import SparseFeatures
from asgat.nn import SpectralFilterConv
from asgat.spectral import ArmaOperator, ExactOperator
from asgat.tables import TableOperator

ORDER, HEADS = 4, 2


def layer(operator="chebyshev", directed=False, **arguments):
    torch.manual_seed(0)
    filter = partial(MLPFilter, hidden=(7, 5))
    conv = SpectralFilterConv(
        3, 6, HEADS, filter=filter, operator=operator, order=ORDER, directed=directed, **arguments
    )
    return conv.double()


def features(graph, size=3):
    return torch.randn(graph.num_nodes, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def matrices(graph, conv, operator):
    """U g(Λ) Uᵀ of every head, or U p(Λ) Uᵀ with the interpolant p."""
    exact = operator == "exact"
    return dense.exact_scores(graph, conv.filter) if exact else dense.interpolant_scores(graph, conv.filter, ORDER)


def slices(matrix, signal):
    return torch.cat([g @ part for g, part in zip(matrix, signal.chunk(HEADS, dim=1), strict=True)], dim=1)


def compare(conv, x, graph, truth):
    out = conv(x, graph)
    torch.testing.assert_close(out, truth, atol=1e-9, rtol=0)
    wanted = [x, *conv.parameters()]
    grad = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    gradients = (torch.autograd.grad(y, wanted, grad, allow_unused=True) for y in (out, truth))
    for ours, theirs in zip(*gradients, strict=True):
        if ours is not None and theirs is not None:
            torch.testing.assert_close(ours, theirs, atol=1e-7, rtol=0)


@pytest.mark.parametrize("operator", ["chebyshev", "exact"])
@given(graph=graphs())
def test_undirected(operator, graph):
    conv, x = layer(operator), features(graph).requires_grad_()
    compare(conv, x, graph, slices(matrices(graph, conv, operator), x @ conv.weight))


@pytest.mark.parametrize("operator", ["chebyshev", "exact"])
@given(edges=edge_lists())
def test_directed(operator, edges):
    """Both copies of a node, from a double cover written down entry by entry."""
    graph = Graph.from_edges(edges.ends, edges.num_nodes, edges.weight, directed=True)
    conv, x = layer(operator, directed=True), features(graph).requires_grad_()
    a, n = graph.adjacency.toarray(), graph.num_nodes
    cover = Graph.from_scipy(np.block([[np.zeros((n, n)), a], [a.T, np.zeros((n, n))]]))
    as_source, as_target = (x @ part for part in conv.weight.chunk(2, dim=1))
    out = slices(matrices(cover, conv, operator), torch.cat([as_source, as_target]))
    compare(conv, x, graph, torch.cat([out[:n], out[n:]], dim=1))


def test_without_a_linear_map():
    graph = ZOO["generic"]
    conv = SpectralFilterConv(6, 6, HEADS, linear=False, order=ORDER).double()
    assert all(name.startswith("filter.") for name in conv.state_dict())
    x = features(graph, 6).requires_grad_()
    compare(conv, x, graph, slices(matrices(graph, conv, "chebyshev"), x))
    sparse = SparseFeatures.from_dense(x.detach(), dtype=torch.float64)
    torch.testing.assert_close(conv(sparse, graph), conv(x, graph))


@pytest.mark.parametrize("make", [partial(TableOperator, order=ORDER, candidates=4), ArmaOperator, ExactOperator])
def test_every_operator(make):
    """Each with the matrix of scores it gives itself, which its own tests hold against dense mathematics."""
    graph = generic_graph(3)
    conv, x = layer(make), features(graph)
    if make in (ArmaOperator, ExactOperator):
        matrix = make(graph, dtype=torch.float64).dense(conv.filter)
    else:
        matrix = matrices(graph, conv, "chebyshev")
    torch.testing.assert_close(conv(x, graph), slices(matrix, x @ conv.weight), atol=1e-6, rtol=0)


def test_edges_and_copies():
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    conv, x = layer(cached=True), torch.randn(5, 3, dtype=torch.float64)
    out = conv(x, edges)
    torch.testing.assert_close(out, layer()(x, Graph.from_edges(edges, 5)))
    kept = conv.operators.kept
    assert copy.deepcopy(conv).operators.kept is kept
    assert kept is not None
    conv.reset_parameters()
    assert conv.operators.kept is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"heads": 4}, "multiple of heads"),
        ({"heads": 0}, "multiple of heads"),
        ({"linear": False}, "must equal"),
        ({"operator": "fourier"}, "Unknown operator"),
        ({"order": 0}, "order must be"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(AsgatError, match=words):
        SpectralFilterConv(3, 6, **arguments)


def test_a_directed_graph_needs_a_directed_layer():
    graph = Graph.from_edges([[0, 1], [1, 2]], 3, directed=True)
    with pytest.raises(AsgatError, match="directed=True"):
        layer()(features(graph), graph)
    with pytest.raises(AsgatError, match="two per node"):
        layer(directed=True)(features(graph), TableOperator(graph.undirected, order=2))
