"""What holds of attention on any graph and with any settings: no NaN, rows that sum to one, an honest certificate.

Names of nodes and the precision play no part by rank, ever; in the outputs, wherever the k-th score and the next differ
by more than rounding.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import permuted

from asgat.graph import Graph
from asgat.nn import ASGATConv
from asgat.nn.attention import attend
from asgat.spectral import ArmaOperator, ChebyshevOperator, ExactOperator
from asgat.tables import TableOperator

ORDER = 5
SHAPES = ("random", "isolated", "disconnected", "complete", "star", "bipartite", "multi-edges", "path", "loops")
UNITS = {"one": (1.0, 1.0), "varied": (0.1, 10.0), "huge": (1e300, 3e300), "tiny": (1e-300, 3e-300)}
MIXED = {"mixed": (1e-12, 1e12), "far apart": (1e-300, 1e300)}  # some edges next to nothing beside others
DTYPES = ("float32", "float64")
FILTERS = ("mlp", "heat", "polynomial")


@dataclass(frozen=True)
class Case:
    """A graph by what it is made of, so that hypothesis shows and shrinks that."""

    shape: str
    nodes: int
    weights: str
    seed: int

    def graph(self) -> Graph:
        n, rng = self.nodes, np.random.default_rng(self.seed)
        every = np.argwhere(np.triu(np.ones((n, n)), 1)).T if n < 25 or self.shape == "complete" else None
        half = max(n // 2, 1)
        some = rng.integers(0, max(n, 1), (2, 2 * n if n > 1 else 0))
        ends = {
            "random": some,
            "isolated": some % half,
            "disconnected": some % half + half * (some[:1] >= half),
            "complete": every,
            "star": np.stack([np.zeros(max(n - 1, 0), dtype=int), np.arange(1, max(n, 1))]),
            "bipartite": some % half * 2 + [[0], [1]],
            "multi-edges": np.concatenate([some, some[::-1], some], axis=1),
            "path": np.stack([np.arange(max(n - 1, 0)), np.arange(1, max(n, 1))]),
            "loops": np.concatenate([some, np.stack([np.arange(n)] * 2)], axis=1),
        }[self.shape]
        ends = np.asarray(ends, dtype=np.int64).reshape(2, -1)
        low, high = np.log10((UNITS | MIXED)[self.weights])
        return Graph.from_edges(ends, n, 10.0 ** rng.uniform(low, high, ends.shape[1]))


def cases(weights=(*UNITS, *MIXED)):
    return st.builds(
        Case, st.sampled_from(SHAPES), st.integers(0, 60), st.sampled_from(list(weights)), st.integers(0, 2**16)
    )


def test_shapes_are_what_they_are_called():
    for n in range(4, 61, 7):
        graph = {shape: Case(shape, n, "varied", n).graph().adjacency for shape in SHAPES}
        assert all(matrix.shape == (n, n) for matrix in graph.values())
        degree = {shape: np.diff(matrix.indptr) for shape, matrix in graph.items()}
        assert (degree["complete"] >= n - 1).all()
        assert sorted(degree["star"]) == [1] * (n - 1) + [n - 1]
        assert (degree["isolated"][n // 2 :] == 0).all()
        apart, sided = (graph[shape].tocoo() for shape in ("disconnected", "bipartite"))
        assert ((apart.row < n // 2) == (apart.col < n // 2)).all()
        assert apart.row.max() >= n // 2
        assert ((sided.row + sided.col) % 2 == 1).all()
        assert (graph["loops"].diagonal() > 0).all()


OPERATORS = {
    "exact": lambda graph, dtype: ExactOperator(graph, dtype=dtype),
    "chebyshev": lambda graph, dtype: ChebyshevOperator(graph, ORDER, dtype=dtype),
    "table": lambda graph, dtype: TableOperator(graph, ORDER, dtype=dtype, candidates=64, storage=dtype),
    "few candidates": lambda graph, dtype: TableOperator(graph, ORDER, dtype=dtype, candidates=6, cap=3),
    "truncated": lambda graph, dtype: TableOperator(graph, ORDER, dtype=dtype, candidates=6, builder="truncated"),
    "arma": lambda graph, dtype: ArmaOperator(graph, 3, 2, dtype=dtype),
}
# Those that score every pair there is, so that ties and rounding are all that can tell two runs apart.
WHOLE = ("exact", "chebyshev", "table")


def features(nodes, dtype=torch.float64):
    return torch.randn(nodes, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).to(dtype)


def by_rank(attention):
    return attention.weight.detach().sort(-1).values.double()


def clear_rows(operator, filter, k, gap):
    """Rows [heads, N] whose k-th best score and the next one differ by more than the gap."""
    _, score = operator.scores(filter)
    ordered = score.detach().double().sort(-1, descending=True).values
    if k >= ordered.size(-1):
        return torch.ones(ordered.shape[:2], dtype=torch.bool)
    nothing_left = torch.isneginf(ordered[..., k])
    return nothing_left | (ordered[..., k - 1] - ordered[..., k] > gap)


@pytest.mark.parametrize("name", OPERATORS)
@given(case=cases(), k=st.integers(1, 6), filter=st.sampled_from(FILTERS), dtype=st.sampled_from(DTYPES))
@example(case=Case("star", 60, "far apart", 0), k=3, filter="mlp", dtype="float32")
@example(case=Case("complete", 60, "huge", 0), k=6, filter="polynomial", dtype="float32")
@example(case=Case("random", 0, "one", 0), k=1, filter="mlp", dtype="float64")
def test_no_nan_and_rows_sum_to_one(name, case, k, filter, dtype):
    graph, precision = case.graph(), getattr(torch, dtype)
    operator, response = OPERATORS[name](graph, precision), dense.filters()[filter].to(precision)
    attention = attend(operator, response, k)
    assert torch.isfinite(attention.weight).all()
    assert (attention.weight >= 0).all()
    total = attention.weight.sum(-1)
    torch.testing.assert_close(total, torch.ones_like(total), atol=1e-5, rtol=0)
    output = attention.aggregate(features(graph.num_nodes, precision))
    assert torch.isfinite(output).all()
    if not output.requires_grad:  # no node, no attention
        return
    gradients = torch.autograd.grad(output.square().sum(), list(response.parameters()), allow_unused=True)
    assert all(torch.isfinite(gradient).all() for gradient in gradients if gradient is not None)


def small_table(graph, dtype, device):
    return TableOperator(graph, ORDER, dtype=dtype, device=device, candidates=6)


@given(
    case=cases(),
    k=st.none() | st.integers(1, 6),
    operator=st.sampled_from(["chebyshev", "exact", small_table]),
    concat=st.booleans(),
    root=st.booleans(),
    include=st.booleans(),
)
def test_a_layer_of_any_settings_gives_numbers(case, k, operator, concat, root, include):
    graph = case.graph()
    torch.manual_seed(0)
    every = include and operator is not small_table  # a table holds no pair that is out of reach
    layer = ASGATConv(
        3, 2, heads=2, k=k, operator=operator, order=ORDER, concat=concat, root=root, include_unreachable=every
    )
    x = features(graph.num_nodes, torch.float32).requires_grad_()
    output = layer(x, graph)
    assert torch.isfinite(output).all()
    output.square().sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters() if p.grad is not None)


def chebyshev_values(graph):
    """T_i(X) for all orders, [ORDER + 1, N, N], by the dense recurrence."""
    a = graph.adjacency.toarray()
    root = np.sqrt(a.sum(axis=1))
    root[root == 0] = 1.0
    x = -(np.sqrt(a) / root[:, None]) * (np.sqrt(a) / root)
    values = [np.eye(len(a)), x]
    while len(values) <= ORDER:
        values.append(2 * x @ values[-1] - values[-2])
    return torch.from_numpy(np.stack(values))


@pytest.mark.parametrize("storage", [torch.float32, torch.float16])
@given(case=cases(), k=st.integers(1, 4), candidates=st.integers(4, 8), filter=st.sampled_from(FILTERS))
@example(case=Case("star", 60, "one", 0), k=2, candidates=4, filter="polynomial")
def test_the_certificate_is_never_below_the_truth(storage, case, k, candidates, filter):
    graph, response = case.graph(), dense.filters()[filter].float()
    operator = TableOperator(graph, ORDER, candidates=candidates, cap=2, storage=storage)
    attention = attend(operator, response, k, certified=True)
    coefficients = operator.coefficients(response).detach().double()
    score = torch.tensordot(coefficients, chebyshev_values(graph), dims=1)
    reached = torch.from_numpy((dense.hops(graph) >= 0) & (dense.hops(graph) <= ORDER))
    for head in range(attention.heads):
        for v in range(graph.num_nodes):
            kept = attention.index[head, v][attention.weight[head, v] > 0]
            left = reached[v].clone()
            left[kept] = False
            if left.any():
                error = float(score[head, v][left].max() - score[head, v][kept].min())
                assert attention.certificate is not None
                assert error <= float(attention.certificate.bound[head, v]), (head, v)


@pytest.mark.parametrize("name", WHOLE)
@given(case=cases(UNITS), k=st.integers(1, 6), filter=st.sampled_from(FILTERS), seed=st.integers(0, 999))
def test_names_of_nodes_play_no_part(name, case, k, filter, seed):
    graph, response = case.graph(), dense.filters()[filter]
    order = np.random.default_rng(seed).permutation(graph.num_nodes)
    operator, renamed = (OPERATORS[name](g, torch.float64) for g in (graph, permuted(graph, order)))
    attention, other = attend(operator, response, k), attend(renamed, response, k)
    torch.testing.assert_close(by_rank(attention)[:, order], by_rank(other), atol=1e-9, rtol=0)
    x = features(graph.num_nodes)
    clear = clear_rows(operator, response, k, 1e-9)[:, order]
    outputs = attention.aggregate(x)[:, order], other.aggregate(x[order])
    torch.testing.assert_close(outputs[0][clear], outputs[1][clear], atol=1e-8, rtol=0)


@pytest.mark.parametrize("name", WHOLE)
@given(case=cases(UNITS), k=st.integers(1, 6), filter=st.sampled_from(FILTERS))
def test_single_precision_is_near_double(name, case, k, filter):
    graph, response = case.graph(), dense.filters()[filter]
    operator = OPERATORS[name](graph, torch.float64)
    attention = attend(operator, response, k)
    clear = clear_rows(operator, response, k, 1e-4)
    single = attend(OPERATORS[name](graph, torch.float32), response.float(), k)
    torch.testing.assert_close(by_rank(single), by_rank(attention), atol=2e-5, rtol=0)
    x = features(graph.num_nodes)
    outputs = single.aggregate(x.float()).double(), attention.aggregate(x)
    torch.testing.assert_close(outputs[0][clear], outputs[1][clear], atol=1e-4, rtol=0)
