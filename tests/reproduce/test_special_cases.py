from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import ZOO, generic_graph, graphs, permuted
from torch_geometric.nn import GATConv, GCNConv

from asgat.errors import AsgatError
from asgat.filters import PolynomialFilter
from asgat.graph import Graph
from asgat.spectral import ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator
from reproduce import special_cases
from reproduce.special_cases import (
    WalkFilter,
    adjacency,
    deepwalk,
    deepwalk_matrix,
    gat_attention,
    gcn_layer,
    polynomial_layer,
)

# One of every kind; the orders are at least the degrees that are asked for, so none of them approximates.
OPERATORS: dict[str, Any] = {
    "default": None,
    "exact": ExactOperator,
    "chebyshev": partial(ChebyshevOperator, order=15),
    "lanczos": partial(ChebyshevOperator, order=12, sampling_points=20, lambda_max="lanczos"),
    "table": partial(TableOperator, order=12),
}
operators = pytest.mark.parametrize("operator", list(OPERATORS.values()), ids=list(OPERATORS))


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Matrices this small are faster so."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tensors(seed, *shapes, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_() for shape in shapes]


def pyg_edges(graph, dtype=torch.float64):
    return torch.from_numpy(graph.edge_index()), torch.from_numpy(graph.adjacency.tocoo().data).to(dtype)


def gradients(output, inputs):
    cotangent = torch.linspace(-1.0, 1.0, output.numel(), dtype=output.dtype).view_as(output)
    return torch.autograd.grad((output * cotangent).sum(), inputs)


# -- GCN ----------------------------------------------------------------------------------------------------


def pyg_gcn(graph, x, weight):
    layer: Any = GCNConv(*weight.shape, bias=False).to(x.dtype)
    del layer.lin.weight
    layer.lin.weight = weight.t()  # the caller's tensor, so that gradients reach it
    return layer(x, *pyg_edges(graph, x.dtype))


@operators
@given(graph=graphs(), seed=st.integers(0, 99))
def test_gcn_is_pygs_layer_values_and_gradients(operator, graph, seed):
    x, weight = tensors(seed, (graph.num_nodes, 3), (3, 2))
    ours, theirs = gcn_layer(graph, x, weight, operator), pyg_gcn(graph, x, weight)
    torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)
    for a, b in zip(gradients(ours, [x, weight]), gradients(theirs, [x, weight]), strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-9)


@operators
def test_gcn_in_single_precision(operator):
    graph = generic_graph(2, 20)
    x, weight = tensors(0, (20, 5), (5, 4), dtype=torch.float32)
    ours = gcn_layer(graph, x, weight, operator)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, pyg_gcn(graph, x, weight), atol=1e-5, rtol=1e-5)


@given(graph=graphs())
def test_gcn_is_the_papers_formula_where_there_are_no_self_loops(graph):
    graph = graph.with_self_loops("remove")
    tilde = graph.adjacency.toarray() + np.eye(graph.num_nodes)
    root = np.sqrt(tilde.sum(axis=1))
    eye = torch.eye(graph.num_nodes, dtype=torch.float64)
    np.testing.assert_allclose(gcn_layer(graph, eye, eye).numpy(), tilde / np.outer(root, root), atol=1e-12)


def test_gcn_keeps_the_weight_of_a_self_loop_that_is_there():
    eye = torch.eye(2, dtype=torch.float64)
    out = gcn_layer(Graph.from_edges([[0, 0], [0, 1]], 2, [3.0, 1.0]), eye, eye)
    torch.testing.assert_close(out, torch.tensor([[3 / 4, 8**-0.5], [8**-0.5, 1 / 2]], dtype=torch.float64))


# -- polynomial filters -------------------------------------------------------------------------------------


@operators
@given(graph=graphs(), degree=st.integers(0, 5), seed=st.integers(0, 99))
def test_a_polynomial_layer_is_the_sum_of_matrix_powers(operator, graph, degree, seed):
    x, weight = tensors(seed, (graph.num_nodes, 3), (3, 2))
    torch.manual_seed(seed)
    filter = PolynomialFilter(heads=2, degree=degree).double()
    laplacian = torch.from_numpy(dense.laplacian(graph.adjacency.toarray()))
    powers = [torch.linalg.matrix_power(laplacian, j) for j in range(degree + 1)]
    matrices = [sum((theta[j] * powers[j] for j in range(degree + 1)), 0 * laplacian) for theta in filter.theta.t()]
    theirs = torch.stack(matrices) @ (x @ weight)
    ours = polynomial_layer(graph, x, weight, filter, operator)
    torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)
    inputs = [x, weight, filter.theta]
    for a, b in zip(gradients(ours, inputs), gradients(theirs, inputs), strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-9)


def test_a_lower_order_only_approximates():
    torch.manual_seed(0)
    graph, filter = generic_graph(0), PolynomialFilter(heads=1, degree=5).double()
    x, weight = tensors(0, (14, 3), (3, 2))
    exact = polynomial_layer(graph, x, weight, filter)
    coarse = polynomial_layer(graph, x, weight, filter, partial(ChebyshevOperator, order=2))
    assert (exact - coarse).abs().max() > 1e-3


# -- GAT ----------------------------------------------------------------------------------------------------


@operators
@given(graph=graphs())
def test_the_adjacency_comes_back(operator, graph):
    np.testing.assert_allclose(adjacency(graph, operator).numpy(), graph.adjacency.toarray(), atol=1e-9)


@pytest.mark.parametrize("name", ZOO)
def test_the_adjacency_of_the_zoo(name):
    np.testing.assert_allclose(adjacency(ZOO[name]).numpy(), ZOO[name].adjacency.toarray(), atol=1e-9)


def test_the_adjacency_of_more_nodes_than_are_computed_at_a_time(monkeypatch):
    graph = generic_graph(3, 20)
    monkeypatch.setattr(special_cases, "_BLOCK", 6)
    np.testing.assert_allclose(adjacency(graph).numpy(), graph.adjacency.toarray(), atol=1e-12)


@operators
@given(graph=graphs(), seed=st.integers(0, 99))
def test_gat_attention_is_pygs(operator, graph, seed):
    (x,) = tensors(seed, (graph.num_nodes, 3))
    torch.manual_seed(seed)
    layer: Any = GATConv(3, 4, heads=2, bias=False).double()
    output, (edge_index, alpha) = layer(x, pyg_edges(graph)[0], return_attention_weights=True)
    hidden = layer.lin(x).view(-1, 2, 4)
    source, target = ((hidden * a).sum(dim=-1).t() for a in (layer.att_src, layer.att_dst))  # [heads, N]
    score = torch.nn.functional.leaky_relu(target.unsqueeze(-1) + source.unsqueeze(1), 0.2)
    ours = gat_attention(graph, score, operator)
    theirs = torch.zeros_like(ours).index_put((torch.arange(2).unsqueeze(1), edge_index[1], edge_index[0]), alpha.t())
    assert torch.equal(ours > 0, theirs > 0)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close((ours @ hidden.transpose(0, 1)).transpose(0, 1).flatten(1), output)
    torch.testing.assert_close(gradients(ours, [x])[0], gradients(theirs, [x])[0])


def test_the_mask_is_minus_infinity_not_zero():
    """A product with A leaves non-neighbours a score of 0, and with it attention."""
    graph, score = Graph.from_edges([[0, 1], [1, 2]], 3), torch.full((3, 3), -2.0)
    assert gat_attention(graph, score)[0].tolist() == pytest.approx([0.5, 0.5, 0.0])
    by_product = torch.softmax(score * adjacency(graph.with_self_loops("add")).float(), dim=-1)
    assert by_product[0, 2] > 0.7


# -- DeepWalk -----------------------------------------------------------------------------------------------


def netmf(graph, window, negative):
    """The matrix from the random walk itself, entry by entry as the formula has it."""
    a = graph.adjacency.toarray()
    degree = a.sum(axis=1)
    inverse = np.array([1.0 / d if d > 0 else 0.0 for d in degree])
    walk = inverse[:, None] * a
    walks = sum(np.linalg.matrix_power(walk, r) for r in range(1, window + 1))
    return np.log(np.maximum(degree.sum() / (negative * window) * walks * inverse, 1.0))


@operators
@given(graph=graphs(), window=st.integers(1, 12), negative=st.sampled_from([1, 2, 0.5]))
def test_the_deepwalk_matrix_is_netmfs(operator, graph, window, negative):
    ours = deepwalk_matrix(graph, window, negative, operator).numpy()
    np.testing.assert_allclose(ours, netmf(graph, window, negative), atol=1e-9)


@given(graph=graphs())
def test_no_walk_leaves_or_reaches_an_isolated_node(graph):
    matrix = deepwalk_matrix(graph, window=5).numpy()
    assert not matrix[graph.isolated].any()
    assert not matrix[:, graph.isolated].any()
    assert (matrix >= 0).all()


@pytest.mark.parametrize("name", ZOO)
def test_the_deepwalk_matrix_of_the_zoo(name):
    np.testing.assert_allclose(deepwalk_matrix(ZOO[name]).numpy(), netmf(ZOO[name], 10, 1), atol=1e-9)


def test_pairs_as_likely_as_chance_are_zero():
    """Both nodes of an edge are reached by half of the walks of up to two steps: log 1, whatever is rounded."""
    assert not deepwalk_matrix(ZOO["one edge"], window=2).any()


@pytest.mark.parametrize(
    ("window", "negative", "part"), [(0, 1.0, "at least 1"), (3, 0.0, "positive"), (3, float("nan"), "nan")]
)
def test_bad_walks_are_refused(window, negative, part):
    with pytest.raises(AsgatError, match=part):
        deepwalk_matrix(ZOO["path"], window, negative)


@given(graph=graphs(), window=st.integers(1, 6), data=st.data())
def test_the_embedding_has_the_gram_matrix_of_the_truncated_svd(graph, window, data):
    dimensions = data.draw(st.integers(1, graph.num_nodes))
    u, s, _ = np.linalg.svd(netmf(graph, window, 1))
    vectors = deepwalk(graph, dimensions, window)
    np.testing.assert_allclose(vectors.T @ vectors, np.diag(s[:dimensions]), atol=1e-8)
    if dimensions == len(s) or s[dimensions - 1] - s[dimensions] > 1e-6:  # d does not cut between equal ones
        expected = (u[:, :dimensions] * s[:dimensions]) @ u[:, :dimensions].T
        np.testing.assert_allclose(vectors @ vectors.T, expected, atol=1e-8)
    assert not vectors[graph.isolated].any()


def test_nodes_renamed_are_vectors_moved():
    graph, order = generic_graph(0), np.random.default_rng(0).permutation(14)
    np.testing.assert_allclose(deepwalk(permuted(graph, order), 4), deepwalk(graph, 4)[order], atol=1e-9)


@pytest.mark.parametrize("window", range(1, 6))
def test_the_response_of_walks_is_a_sum_of_powers(window):
    frequency = torch.linspace(0, 2, 9, dtype=torch.float64)
    expected = torch.stack([(1 - frequency) ** r for r in range(1, window + 1)]).sum(dim=0)
    torch.testing.assert_close(WalkFilter(window)(frequency), expected.unsqueeze(1))
