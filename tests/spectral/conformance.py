"""What every spectral operator must pass, held against dense mathematics, values and gradients.

A new operator's test file has one subclass that supplies two functions:

    class TestMyOperator(OperatorConformance):
        def make(self, graph, **where): return MyOperator(graph, **where)
        def dense_truth(self, graph, filter): return scores [heads, N, N], reachable [N, N]
"""

import copy
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import dense
from tests.strategies import ZOO, generic_graph, graphs, permuted
from torch import Tensor
from torch.func import functional_call

from asgat.filters import BandStop, HeatFilter, SpectralFilter
from asgat.graph import Graph
from asgat.spectral import GraphOperator

FILTERS = list(dense.filters())
DOUBLE = torch.float64
TOLERANCE = 1e-9  # in double precision, beside scores of size 1


def ring_with_chords(nodes: int = 60, seed: int = 0) -> Graph:
    """Connected and large enough for rows to leave most of it out."""
    rng = np.random.default_rng(seed)
    ring = np.arange(nodes)
    ends = np.concatenate([np.stack([ring, np.roll(ring, -1)]), rng.integers(0, nodes, (2, nodes))], axis=1)
    return Graph.from_edges(ends, nodes, rng.uniform(0.2, 2.0, ends.shape[1]))


LARGE = ring_with_chords()


def cotangent(shape: Any) -> Tensor:
    return torch.randn(shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(5))


def assert_near(actual: Tensor, expected: Tensor, tolerance: float = TOLERANCE) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


class OperatorConformance:
    def make(self, graph: Graph, **where: Any) -> GraphOperator:
        raise NotImplementedError

    def dense_truth(self, graph: Graph, filter: SpectralFilter) -> tuple[Tensor, npt.NDArray[np.bool_]]:
        """Scores [heads, N, N] in double precision, differentiable, and the pairs that reach each other."""
        raise NotImplementedError

    def double(self, graph: Graph) -> GraphOperator:
        return self.make(graph, dtype=DOUBLE)

    def held(self, operator: Any, filter: SpectralFilter) -> GraphOperator:
        """The operator for finite differences: what gradients take for a constant must stay one."""
        held: GraphOperator = operator
        return held

    # -- values --------------------------------------------------------------------------------------------

    def check_scores(self, graph: Graph, filter: SpectralFilter) -> None:
        operator = self.double(graph)
        truth, reachable = self.dense_truth(graph, filter)
        assert_near(operator.dense(filter), truth)
        index, score = operator.scores(filter)
        assert score.dtype == DOUBLE
        assert index.shape == score.shape[1:]
        # Fillers of short rows may name any node; their -∞ is no score.
        full = torch.full_like(truth, -torch.inf).scatter_reduce(-1, index.expand_as(score), score, "amax")
        assert np.array_equal(np.isfinite(full.detach().numpy()), np.broadcast_to(reachable, full.shape))
        assert_near(full[:, torch.from_numpy(reachable)], truth[:, torch.from_numpy(reachable)])
        index, score = operator.scores(filter, include_unreachable=True)
        full = torch.zeros_like(truth).scatter(-1, index.expand_as(score), score)
        assert (full[:, torch.from_numpy(~reachable)] == 0).all(), "an unreachable node must score 0, not nearly 0"

    @pytest.mark.parametrize("name", FILTERS)
    @pytest.mark.parametrize("graph", ZOO.values(), ids=ZOO.keys())
    def test_scores_are_the_dense_truth(self, graph: Graph, name: str) -> None:
        self.check_scores(graph, dense.filters()[name])

    @given(graphs(max_nodes=9), st.sampled_from(FILTERS))
    def test_scores_are_the_dense_truth_on_any_graph(self, graph: Graph, name: str) -> None:
        self.check_scores(graph, dense.filters()[name])

    @given(graphs(max_nodes=9), st.integers(1, 4))
    def test_apply_is_the_dense_product(self, graph: Graph, features: int) -> None:
        filter = dense.filters()["mlp"]
        signal = cotangent((graph.num_nodes, features))
        assert_near(self.double(graph).apply(filter, signal), self.dense_truth(graph, filter)[0] @ signal)
        each = cotangent((filter.heads, graph.num_nodes, features))
        assert_near(self.double(graph).apply(filter, each), self.dense_truth(graph, filter)[0] @ each)

    @pytest.mark.parametrize("graph", ZOO.values(), ids=ZOO.keys())
    def test_scores_by_rows_are_those_of_all_at_once(self, graph: Graph) -> None:
        operator, filter = self.double(graph), dense.filters()["mlp"]
        for include in (False, True):
            index, score = operator.scores(filter, include_unreachable=include)
            for rows in (slice(0, 1), slice(1, 4), slice(2, 2), slice(3, 2), slice(3, None), slice(None)):
                some_index, some_score = operator.scores(filter, rows, include)
                assert torch.equal(some_index, index[rows])
                assert_near(some_score, score[:, rows], 1e-12)

    def test_a_renamed_graph_has_renamed_scores(self) -> None:
        graph, filter = ZOO["generic"], dense.filters()["mlp"]
        order = np.random.default_rng(3).permutation(graph.num_nodes)
        renamed = self.double(permuted(graph, order)).dense(filter)
        assert_near(renamed, self.double(graph).dense(filter)[:, order][:, :, order])

    # -- the k best ----------------------------------------------------------------------------------------

    def check_top(self, graph: Graph, filter: SpectralFilter, k: int, include: bool) -> None:
        truth, reachable = self.dense_truth(graph, filter)
        allowed = np.ones_like(reachable) if include else reachable
        values = truth.detach().numpy() * reachable  # what is not reached scores exactly 0
        index, score = (t.detach().numpy() for t in self.double(graph).top(filter, k, include))
        assert index.shape == score.shape
        assert index.shape[:2] == values.shape[:2]
        assert index.shape[2] <= k
        for head, v in np.ndindex(*values.shape[:2]):
            expected = dense.best(values[head, v], k, allowed[v])
            kept = np.isfinite(score[head, v])
            chosen = index[head, v, kept]
            assert kept.sum() == len(expected)
            assert kept[: len(expected)].all(), "the missing ones come last"
            assert len(set(chosen)) == len(chosen)
            assert allowed[v, chosen].all()
            np.testing.assert_allclose(score[head, v, kept], values[head, v, expected], rtol=0, atol=TOLERANCE)
            np.testing.assert_allclose(values[head, v, chosen], values[head, v, expected], rtol=0, atol=TOLERANCE)
            ordered = np.sort(values[head, v, allowed[v]])
            if (np.diff(ordered) > 1e-8).all():  # rounding cannot change the order
                assert chosen.tolist() == expected

    @pytest.mark.parametrize("include", [False, True])
    @pytest.mark.parametrize("graph", ZOO.values(), ids=ZOO.keys())
    def test_top_is_a_stable_sort_of_the_dense_truth(self, graph: Graph, include: bool) -> None:
        for k in (1, 3, 100):
            self.check_top(graph, dense.filters()["mlp"], k, include)

    @given(graphs(max_nodes=9), st.integers(1, 11), st.booleans(), st.sampled_from(FILTERS))
    def test_top_is_a_stable_sort_on_any_graph(self, graph: Graph, k: int, include: bool, name: str) -> None:
        self.check_top(graph, dense.filters()[name], k, include)

    @pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
    def test_nodes_out_of_reach_tie_and_the_lower_index_wins(self, dtype: torch.dtype) -> None:
        graph = Graph.from_edges([[3, 6], [6, 8]], 9)  # node 4 and others have no edge
        index, score = self.make(graph, dtype=dtype).top(HeatFilter(1).to(dtype), 4, include_unreachable=True)
        assert index[0, 4].tolist() == [4, 0, 1, 2]
        assert (score[0, 4, 1:] == 0).all()
        assert self.make(graph, dtype=dtype).top(HeatFilter(1).to(dtype), 4)[1][0, 4].isfinite().tolist() == [
            True,
            False,
            False,
            False,
        ]

    # -- gradients -----------------------------------------------------------------------------------------

    @pytest.mark.parametrize("name", FILTERS)
    @pytest.mark.parametrize("graph", ["star", "generic", "generic too", "loops only", "one node"])
    def test_gradients_are_those_of_the_dense_truth(self, graph: str, name: str) -> None:
        filter, operator = dense.filters()[name], self.double(ZOO[graph])
        truth, reachable = self.dense_truth(ZOO[graph], filter)
        weight = cotangent(truth.shape)
        expected = dense.gradients(truth, filter, weight * torch.from_numpy(reachable))
        index, score = operator.scores(filter)
        actual = dense.gradients(
            score.masked_fill(torch.isneginf(score), 0.0), filter, weight.gather(-1, index.expand_as(score))
        )
        for key in expected:
            assert_near(actual[key], expected[key])
        signal = cotangent((ZOO[graph].num_nodes, 3))
        weight = cotangent((filter.heads, *signal.shape))
        expected = dense.gradients(truth @ signal, filter, weight)
        actual = dense.gradients(operator.apply(filter, signal), filter, weight)
        for key in expected:
            assert_near(actual[key], expected[key])

    @pytest.mark.parametrize("name", FILTERS)
    @pytest.mark.parametrize("what", ["scores", "top", "apply"])
    def test_gradients_are_those_of_finite_differences(self, what: str, name: str) -> None:
        graph, filter = generic_graph(2, 8), dense.filters()[name]
        operator = self.held(self.double(graph), filter)
        names = [key for key, _ in filter.named_parameters()]
        signal = cotangent((graph.num_nodes, 2))

        class Bound(SpectralFilter):
            """The filter with the parameters gradcheck moves."""

            def __init__(self, values: tuple[Tensor, ...]) -> None:
                super().__init__(filter.heads)
                self.values = dict(zip(names, values, strict=True))

            def forward(self, frequency: Tensor) -> Tensor:
                response: Tensor = functional_call(filter, self.values, (frequency,))
                return response

            def reset_parameters(self) -> None: ...

        def value(*values: Tensor) -> Tensor:
            if what == "apply":
                return operator.apply(Bound(values), signal)
            _, score = operator.scores(Bound(values)) if what == "scores" else operator.top(Bound(values), 3)
            return score.masked_fill(torch.isneginf(score), 0.0)

        inputs = tuple(p.detach().clone().requires_grad_() for p in filter.parameters())
        assert torch.autograd.gradcheck(value, inputs, atol=1e-6, fast_mode=True)

    def test_apply_passes_gradients_to_the_signal(self) -> None:
        operator, filter = self.double(generic_graph(2, 8)), dense.filters()["mlp"]
        for shape in ((8, 2), (filter.heads, 8, 2)):
            signal = cotangent(shape).requires_grad_()
            assert torch.autograd.gradcheck(lambda x: operator.apply(filter, x), (signal,), atol=1e-6)

    def test_unreachable_pairs_give_no_nan_gradients(self) -> None:
        filter = dense.filters()["mlp"]
        _, score = self.double(ZOO["generic"]).top(filter, 100)
        assert torch.isneginf(score).any()
        torch.softmax(score, dim=-1)[..., 0].sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in filter.parameters())

    # -- precision and place -------------------------------------------------------------------------------

    @pytest.mark.parametrize("graph", ZOO.values(), ids=ZOO.keys())
    def test_single_precision_is_near(self, graph: Graph) -> None:
        filter = dense.filters()["mlp"]
        truth, _ = self.dense_truth(graph, filter)
        operator = self.make(graph)
        assert operator.dtype == torch.float32
        assert_near(operator.dense(filter.float()).double(), truth, 2e-5)
        signal = cotangent((graph.num_nodes, 2))
        assert_near(operator.apply(filter, signal.float()).double(), truth @ signal, 2e-4)

    def test_to_another_precision_is_the_operator_made_in_it(self) -> None:
        graph, filter = ZOO["generic"], dense.filters()["mlp"]
        single = self.make(graph)
        moved = single.to(dtype=DOUBLE)
        assert (moved.dtype, single.dtype) == (DOUBLE, torch.float32)
        assert_near(moved.dense(filter), self.double(graph).dense(filter), 1e-14)
        assert single.dense(filter.float()).dtype == torch.float32, "the old one stays as it is"
        back = moved.to(dtype=torch.float32)
        assert torch.equal(back.dense(filter), single.dense(filter))
        assert moved.to("cpu").dtype == DOUBLE

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    def test_cuda_agrees_with_cpu(self) -> None:
        graph, filter = ZOO["generic"], dense.filters()["mlp"]
        operator = self.double(graph)
        moved = operator.to("cuda")
        assert moved.device.type == "cuda"
        both = (operator, filter), (moved, copy.deepcopy(filter).cuda())
        values = [(op.dense(f).cpu(), *op.top(f, 3)) for op, f in both]
        assert_near(values[0][0], values[1][0])
        assert torch.equal(values[0][1], values[1][1].cpu())
        assert_near(values[0][2], values[1][2].cpu())

    def test_a_deep_copy_is_the_operator_and_a_pickled_one_gives_the_same(self) -> None:
        operator, filter = self.make(ZOO["generic"]), dense.filters()["mlp"].float()
        expected = operator.top(filter, 3)
        assert copy.deepcopy(operator) is operator
        restored = pickle.loads(pickle.dumps(operator))
        for actual, wanted in zip(restored.top(filter, 3), expected, strict=True):
            assert torch.equal(actual, wanted)
        assert torch.equal(restored.dense(filter), operator.dense(filter))

    def test_repr(self) -> None:
        operator = self.make(ZOO["path"])
        assert repr(operator) == f"{type(operator).__name__}(num_nodes=6)"

    def test_a_stopped_band_is_silent(self) -> None:
        everything = BandStop(dense.filters()["heat"], 0.0, 2.0)
        assert (self.double(ZOO["generic"]).dense(everything) == 0).all()
