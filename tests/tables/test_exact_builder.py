"""The exact table against a naive one from dense rows, on every kind of graph."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dense import hops
from tests.strategies import ZOO, generic_graph, graphs

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.tables.candidate_table import CandidateTable
from asgat.tables.exact_builder import WIDTH, _no_rows, _rows_on_device, build_exact, exact_rows
from asgat.tables.sparse_rows import SparseRows

STAR = Graph.from_edges([[0] * 40, list(range(1, 41))], edge_weight=np.linspace(0.1, 4.0, 40))
# A star alone has T_4(X) = I, and rounding would choose candidates; links among the leaves prevent that.
WHEEL_WEIGHTS = np.random.default_rng(0).uniform(1, 2, 79)
WHEEL = Graph.from_edges([[0] * 40 + [*range(1, 40)], [*range(1, 41), *range(2, 41)]], edge_weight=WHEEL_WEIGHTS)
DOUBLE_STAR = Graph.from_edges([[0] * 20 + [21] * 20 + [0], [*range(1, 21), *range(22, 42), 21]])


def shifted(graph: Graph, lambda_max: float = 2.0):
    return sp.csr_array(graph.laplacian * (2.0 / lambda_max) - sp.eye_array(graph.num_nodes))


def dense_terms(x, order):
    """T_0(X) … T_R(X), [R + 1, N, N], by dense products."""
    dense = x.toarray()
    terms = [np.eye(len(dense)), dense]
    while len(terms) <= order:
        terms.append(2.0 * dense @ terms[-1] - terms[-2])
    return np.stack(terms)


def naive(x, order, candidates, cap):
    """Candidate sets, above, below and complete from true rows; every choice by a plain sort."""
    terms = exact_rows(x, order, np.arange(x.shape[0]))
    n = x.shape[0]
    sets, above, below, complete = [], np.zeros((n, order + 1)), np.zeros((n, order + 1)), np.zeros(n, dtype=bool)
    for v in range(n):
        chosen = {v}
        for i in range(order + 1):
            ranked = sorted(range(n), key=lambda u: (-abs(terms[i, v, u]), u))
            chosen |= {u for u in ranked[:candidates] if terms[i, v, u] != 0}
        neighbours = [u for u in range(n) if u != v and terms[1, v, u] != 0]
        chosen |= set(sorted(neighbours, key=lambda u: (-abs(terms[1, v, u]), u))[:cap])
        rest = [u for u in range(n) if (terms[:, v, u] != 0).any() and u not in chosen]
        complete[v] = not rest
        if rest:
            above[v], below[v] = terms[:, v, rest].max(axis=1), terms[:, v, rest].min(axis=1)
        sets.append(sorted(chosen))
    return terms, sets, above, below, complete


def assert_naive(table, x, order, candidates, cap):
    terms, sets, above, below, complete = naive(x, order, candidates, cap)
    assert table.exact
    assert table.num_nodes == len(sets)
    for v, expected in enumerate(sets):
        entries = slice(int(table.indptr[v]), int(table.indptr[v + 1]))
        assert table.index[entries].tolist() == expected
        np.testing.assert_array_equal(table.value[entries].numpy(), terms[:, v, expected].T)
    np.testing.assert_array_equal(table.above.numpy(), above)
    np.testing.assert_array_equal(table.below.numpy(), below)
    np.testing.assert_array_equal(table.complete.numpy(), complete)


@given(graphs(max_nodes=12), st.integers(1, 6), st.sampled_from([2.0, 1.7]))
@settings(max_examples=40, derandomize=True, deadline=None)
def test_exact_rows_are_the_dense_ones(graph, order, lambda_max):
    x = shifted(graph, lambda_max)
    rows = np.arange(graph.num_nodes)[::-1]
    np.testing.assert_allclose(exact_rows(x, order, rows), dense_terms(x, order)[:, rows], atol=1e-9 * 3.0**order)


@given(graphs(max_nodes=12), st.integers(1, 6), st.integers(1, 5), st.integers(0, 4), st.sampled_from([2.0, 1.7]))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_table_is_the_naive_one(graph, order, candidates, cap, lambda_max):
    x = shifted(graph, lambda_max)
    assert_naive(build_exact(x, order, candidates, cap, dtype=torch.float64), x, order, candidates, cap)


SHAPES = {**ZOO, "weighted hub": STAR, "wheel": WHEEL, "two hubs": DOUBLE_STAR, "wide": generic_graph(3, 3 * WIDTH + 2)}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("candidates", "cap"), [(1, 0), (3, 5), (100, 256)])
def test_table_of_every_shape(name, candidates, cap):
    x = shifted(SHAPES[name])
    assert_naive(build_exact(x, 4, candidates, cap, dtype=torch.float64), x, 4, candidates, cap)


@pytest.mark.parametrize("name", SHAPES)
def test_reachable_is_within_so_many_hops(name):
    graph = SHAPES[name]
    table = build_exact(shifted(graph), 3, candidates=1000)
    assert bool(table.complete.all())
    distance = hops(graph)
    for v in range(graph.num_nodes):
        found = table.index[int(table.indptr[v]) : int(table.indptr[v + 1])].tolist()
        assert found == np.flatnonzero((distance[v] >= 0) & (distance[v] <= 3)).tolist()


@given(
    graphs(min_nodes=2, max_nodes=12),
    st.integers(1, 3),
    st.lists(st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1e6, -1e6])), min_size=6, max_size=6),
)
@settings(max_examples=80, derandomize=True, deadline=None)
def test_nothing_left_out_scores_above_the_bound(graph, candidates, coefficients):
    assert_bounded(graph, candidates, np.array(coefficients))


@given(graphs(min_nodes=4, max_nodes=12), st.integers(0, 11), st.integers(0, 11))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_nor_with_coefficients_made_for_one_pair(graph, v, u):
    x = shifted(graph)
    terms = exact_rows(x, 5, [v % graph.num_nodes])[:, 0]
    assert_bounded(graph, 1, terms[:, u % graph.num_nodes])  # the direction in which u scores highest


def assert_bounded(graph, candidates, c):
    x = shifted(graph)
    terms = exact_rows(x, 5, np.arange(graph.num_nodes))
    table = build_exact(x, 5, candidates, cap=1)
    above, below = table.above.numpy(), table.below.numpy()
    bound = np.maximum(c * above, c * below).sum(axis=1)
    score = np.einsum("i,ivu->vu", c, terms)
    for v in range(graph.num_nodes):
        kept = set(table.index[int(table.indptr[v]) : int(table.indptr[v + 1])].tolist())
        for u in range(graph.num_nodes):
            if u not in kept and terms[:, v, u].any():
                assert not table.complete[v]
                assert score[v, u] <= bound[v] + 1e-12 * np.abs(c).sum()


def test_some_rows_are_the_rows_of_all():
    x = shifted(generic_graph(2, 60))
    whole = build_exact(x, 5, 3, 2)
    rows = np.array([59, 3, 3, 17])
    some = build_exact(x, 5, 3, 2, rows=rows)
    for j, v in enumerate(rows):
        here = slice(int(some.indptr[j]), int(some.indptr[j + 1]))
        there = slice(int(whole.indptr[v]), int(whole.indptr[v + 1]))
        assert torch.equal(some.index[here], whole.index[there])
        assert torch.equal(some.value[here], whole.value[there])
    assert torch.equal(some.above, whole.above[rows])
    assert torch.equal(some.below, whole.below[rows])


def test_several_threads_and_progress():
    x = shifted(generic_graph(2, 200))
    threads, tables, told = torch.get_num_threads(), [], []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            tables.append(build_exact(x, 6, 4, progress=lambda *where: told.append(where)))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(tables[0].index, tables[1].index)
    torch.testing.assert_close(tables[0].value, tables[1].value)
    assert told == [(64, 200), (128, 200), (192, 200), (200, 200)] * 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"order": 0}, "order must be at least 1, but is 0"),
        ({"candidates": 0}, "candidates must be at least 1"),
        ({"cap": -1}, "cap must not be negative"),
        ({"rows": [0, 9]}, "Row 9 was requested"),
        ({"dtype": torch.int32}, "not in torch.int32"),
    ],
)
def test_refuses(settings, words):
    with pytest.raises(AsgatError, match=words):
        build_exact(shifted(ZOO["path"]), **{"order": 2, **settings})


# -- the accelerator's way, which torch also runs on a processor ------------------------------------------------------


def assert_like(table, other):
    """The same up to rounding; nothing is tied in the graphs this is used for."""
    assert torch.equal(table.indptr, other.indptr)
    assert torch.equal(table.index, other.index)
    assert torch.equal(table.complete, other.complete)
    for name in ("value", "above", "below"):
        torch.testing.assert_close(getattr(table, name), getattr(other, name), atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("cap", [0, 2, 50])
@pytest.mark.parametrize("name", ["no nodes", "no edges", "generic", "generic too", "wheel", "wide"])
def test_blocks_of_torch_products_give_the_same_table(name, cap):
    x = shifted(SHAPES[name])
    rows = np.arange(x.shape[0])
    cpu = torch.device("cpu")
    parts = [_no_rows(4, torch.float64, cpu), *_rows_on_device(SparseRows.of(x), 4, 3, cap, rows, torch.float64, cpu)]
    assert_like(CandidateTable.concatenate(parts), build_exact(x, 4, 3, cap, dtype=torch.float64))


def test_blocks_of_torch_products_break_ties_by_index():
    x = shifted(DOUBLE_STAR)
    cpu = torch.device("cpu")
    parts = list(_rows_on_device(SparseRows.of(x), 1, 3, 2, np.array([0]), torch.float64, cpu))
    assert parts[0].index.tolist() == build_exact(x, 1, 3, 2, rows=[0]).index.tolist()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["generic", "generic too", "wheel", "wide"])
def test_table_built_on_cuda(name):
    x = shifted(SHAPES[name])
    table = build_exact(x, 4, 3, 2, dtype=torch.float64, device="cuda")
    assert table.device.type == "cuda"
    assert_like(table.to("cpu"), build_exact(x, 4, 3, 2, dtype=torch.float64))
