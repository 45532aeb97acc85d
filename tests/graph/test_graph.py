from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import ZOO, directed_graphs, edge_lists, graphs, permuted
from torch_geometric.data import Batch, Data

from asgat.errors import AsgatError
from asgat.graph import Graph


def adjacency_by_hand(edges, self_loops="keep", directed=False):
    """The largest weight of every pair, entry by entry."""
    out = np.zeros((edges.num_nodes, edges.num_nodes))
    for (u, v), weight in zip(edges.ends.T, edges.weight, strict=True):
        if u != v or self_loops != "remove":
            out[u, v] = max(out[u, v], weight)
            if not directed:
                out[v, u] = out[u, v]
    if self_loops == "add":
        for v in range(edges.num_nodes):
            out[v, v] = out[v, v] or 1.0
    return out


def same(graph, other):
    sizes = graph.num_nodes == other.num_nodes and graph.directed == other.directed
    return sizes and np.array_equal(graph.adjacency.toarray(), other.adjacency.toarray())


# -- construction ------------------------------------------------------------------------------------------


@given(edge_lists(min_nodes=0), st.sampled_from(["keep", "add", "remove"]))
def test_adjacency(edges, self_loops):
    graph = edges.graph(self_loops)
    dense_adjacency = graph.adjacency.toarray()
    assert np.array_equal(dense_adjacency, adjacency_by_hand(edges, self_loops))
    assert np.array_equal(dense_adjacency, dense_adjacency.T)
    assert graph.num_entries == np.count_nonzero(dense_adjacency), "no zero is stored"
    assert graph.adjacency.has_sorted_indices
    assert np.array_equal(graph.isolated, (dense_adjacency == 0).all(axis=1))
    np.testing.assert_allclose(graph.degree, dense_adjacency.sum(axis=1))
    assert set(map(tuple, graph.edge_index().T)) == set(map(tuple, np.argwhere(dense_adjacency)))


@given(edge_lists(zero_weights=False))
def test_all_constructors_agree(edges):
    graph = edges.graph()
    row, col = edges.ends
    tensors = torch.from_numpy(edges.ends), torch.from_numpy(edges.weight)
    assert same(graph, Graph.from_edges(tensors[0], edges.num_nodes, tensors[1]))
    assert same(graph, Graph.from_edges(edges.ends.tolist(), edges.num_nodes, edges.weight.tolist()))
    data = Data(edge_index=tensors[0], edge_weight=tensors[1], num_nodes=edges.num_nodes)
    assert same(graph, Graph.from_pyg(data))
    network = nx.MultiDiGraph()
    network.add_nodes_from(f"node {i}" for i in range(edges.num_nodes))
    network.add_weighted_edges_from(
        (f"node {u}", f"node {v}", w) for u, v, w in zip(row, col, edges.weight, strict=True)
    )
    assert same(graph, Graph.from_networkx(network))
    # scipy would sum duplicates, so it is given each pair once, in one direction
    upper = sp.triu(graph.adjacency)
    for kind in (sp.csr_array, sp.coo_array, sp.csc_matrix, sp.lil_matrix):
        assert same(graph, Graph.from_scipy(kind(upper)))


@given(edge_lists(), st.randoms(use_true_random=False))
def test_order_direction_and_repetition_of_edges_do_not_matter(edges, random):
    order = list(range(len(edges.weight))) * 2
    random.shuffle(order)
    ends = edges.ends[:, order]
    flip = np.array([random.random() < 0.5 for _ in order], dtype=bool)
    ends = np.where(flip, ends[::-1], ends)
    assert same(edges.graph(), Graph.from_edges(ends, edges.num_nodes, edges.weight[order]))


@given(graphs())
def test_construction_is_idempotent(graph):
    again = Graph.from_edges(graph.edge_index(), graph.num_nodes, graph.adjacency.tocoo().data)
    assert same(graph, again)
    assert same(graph, Graph.from_scipy(graph.adjacency))
    for self_loops in ("keep", "add", "remove"):
        once = graph.with_self_loops(self_loops)
        assert same(once, once.with_self_loops(self_loops))


@given(edge_lists(), st.sampled_from(["keep", "add", "remove"]))
def test_with_self_loops_is_construction_with_them(edges, self_loops):
    assert same(edges.graph(self_loops), edges.graph().with_self_loops(self_loops))


def test_self_loops_given_are_not_replaced_by_added_ones():
    graph = Graph.from_edges([[0, 0], [0, 1]], 3, [5.0, 2.0], self_loops="add")
    assert graph.adjacency.toarray().tolist() == [[5, 2, 0], [2, 1, 0], [0, 0, 1]]


def test_networkx_weights_default_to_one_and_may_have_another_name():
    network = nx.Graph()
    network.add_edge("a", "b", cost=3.0)
    network.add_edge("b", "c", weight=2.0)
    assert Graph.from_networkx(network).adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 2], [0, 2, 0]]
    assert Graph.from_networkx(network, weight="cost").adjacency.toarray().tolist() == [
        [0, 3, 0],
        [3, 0, 1],
        [0, 1, 0],
    ]
    assert same(Graph.from_networkx(nx.Graph()), ZOO["no nodes"])


def test_a_pyg_batch_is_the_union_of_its_graphs():
    parts = [
        Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=4),
        Data(edge_index=torch.tensor([[0], [0]]), num_nodes=2),
    ]
    expected = sp.block_diag([Graph.from_pyg(part).adjacency for part in parts]).toarray()
    assert np.array_equal(Graph.from_pyg(Batch.from_data_list(parts)).adjacency.toarray(), expected)


def test_num_nodes_defaults_to_the_largest_index():
    assert Graph.from_edges([[0, 4], [1, 2]]).num_nodes == 5
    assert Graph.from_edges(torch.empty(2, 0, dtype=torch.long)).num_nodes == 0


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [-1.0, -1e-300, float("nan"), float("inf"), float("-inf")])
def test_bad_weights_are_refused_by_every_constructor(weight):
    ends, weights = np.array([[0, 2], [1, 3]]), np.array([1.0, weight])
    sentence = r"edge \(2, 3\) has weight .*must be finite and not negative"
    network = nx.Graph()
    network.add_weighted_edges_from([(0, 1, 1.0), (2, 3, weight)])
    data = Data(edge_index=torch.from_numpy(ends), edge_weight=torch.from_numpy(weights), num_nodes=4)
    with pytest.raises(AsgatError, match=sentence):
        Graph.from_edges(ends, 4, weights)
    with pytest.raises(AsgatError, match=sentence):
        Graph.from_scipy(sp.coo_array((weights, tuple(ends)), shape=(4, 4)))
    with pytest.raises(AsgatError, match=sentence):
        Graph.from_networkx(network)
    with pytest.raises(AsgatError, match=sentence):
        Graph.from_pyg(data)


def test_a_bad_weight_on_a_self_loop_is_refused_even_where_loops_are_removed():
    with pytest.raises(AsgatError, match=r"\(1, 1\) has weight nan"):
        Graph.from_edges([[1], [1]], 2, [float("nan")], self_loops="remove")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([[0, 5], [1, 2]], 4), "names node 5, but the graph has nodes 0 to 3"),
        (([[0, -1], [1, 2]], 4), "names node -1"),
        (([[0, -1], [1, 2]],), "names node -1"),
        (([[0.0], [1.0]], 2), "must hold integers, not float64"),
        (([[True], [False]], 2), "must hold integers, not bool"),
        (([[0, 1], [1, 2], [2, 3]], 4), r"shape \[2, E\], not \[3, 2\]; transpose"),
        (([0, 1, 2], 4), r"shape \[2, E\], not \[3\]"),
        (([[0], [1]], 2, [1.0, 2.0]), r"one number per edge: 1 edges, but shape \[2\]"),
        (([[0, 1], [1, 0]], 2, [[1.0], [2.0]]), r"2 edges, but shape \[2, 1\]"),
        (([[0], [1]], -1), "num_nodes must not be negative, but is -1"),
        (([[0], [1]], 2, None, "drop"), "keep, add or remove, not 'drop'"),
    ],
)
def test_bad_edges(arguments, sentence):
    with pytest.raises(AsgatError, match=sentence):
        Graph.from_edges(*arguments)


def test_a_matrix_that_is_not_square_is_refused():
    with pytest.raises(AsgatError, match=r"must be square, not \(2, 3\)"):
        Graph.from_scipy(sp.csr_array(np.ones((2, 3))))


class FakeSparseTensor:
    """What is used of torch_sparse.SparseTensor."""

    def __init__(self, row, col, value, size):
        self.parts, self.size = (row, col, value), size

    def coo(self):
        return self.parts

    def sizes(self):
        return [self.size, self.size]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("directed", [False, True])
def test_a_transposed_adjacency_matrix_of_pyg(directed):
    from torch_geometric.transforms import ToSparseTensor

    ends, weight = torch.tensor([[0, 1, 3, 2], [1, 2, 0, 2]]), torch.tensor([1.0, 2.0, 3.0, 0.5])
    expected = Graph.from_edges(ends, 5, weight, directed=directed).adjacency.toarray()
    held: list[Any] = [
        torch.sparse_coo_tensor(ends.flip(0), weight, (5, 5)),
        FakeSparseTensor(ends[1], ends[0], weight, 5),
    ]
    for layout in (torch.sparse_coo, torch.sparse_csr):
        transform = ToSparseTensor(attr="edge_weight", layout=layout)
        held.append(transform(Data(edge_index=ends, edge_weight=weight, num_nodes=5)).adj_t)
    held.append(held[0].to_sparse_csc())
    for adj_t in held:
        np.testing.assert_array_equal(Graph.from_adj_t(adj_t, directed=directed).adjacency.toarray(), expected)
    plain = Graph.from_adj_t(FakeSparseTensor(ends[1], ends[0], None, 5), directed=directed)
    assert set(plain.adjacency.data) == {1.0}
    with pytest.raises(AsgatError, match=r"adj_t must be square, not \[2, 3\]"):
        Graph.from_adj_t(torch.eye(3)[:2].to_sparse())


def test_a_bad_self_loops_word_is_refused_later_too():
    with pytest.raises(AsgatError, match="not 'yes'"):
        ZOO["path"].with_self_loops("yes")  # type: ignore[arg-type]


# -- Laplacian ---------------------------------------------------------------------------------------------


@given(graphs(min_nodes=0))
def test_laplacian_is_the_dense_formula(graph):
    laplacian = graph.laplacian.toarray()
    np.testing.assert_allclose(laplacian, dense.laplacian(graph.adjacency.toarray()), atol=1e-14)
    assert np.array_equal(laplacian, laplacian.T), "symmetric to the last bit"
    assert (laplacian[graph.isolated][:, graph.isolated] == np.eye(graph.isolated.sum())).all()
    value = np.linalg.eigvalsh(laplacian)
    assert value.min(initial=0.0) > -1e-12
    assert value.max(initial=0.0) < 2 + 1e-12
    # D^(1/2) 1 of every component with an edge is an eigenvector of eigenvalue 0
    np.testing.assert_allclose(laplacian @ np.sqrt(graph.degree), 0.0, atol=1e-12)


@given(graphs(max_nodes=12))
def test_normalised_adjacency_and_laplacian_add_to_the_identity(graph):
    total = graph.normalised_adjacency.toarray() + graph.laplacian.toarray()
    np.testing.assert_allclose(total, np.eye(graph.num_nodes), atol=1e-15)


def test_a_node_with_only_a_self_loop_is_not_isolated():
    graph = Graph.from_edges([[1], [1]], 3, [0.3])
    assert graph.laplacian.toarray().diagonal().tolist() == [1.0, 0.0, 1.0]
    assert graph.isolated.tolist() == [True, False, True]


def test_the_laplacian_of_a_regular_bipartite_graph_reaches_two():
    assert np.linalg.eigvalsh(ZOO["even cycle"].laplacian.toarray()).max() == pytest.approx(2.0)


@given(graphs(), st.randoms(use_true_random=False))
def test_renaming_nodes_renames_everything(graph, random):
    order = np.array(random.sample(range(graph.num_nodes), graph.num_nodes))
    renamed = permuted(graph, order)
    np.testing.assert_allclose(renamed.laplacian.toarray(), graph.laplacian.toarray()[order][:, order], atol=1e-15)
    np.testing.assert_allclose(renamed.degree, graph.degree[order])
    assert renamed.isolated.tolist() == graph.isolated[order].tolist()
    together = graph.components[:, None] == graph.components
    assert np.array_equal(renamed.components[:, None] == renamed.components, together[order][:, order])


@given(edge_lists(zero_weights=False), st.sampled_from([1e-300, 1e-150, 1e150, 1e299]))
def test_the_unit_of_weights_does_not_matter(edges, unit):
    scaled = Graph.from_edges(edges.ends, edges.num_nodes, edges.weight * unit)
    np.testing.assert_allclose(scaled.laplacian.toarray(), edges.graph().laplacian.toarray(), atol=1e-13)


@pytest.mark.filterwarnings("ignore:overflow")  # the degree itself has no float64, the Laplacian does
def test_extreme_weights_side_by_side_stay_finite():
    huge, tiny = 1.7e308, 5e-324
    graph = Graph.from_edges([[0, 0, 3, 0], [1, 2, 4, 3]], 5, [huge, huge, tiny, tiny])
    laplacian = graph.laplacian.toarray()
    assert np.isfinite(laplacian).all()
    half = -np.sqrt(0.5)
    np.testing.assert_allclose(laplacian[0], [1, half, half, 0, 0], atol=1e-12)
    np.testing.assert_allclose(laplacian[3, 4], half, atol=1e-12)


@given(graphs(min_nodes=0, max_nodes=14))
def test_lambda_max_bounds_the_spectrum(graph):
    true = np.linalg.eigvalsh(dense.laplacian(graph.adjacency.toarray())).max(initial=0.0)
    assert true - 1e-12 <= graph.lambda_max <= 2.0


def test_lambda_max_is_an_estimate_and_not_just_the_bound():
    graph = Graph.from_edges(np.argwhere(np.ones((20, 20)) - np.eye(20)).T)
    assert graph.lambda_max == pytest.approx(1.01 * 20 / 19, rel=1e-3)
    assert graph.lambda_max == Graph.from_scipy(graph.adjacency).lambda_max, "the same value every time"


# -- components --------------------------------------------------------------------------------------------


@given(graphs())
def test_components_are_what_breadth_first_search_finds(graph):
    together = graph.components[:, None] == graph.components
    assert np.array_equal(together, dense.hops(graph) >= 0)


def test_a_data_frame_gives_the_graph_its_rows_name():
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"from": ["b", "a"], "to": ["a", "c"], "w": [2.0, 3.0]})
    graph = Graph.from_pandas(edges, "from", "to", "w", nodes=["a", "b", "c", "d"])
    assert graph.adjacency.toarray().tolist() == [[0, 2, 3, 0], [2, 0, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0]]
    met = Graph.from_pandas(edges, "from", "to")
    assert met.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    with pytest.raises(AsgatError, match="no column 'source'"):
        Graph.from_pandas(edges)
    with pytest.raises(AsgatError, match="the node 'c', which is not among"):
        Graph.from_pandas(edges, "from", "to", nodes=["a", "b"])


def test_repr():
    assert repr(ZOO["path"]) == "Graph(num_nodes=6, num_entries=10)"


def test_a_graph_cannot_be_changed():
    with pytest.raises(AttributeError):
        ZOO["path"].adjacency = None  # type: ignore[misc, assignment]


# -- direction ---------------------------------------------------------------------------------------------


@given(edge_lists(min_nodes=0), st.sampled_from(["keep", "add", "remove"]))
def test_directed_adjacency(edges, self_loops):
    graph = edges.graph(self_loops, directed=True)
    expected = adjacency_by_hand(edges, self_loops, directed=True)
    assert graph.directed
    assert np.array_equal(graph.adjacency.toarray(), expected)
    assert graph.num_entries == np.count_nonzero(expected), "no zero is stored"
    assert np.array_equal(graph.isolated, (expected == 0).all(axis=1) & (expected == 0).all(axis=0))
    np.testing.assert_allclose(graph.degree, expected.sum(axis=1))
    ends, weight = graph.edges_once()
    assert np.array_equal(ends, graph.edge_index())
    assert same(graph, Graph.from_edges(ends, graph.num_nodes, weight, directed=True))
    assert same(graph, edges.graph(directed=True).with_self_loops(self_loops))
    assert same(graph.undirected, edges.graph(self_loops))
    assert np.array_equal(graph.components, graph.undirected.components)
    assert repr(graph).endswith(", directed=True)")


@given(edge_lists(zero_weights=False))
def test_all_directed_constructors_agree(edges):
    graph = edges.graph(directed=True)
    row, col = edges.ends
    tensors = torch.from_numpy(edges.ends), torch.from_numpy(edges.weight)
    data = Data(edge_index=tensors[0], edge_weight=tensors[1], num_nodes=edges.num_nodes)
    assert same(graph, Graph.from_pyg(data, directed=True))
    network = nx.MultiDiGraph()
    network.add_nodes_from(range(edges.num_nodes))
    network.add_weighted_edges_from(zip(row.tolist(), col.tolist(), edges.weight.tolist(), strict=True))
    assert same(graph, Graph.from_networkx(network, directed=True))
    frame = pd.DataFrame({"source": row, "target": col, "w": edges.weight})
    assert same(graph, Graph.from_pandas(frame, weight="w", nodes=range(edges.num_nodes), directed=True))
    for kind in (sp.csr_array, sp.coo_array, sp.csc_matrix):
        assert same(graph, Graph.from_scipy(kind(graph.adjacency), directed=True))


@given(edge_lists(zero_weights=False))
def test_an_undirected_networkx_graph_read_as_directed_has_both_directions(edges):
    network = nx.Graph()
    network.add_nodes_from(range(edges.num_nodes))
    network.add_edges_from(edges.ends.T.tolist())
    both = Graph.from_networkx(network, directed=True)
    assert np.array_equal(both.adjacency.toarray(), Graph.from_networkx(network).adjacency.toarray())


@given(directed_graphs(min_nodes=0))
def test_the_double_cover_is_bipartite_with_the_directed_matrix_between_its_halves(graph):
    cover, n = graph.double_cover, graph.num_nodes
    expected, adjacency = np.zeros((2 * n, 2 * n)), graph.adjacency.toarray()
    for v in range(n):
        for u in range(n):
            expected[2 * v, 2 * u + 1] = expected[2 * u + 1, 2 * v] = adjacency[v, u]
    assert not cover.directed
    assert np.array_equal(cover.adjacency.toarray(), expected)
    assert graph.spectral_graph is cover
    assert cover.spectral_graph is cover
    np.testing.assert_allclose(step_matrix(graph), cover.normalised_adjacency.toarray()[::2, 1::2], atol=1e-14)


def step_matrix(graph):
    """S = D_out^(-1/2) A D_in^(-1/2), entry by entry."""
    adjacency = graph.adjacency.toarray()
    out, into = adjacency.sum(axis=1), adjacency.sum(axis=0)
    step = np.zeros_like(adjacency)
    for v, u in np.argwhere(adjacency):
        step[v, u] = adjacency[v, u] / np.sqrt(out[v] * into[u])
    return step


def response(value, coefficients):
    """A smooth response that is neither even nor odd around 1."""
    return np.polynomial.chebyshev.chebval(value - 1.0, coefficients) + 0.3 * np.exp(-value)


@given(directed_graphs(max_nodes=9), st.lists(st.floats(-2, 2), min_size=1, max_size=6))
def test_responses_on_the_double_cover_are_those_of_the_singular_values(graph, coefficients):
    left, sigma, right = np.linalg.svd(step_matrix(graph))
    laplacian = graph.double_cover.laplacian.toarray()
    value, vector = np.linalg.eigh(laplacian)
    np.testing.assert_allclose(value, np.sort(np.concatenate([1 - sigma, 1 + sigma])), atol=1e-9)
    scores = vector @ np.diag(response(value, coefficients)) @ vector.T
    low, high = response(1 - sigma, coefficients), response(1 + sigma, coefficients)
    odd, even = np.diag((low - high) / 2), np.diag((low + high) / 2)
    np.testing.assert_allclose(scores[::2, 1::2], left @ odd @ right, atol=1e-9)
    np.testing.assert_allclose(scores[1::2, ::2], (left @ odd @ right).T, atol=1e-9)
    np.testing.assert_allclose(scores[::2, ::2], left @ even @ left.T, atol=1e-9)
    np.testing.assert_allclose(scores[1::2, 1::2], right.T @ even @ right, atol=1e-9)


@given(graphs(max_nodes=9), st.lists(st.floats(-2, 2), min_size=1, max_size=6))
def test_on_a_symmetric_graph_the_halves_are_the_even_and_odd_parts_of_a_response(graph, coefficients):
    """S = I - L: between sources and targets it is ½[g(λ) - g(2 - λ)], within each half ½[g(λ) + g(2 - λ)]."""
    symmetric = Graph(graph.adjacency, directed=True)
    value, vector = np.linalg.eigh(graph.laplacian.toarray())
    low, high = response(value, coefficients), response(2 - value, coefficients)
    odd, even = (vector @ np.diag(part / 2) @ vector.T for part in (low - high, low + high))
    cover, basis = np.linalg.eigh(symmetric.double_cover.laplacian.toarray())
    scores = basis @ np.diag(response(cover, coefficients)) @ basis.T
    for block, expected in ((scores[::2, 1::2], odd), (scores[1::2, ::2], odd), (scores[::2, ::2], even)):
        np.testing.assert_allclose(block, expected, atol=1e-9)
    np.testing.assert_allclose(scores[1::2, 1::2], even, atol=1e-9)


@pytest.mark.parametrize("name", ["normalised_adjacency", "laplacian", "lambda_max"])
def test_a_directed_graph_has_no_laplacian_of_its_own(name):
    with pytest.raises(AsgatError, match="no symmetric Laplacian; use its double_cover, or undirected"):
        getattr(Graph.from_edges([[0, 1], [1, 2]], 3, directed=True), name)
