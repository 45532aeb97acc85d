import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import graphs

from asgat.errors import AsgatError
from asgat.filters import MLPFilter
from asgat.graph import Graph
from asgat.kernels import select_top
from asgat.nn import ASGATConv
from asgat.nn.attention import attend
from asgat.spectral.chebyshev_interpolation import ChebyshevInterpolation
from asgat.spectral.signal_operator import as_signal_operator
from asgat.tables import RowOperator, TableOperator
from asgat.tables.exact_builder import build_exact

F64 = torch.float64


def operators(graph, rows=None, **options):
    """The operator of a graph, and that of some of its rows."""
    whole = TableOperator(graph, order=4, candidates=6, dtype=F64, **options)
    table = whole.table if rows is None else build_exact(graph.shifted, 4, 6, rows=rows)
    return whole, RowOperator(table, 6, whole.rows.interpolation)


@given(graphs(min_nodes=2), st.data())
def test_rows_score_as_they_do_in_the_whole_table(graph, data):
    rows = torch.tensor(data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=8)), dtype=torch.int64)
    whole, shard = operators(graph, rows.numpy())
    filter = MLPFilter(2).double()
    index, score = whole.top(filter, 3)
    taken_index, taken_score = shard.top(filter, 3)
    there = score[:, rows] > -torch.inf
    assert torch.equal(taken_score, score[:, rows])
    assert torch.equal(taken_index[there].long(), index[:, rows][there])


def test_what_is_gathered_is_what_numbers_count():
    """A rank that holds the second half asks for the first."""
    n = 10
    rows = torch.arange(n // 2, n)
    whole, shard = operators(path_graph(), rows.numpy())
    x = torch.randn(n, 3, dtype=F64)
    conv = ASGATConv(3, 4, heads=2, k=3, root=True).double()
    number = torch.cat([torch.arange(n - n // 2, n), torch.arange(0, n - n // 2)]).int()
    others = x[: n // 2] @ conv.weight
    part = shard.renumbered(number, lambda own: torch.cat([own, others]))
    assert torch.allclose(conv(x[rows], part), conv(x, whole)[rows])
    with pytest.raises(AsgatError, match="x has 3 rows"):
        conv(x[:3], part)


def test_from_a_table_alone_it_is_the_same_operator(path_graph_operators):
    whole, _ = path_graph_operators
    alone = RowOperator(whole.table, whole.candidates, ChebyshevInterpolation(whole.order, dtype=F64))
    filter = MLPFilter(2).double()
    assert torch.equal(alone.coefficients(filter), whole.coefficients(filter))
    assert torch.equal(alone.top(filter, 3)[1], whole.top(filter, 3)[1])
    moved = alone.to(dtype=torch.float32)
    assert moved.coefficients(filter.float()).dtype == torch.float32
    assert alone.to(dtype=F64) is alone
    assert alone.to() is alone
    assert alone.lambda_max == 2.0


def test_rows_of_an_exact_table_are_certified_as_in_the_whole():
    rows = torch.tensor([5, 1, 8])
    whole, shard = operators(path_graph(), rows.numpy())
    filter = MLPFilter(2).double()
    certificate = attend(shard, filter, 3, certified=True).certificate
    truth = attend(whole, filter, 3, certified=True).certificate
    assert certificate is not None
    assert truth is not None
    assert torch.allclose(certificate.bound, truth.bound[:, rows])
    assert torch.equal(certificate.exact, truth.exact[:, rows])


def test_rows_cannot_filter_signals(path_graph_operators):
    whole, rows = path_graph_operators
    assert as_signal_operator(whole) is whole
    with pytest.raises(AsgatError, match="RowOperator holds only some rows of a graph and cannot filter a signal"):
        as_signal_operator(rows)


def path_graph():
    return Graph.from_edges([[0, 1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8, 9]])


@pytest.fixture
def path_graph_operators():
    return operators(path_graph())


def test_a_truncated_part_is_not_certified():
    graph = Graph.from_edges([[0, 1, 2], [1, 2, 3]])
    shard = operators(graph, builder="truncated")[0].rows
    with pytest.raises(AsgatError, match="truncated"):
        attend(shard, MLPFilter(1).double(), 2, certified=True)


@pytest.mark.parametrize("learned", [True, False])
def test_selecting_for_several_filters_at_once_is_selecting_for_each(path_graph_operators, learned, monkeypatch):
    torch.manual_seed(0)
    _, rows = path_graph_operators
    filters = [MLPFilter(heads).double() for heads in (1, 3, 2)]
    calls = []

    def counted(*given):
        calls.append(given)
        return select_top(*given)

    monkeypatch.setattr("asgat.tables.row_operator.select_top", counted)
    for moved in (0.0, 0.1):  # without a last selection, and with one
        with torch.no_grad():
            for value in (value for filter in filters for value in filter.parameters()):
                value.add_(moved)
        with torch.set_grad_enabled(learned):
            expected = [operators(path_graph())[1].top(filter, 3) for filter in filters]
            calls.clear()
            found = rows.top_each(filters, 3)
            assert len(calls) == 1
            again = [rows.top(filter, 3) for filter in filters]
            assert len(calls) == 1
        for pair in (found, again):
            assert all(
                torch.equal(a, b)
                for one, other in zip(pair, expected, strict=True)
                for a, b in zip(one, other, strict=True)
            )
        if learned:
            sums = [sum(score.clamp(min=-9).sum() for _, score in given) for given in (found, expected)]
            parameters = [value for filter in filters for value in filter.parameters()]
            gradients = [torch.autograd.grad(total, parameters) for total in sums]
            assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
