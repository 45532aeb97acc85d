import copy
import pickle
from functools import partial

import pytest
import torch
from tests.strategies import ZOO

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.nn.operator_builder import OperatorBuilder
from asgat.spectral import ArmaOperator, ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator

EDGES = torch.tensor([[0, 1, 2], [1, 2, 3]])
X = torch.ones(5, 2, dtype=torch.float64)


@pytest.mark.parametrize(
    ("name", "kind"), [("chebyshev", ChebyshevOperator), ("exact", ExactOperator), ("arma", ArmaOperator)]
)
def test_operators_by_name(name, kind):
    operator = OperatorBuilder(name, order=3)(X, EDGES)
    assert type(operator) is kind
    assert (operator.num_nodes, operator.dtype) == (5, torch.float64)


def test_a_function_and_an_operator():
    made = OperatorBuilder(partial(TableOperator, order=2, candidates=3), order=9)(X, EDGES)
    assert isinstance(made, TableOperator)
    assert made.order == 2
    assert OperatorBuilder("exact", 3)(X, made) is made


def test_weights_and_directions_reach_the_graph():
    weight = torch.tensor([1.0, 2.0, 3.0])
    plain = OperatorBuilder("exact", 3)(X, EDGES, weight)
    assert plain.graph.adjacency[2, 1] == 2.0  # type: ignore[attr-defined]
    covered = OperatorBuilder("exact", 3, directed=True)(X, EDGES, weight)
    assert covered.num_nodes == 10
    assert covered.graph.adjacency[2, 5] == 2.0  # type: ignore[attr-defined]  # 1 as a source, 2 as a target
    two_way = OperatorBuilder("exact", 3, directed=True)(X, Graph.from_edges(EDGES, 5))
    assert two_way.graph.num_entries == 12  # type: ignore[attr-defined]


def test_the_first_operator_is_kept():
    builder = OperatorBuilder("chebyshev", 2, cached=True)
    operator = builder(X, EDGES)
    assert builder(X, ZOO["path"]) is operator
    assert copy.deepcopy(builder).kept is operator
    assert pickle.loads(pickle.dumps(builder)).kept is None
    with pytest.raises(AsgatError, match="cached=True"):
        builder(X[:4], EDGES)
    assert OperatorBuilder("chebyshev", 2)(X, EDGES) is not operator


@pytest.mark.parametrize(("name", "order", "words"), [("fourier", 3, "Unknown operator"), ("exact", 0, "order must")])
def test_bad_arguments(name, order, words):
    with pytest.raises(AsgatError, match=words):
        OperatorBuilder(name, order)


def test_a_graph_that_does_not_fit():
    directed = Graph.from_edges(EDGES, 5, directed=True)
    with pytest.raises(AsgatError, match="directed=True"):
        OperatorBuilder("exact", 3)(X, directed)
    with pytest.raises(AsgatError, match="has 4 nodes"):
        OperatorBuilder("exact", 3)(X, ExactOperator(Graph.from_edges(EDGES, 4)))
    with pytest.raises(AsgatError, match="two per node"):
        OperatorBuilder("exact", 3, directed=True)(X, ExactOperator(directed.undirected))


@pytest.mark.parametrize("directed", [False, True])
def test_a_sparse_matrix_is_the_transposed_adjacency(directed):
    build, weight = OperatorBuilder("exact", 3, directed), torch.tensor([1.0, 2.0, 3.0])
    expected = build(X, EDGES, weight)
    adj_t = torch.sparse_coo_tensor(EDGES.flip(0), weight, (5, 5), check_invariants=True)
    for matrix in (adj_t, adj_t.to_sparse_csr()):
        made = build(X, matrix)
        assert (made.graph.adjacency != expected.graph.adjacency).nnz == 0  # type: ignore[attr-defined]
    with pytest.raises(AsgatError, match="adj_t holds the weights of edges as its values; leave out edge_weight"):
        build(X, adj_t, weight)
    with pytest.raises(AsgatError, match="x has 5 rows, but the graph has"):
        build(X, torch.eye(4).to_sparse())


def test_weights_that_require_a_gradient_are_refused():
    build, weight = OperatorBuilder("exact", 3, cached=True), torch.ones(3, requires_grad=True)
    adj_t = torch.sparse_coo_tensor(EDGES.flip(0), weight, (5, 5), check_invariants=True)
    for graph in ((EDGES, weight), (adj_t,)):
        with pytest.raises(AsgatError, match=r"edge_weight requires a gradient.*pass edge_weight\.detach\(\)"):
            build(X, *graph)
    build(X, EDGES, weight.detach())
    with pytest.raises(AsgatError, match="requires a gradient"):
        build(X, EDGES, weight)  # with the operator that is kept, too
    with torch.no_grad():
        assert OperatorBuilder("exact", 3)(X, EDGES, weight).num_nodes == 5


def test_operators_of_features_in_half_precision_are_in_single():
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        assert OperatorBuilder("chebyshev", 3)(X.to(dtype), EDGES).dtype == torch.float32
