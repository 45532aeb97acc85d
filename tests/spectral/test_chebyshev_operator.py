from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.spectral.conformance import OperatorConformance, assert_near
from tests.strategies import ZOO, generic_graph, graphs

from asgat.errors import AsgatError
from asgat.filters import HeatFilter
from asgat.graph import Graph
from asgat.spectral import ChebyshevOperator, ExactOperator


class ChebyshevConformance(OperatorConformance):
    order = 4
    sampling_points: int | None = None
    lambda_max: Any = "bound"
    damping = False
    memory: ClassVar[dict[str, Any]] = {}

    def make(self, graph, **where):
        return ChebyshevOperator(
            graph, self.order, self.sampling_points, self.lambda_max, self.damping, **self.memory, **where
        )

    def dense_truth(self, graph, filter):
        lambda_max = 2.0 if self.lambda_max == "bound" else graph.lambda_max
        scores = dense.interpolant_scores(graph, filter, self.order, self.sampling_points, lambda_max, self.damping)
        hops = dense.hops(graph)
        return scores, (hops >= 0) & (hops <= self.order)


class TestInterpolant(ChebyshevConformance): ...


class TestDefaultOrder(ChebyshevConformance):
    order = 15


class TestFirstOrder(ChebyshevConformance):
    order = 1


class TestOversampled(ChebyshevConformance):
    sampling_points = 9


class TestLanczos(ChebyshevConformance):
    order = 3
    lambda_max = "lanczos"


class TestDamped(ChebyshevConformance):
    damping = True


class TestDampedOversampledLanczos(ChebyshevConformance):
    order = 3
    sampling_points = 7
    lambda_max = "lanczos"
    damping = True


class TestUncached(ChebyshevConformance):
    memory: ClassVar[dict[str, Any]] = {"cache_bytes": 0}


class TestUncachedRowByRow(ChebyshevConformance):
    memory: ClassVar[dict[str, Any]] = {"cache_bytes": 0, "block_bytes": 1}


class TestCachedRowByRow(ChebyshevConformance):
    memory: ClassVar[dict[str, Any]] = {"block_bytes": 1}


# -- coefficients ------------------------------------------------------------------------------------------


def test_the_paper_s_order_and_no_damping_unless_asked_for():
    operator, filter = ChebyshevOperator(ZOO["path"], dtype=torch.float64), HeatFilter(1).double()
    assert operator.order == 15
    plain = ChebyshevOperator(ZOO["path"], 15, 16, "bound", False, torch.float64)
    assert torch.equal(operator.coefficients(filter), plain.coefficients(filter))


@given(graphs(max_nodes=8), st.integers(0, 10))
def test_damping_keeps_a_non_negative_response_non_negative(graph, seed):
    """A response that is 1 in a narrow band rings; damped it does not fall below 0."""

    class Spike(HeatFilter):
        def forward(self, frequency):
            return (frequency.unsqueeze(-1) - seed / 5.0).abs().lt(0.1).to(frequency)

    operator = ChebyshevOperator(graph, 12, damping=True, dtype=torch.float64)
    assert np.linalg.eigvalsh(operator.dense(Spike(1))[0].numpy()).min() > -1e-10


def test_without_damping_the_same_response_rings():
    class Step(HeatFilter):
        def forward(self, frequency):
            return frequency.unsqueeze(-1).lt(1.0).to(frequency)

    graph = generic_graph(0, 40)
    lowest = [
        np.linalg.eigvalsh(ChebyshevOperator(graph, 12, damping=d, dtype=torch.float64).dense(Step(1))[0]).min()
        for d in (False, True)
    ]
    assert lowest[0] < -1e-3
    assert lowest[1] > -1e-10


# -- convergence -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lambda_max", ["bound", "lanczos"])
@pytest.mark.parametrize("graph", ["path", "bipartite", "generic", "generic too"])
def test_converges_to_exact_for_a_smooth_filter(graph, lambda_max):
    """The error stays below twice the tail of the filter's Chebyshev series, and all but vanishes."""
    scale = 3.0
    filter = HeatFilter(1, scale).double()
    exact = ExactOperator(ZOO[graph], dtype=torch.float64).dense(filter)[0].numpy()
    truth = dense.exact_scores(ZOO[graph], filter)[0].numpy()
    errors = []
    for order in range(1, 17):
        operator = ChebyshevOperator(ZOO[graph], order, lambda_max=lambda_max, dtype=torch.float64)
        difference = np.linalg.norm(operator.dense(filter)[0].numpy() - truth, 2)
        assert abs(difference - np.linalg.norm(operator.dense(filter)[0].numpy() - exact, 2)) < 1e-10
        # e^(-s(x+1)) has coefficients 2 e^-s I_i(s); interpolation adds each one's alias
        tail = 4.0 * np.exp(-scale) * sum(scipy.special.iv(i, scale) for i in range(order + 1, order + 30))
        assert difference <= tail + 1e-12
        errors.append(difference)
    assert errors[-1] < 1e-9
    assert errors[-1] < 1e-5 * errors[0]


def test_a_polynomial_filter_is_exact_from_its_degree_on():
    filter = dense.filters()["polynomial"]  # degree 3
    truth = dense.exact_scores(ZOO["generic"], filter)
    for order in (3, 4, 9):
        assert_near(ChebyshevOperator(ZOO["generic"], order, dtype=torch.float64).dense(filter), truth)
    rough = ChebyshevOperator(ZOO["generic"], 2, dtype=torch.float64).dense(filter)
    assert (rough - truth).abs().max() > 1e-3


# -- reach -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(graph=graphs(max_nodes=10), order=st.integers(1, 5), cached=st.booleans())
def test_a_node_reaches_exactly_the_nodes_within_order_hops(dtype, graph, order, cached):
    cache: dict[str, Any] = {} if cached else {"cache_bytes": 0}
    operator = ChebyshevOperator(graph, order, dtype=dtype, **cache)
    _, score = operator.scores(HeatFilter(1).to(dtype))
    hops = dense.hops(graph)
    assert np.array_equal(score[0].isfinite().numpy(), (hops >= 0) & (hops <= order))


def test_reach_along_a_long_path_with_hubs_in_single_precision():
    """Each hop of a path through hubs costs a factor; fifteen of them must not vanish."""
    length, leaves = 15, 30
    spine = np.stack([np.arange(length), np.arange(1, length + 1)])
    hub = np.repeat(np.arange(length + 1), leaves)
    ends = np.concatenate([spine, np.stack([hub, length + 1 + np.arange(len(hub))])], axis=1)
    _, score = ChebyshevOperator(Graph.from_edges(ends), 15).scores(HeatFilter(1), slice(0, 1))
    assert score[0, 0, : length + 1].isfinite().all()
    assert not score[0, 0, -1].isfinite()


# -- memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [{"cache_bytes": 0}, {"cache_bytes": 0, "block_bytes": 20_000}, {"block_bytes": 1}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_memory_limits_change_nothing(memory, dtype):
    graph, filter = generic_graph(4, 40), dense.filters(heads=3)["mlp"].to(dtype)
    plain = ChebyshevOperator(graph, 6, dtype=dtype)
    limited = ChebyshevOperator(graph, 6, dtype=dtype, **memory)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    assert_near(limited.dense(filter), plain.dense(filter), tolerance)
    for (index, score), (limited_index, limited_score) in [(plain.top(filter, 4), limited.top(filter, 4))]:
        assert_near(limited_score, score, tolerance)
        assert torch.equal(limited_index, index)


def test_blocks_cover_every_row_once_and_respect_the_limit():
    operator = ChebyshevOperator(generic_graph(4, 40), 6, cache_bytes=0, block_bytes=20_000)
    blocks = list(operator._blocks(heads=3))
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(40))
    assert len(blocks) > 3
    assert all((b.stop - b.start) * 40 * 7 * 4 <= 20_000 for b in blocks)


@pytest.mark.parametrize("rows", [0, 1, 3, 9, 100])
def test_blocks_are_as_large_as_the_limit_allows(rows):
    """A row of 40 nodes: 6 + 4 numbers of 4 bytes, and for each of 3 heads 2 of them and 3 keys of 8."""
    per_row = 40 * (10 * 4 + 3 * (2 * 4 + 24))
    limit = rows * per_row + per_row - 1
    blocks = list(ChebyshevOperator(generic_graph(4, 40), 6, cache_bytes=0, block_bytes=limit)._blocks(heads=3))
    assert {block.stop - block.start for block in blocks[:-1]} <= {max(rows, 1)}
    assert len(blocks) == -(-40 // max(rows, 1))


def test_the_cache_is_kept_only_where_it_fits():
    size = 5 * 14 * 14 * 4
    assert ChebyshevOperator(ZOO["generic"], 4, cache_bytes=size)._cached is not None
    assert ChebyshevOperator(ZOO["generic"], 4, cache_bytes=size - 1)._cached is None


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"order": 0}, "order must be at least 1, but is 0"),
        ({"order": -3}, "order must be at least 1, but is -3"),
        ({"order": 4, "sampling_points": 4}, r"at least order \+ 1 = 5, but is 4"),
        ({"lambda_max": "exact"}, "bound or lanczos, not 'exact'"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(AsgatError, match=sentence):
        ChebyshevOperator(ZOO["path"], **arguments)
