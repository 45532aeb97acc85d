import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import ZOO, generic_graph, graphs

from asgat.errors import AsgatError
from asgat.filters import HeatFilter
from asgat.nn.attention import SparseAttention, attend
from asgat.spectral import ArmaOperator, ChebyshevOperator, ExactOperator

OPERATORS = {
    "exact": lambda graph: ExactOperator(graph, dtype=torch.float64),
    "chebyshev": lambda graph: ChebyshevOperator(graph, 3, dtype=torch.float64),
}
SIZES = st.none() | st.integers(1, 12)


def scores(operator, filter):
    """Scores by numpy: [heads, N, N] and who is reached."""
    score = operator.dense(filter)
    return score, operator.scores(filter)[1][0].isfinite().numpy()


def example(heads=2, seed=0):
    """An attention over 5 nodes with arbitrary numbers, a repeated index and a filled-up entry."""
    rng = torch.Generator().manual_seed(seed)
    index = torch.randint(0, 5, (heads, 5, 3), generator=rng)
    index[0, 0] = torch.tensor([2, 2, 4])
    weight = torch.rand(heads, 5, 3, dtype=torch.float64, generator=rng)
    weight[-1, 1, 2] = 0.0
    return SparseAttention(index, weight, 5)


# -- attend ------------------------------------------------------------------------------------------------


@given(graphs(), st.sampled_from(list(OPERATORS)), SIZES, st.booleans())
def test_rows_are_a_softmax_of_the_k_best(graph, name, k, include):
    operator, filter = OPERATORS[name](graph), dense.filters()["mlp"]
    score, reached = scores(operator, filter)
    allowed = np.ones_like(reached) if include else reached
    attention = attend(operator, filter, k, include)
    full = attention.to_dense()
    assert full.shape == score.shape
    torch.testing.assert_close(full.sum(-1), torch.ones(full.shape[:2], dtype=torch.float64))
    assert (full >= 0).all()
    assert (full[:, torch.from_numpy(~allowed)] == 0).all()
    kept = (full > 0).sum(-1)
    assert torch.equal(kept, torch.from_numpy(allowed.sum(-1)).clamp(max=k or graph.num_nodes).expand_as(kept))
    expected = dense.attention(score, k, allowed)
    by_rank = [m.sort(-1).values for m in (full, expected)]
    torch.testing.assert_close(by_rank[0], by_rank[1], atol=1e-9, rtol=1e-9)
    clear = torch.from_numpy(~dense.tied_rows(score, k, allowed))
    torch.testing.assert_close(full[clear], expected[clear], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("k", [1, 3, None])
def test_gradients_reach_the_filter(name, k):
    graph, filter = ZOO["generic"], dense.filters()["mlp"]
    operator = OPERATORS[name](graph)
    score, reached = scores(operator, filter)
    weight = torch.randn(score.shape, dtype=torch.float64)
    expected = dense.gradients(dense.attention(score, k, reached), filter, weight)
    actual = dense.gradients(attend(operator, filter, k).to_dense(), filter, weight)
    for key in expected:
        torch.testing.assert_close(actual[key], expected[key], atol=1e-9, rtol=1e-9)
    if k == 1:  # a softmax of one number is 1, whatever the filter
        assert all((g == 0).all() for g in actual.values())
    else:
        assert any((g != 0).any() for g in actual.values())


def test_none_is_the_dense_softmax_over_reachable_nodes():
    graph, filter = ZOO["generic"], dense.filters()["mlp"]
    score = dense.exact_scores(graph, filter)
    masked = score.masked_fill(torch.from_numpy(dense.hops(graph) < 0), -torch.inf)
    attention = attend(OPERATORS["exact"](graph), filter, None)
    torch.testing.assert_close(attention.to_dense(), torch.softmax(masked, dim=-1))


def test_an_isolated_node_attends_to_itself_alone():
    graph = ZOO["no edges"]
    for make in OPERATORS.values():
        for k in (1, 3, None):
            attention = attend(make(graph), dense.filters()["mlp"], k)
            assert torch.equal(attention.to_dense(), torch.eye(5, dtype=torch.float64).expand(2, 5, 5))


def test_no_nodes_no_attention():
    for make in OPERATORS.values():
        for k in (3, None):
            attention = attend(make(ZOO["no nodes"]), dense.filters()["mlp"], k)
            assert attention.to_dense().shape == (2, 0, 0)
            assert attention.aggregate(torch.ones(0, 4, dtype=torch.float64)).shape == (2, 0, 4)
            assert attention.density() == 0.0


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(k):
    with pytest.raises(AsgatError, match=f"k must be at least 1, but is {k}"):
        attend(OPERATORS["exact"](ZOO["path"]), HeatFilter(1).double(), k)


# -- SparseAttention ---------------------------------------------------------------------------------------


@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 9))
def test_aggregate_is_the_dense_product(heads, features, seed):
    attention = example(heads, seed)
    x = torch.randn(5, features, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(attention.aggregate(x), attention.to_dense() @ x)


def test_to_dense_by_hand():
    attention = example()
    expected = torch.zeros(2, 5, 5, dtype=torch.float64)
    for head, v, position in np.ndindex(*attention.index.shape):
        expected[head, v, attention.index[head, v, position]] += attention.weight[head, v, position]
    torch.testing.assert_close(attention.to_dense(), expected)


def test_gradients_of_aggregate_reach_weights_and_features():
    index = example().index

    def value(weight, x):
        return SparseAttention(index, weight, 5).aggregate(x)

    weight = example().weight.clone().requires_grad_()
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(value, (weight, x))


def test_aggregate_without_all_pairs_index_copies():
    """k = None shares one index among heads and rows; the sum must not mind."""
    graph, filter = generic_graph(3, 11), dense.filters()["mlp"]
    attention = attend(OPERATORS["exact"](graph), filter, None)
    x = torch.randn(11, 4, dtype=torch.float64)
    torch.testing.assert_close(attention.aggregate(x), attention.to_dense() @ x)


def test_density_counts_weights_that_are_not_zero():
    assert example().density() == pytest.approx(29 / 50)
    attention = attend(OPERATORS["exact"](ZOO["generic"]), dense.filters()["mlp"], 1)
    assert attention.density() == pytest.approx(1 / 14)


@pytest.mark.parametrize("head", [0, 1])
def test_to_edges_are_messages_from_attended_to_attending(head):
    attention = attend(OPERATORS["exact"](ZOO["generic"]), dense.filters()["mlp"], 4)
    (source, target), weight = attention.to_edges(head)
    assert len(weight) == (attention.weight[head] > 0).sum()
    rebuilt = torch.zeros(14, 14, dtype=torch.float64)
    rebuilt[target, source] = weight
    torch.testing.assert_close(rebuilt, attention.to_dense()[head])


def test_dropout_zeroes_and_scales():
    torch.manual_seed(0)
    weight = torch.rand(4, 200, 10) + 0.1
    attention = SparseAttention(torch.zeros(4, 200, 10, dtype=torch.long), weight, 200)
    dropped = attention.dropout(0.4)
    gone = dropped.weight == 0
    assert 0.37 < gone.float().mean() < 0.43
    torch.testing.assert_close(dropped.weight[~gone], weight[~gone] / 0.6)
    assert dropped.index is attention.index
    assert torch.equal(attention.weight, weight), "the attention itself stays"


def test_no_dropout_outside_training_or_at_zero():
    attention = example()
    assert attention.dropout(0.9, training=False) is attention
    assert attention.dropout(0.0) is attention


def test_heads():
    assert example(heads=3).heads == 3


@pytest.mark.parametrize("operator", [ExactOperator, ChebyshevOperator, ArmaOperator])
@pytest.mark.parametrize("k", [3, None])
def test_autocast_changes_no_attention(operator, k):
    made, filter = operator(generic_graph(3, 20)), dense.filters()["mlp"].float()
    plain = attend(made, filter, k)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = attend(made, filter, k)
    assert torch.equal(cast.index, plain.index)
    assert torch.equal(cast.weight, plain.weight)
