"""The table operator: the dense truth where the table is complete, certified where it is not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import dense
from tests.spectral.conformance import DOUBLE, FILTERS, LARGE, OperatorConformance, assert_near, ring_with_chords
from tests.strategies import ZOO, generic_graph, graphs

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.filters import HeatFilter, MLPFilter
from asgat.filters.spectral_filter import SpectralFilter
from asgat.graph import Graph
from asgat.kernels import select_top
from asgat.nn.attention import attend
from asgat.spectral import ChebyshevOperator
from asgat.spectral.certificate import SampledCertificate, certify_rows
from asgat.tables import TableOperator
from asgat.tables.exact_builder import exact_rows

EVERYTHING = 128  # more candidates than any graph here has nodes


class CompleteTable(OperatorConformance):
    """With as many candidates as nodes a table is the dense form."""

    order = 4
    lambda_max: Any = "bound"

    def make(self, graph, **where):
        return TableOperator(
            graph,
            self.order,
            lambda_max=self.lambda_max,
            candidates=EVERYTHING,
            cap=EVERYTHING,
            storage=DOUBLE,
            **where,
        )

    def dense_truth(self, graph, filter):
        lambda_max = 2.0 if self.lambda_max == "bound" else graph.lambda_max
        hops = dense.hops(graph)
        return dense.interpolant_scores(graph, filter, self.order, None, lambda_max), (hops >= 0) & (hops <= self.order)

    def check_top(self, graph, filter, k, include):
        if include:
            with pytest.raises(AsgatError, match="include_unreachable needs all pairs"):
                self.double(graph).top(filter, k, include)
        else:
            super().check_top(graph, filter, k, include)

    @pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
    def test_nodes_out_of_reach_tie_and_the_lower_index_wins(self, dtype):
        """They are never candidates; a row they would have filled ends early."""
        graph = Graph.from_edges([[3, 6], [6, 8]], 9)
        index, score = self.make(graph, dtype=dtype).top(HeatFilter(1).to(dtype), 4)
        assert index[0, 4, 0] == 4
        assert score[0, 4].isfinite().tolist() == [True, False, False, False]
        assert score.dtype == dtype

    @pytest.mark.parametrize("graph", ZOO.values(), ids=ZOO.keys())
    def test_scores_by_rows_are_those_of_all_at_once(self, graph):
        """Padded to the longest of the rows that were asked for."""
        operator, filter = self.double(graph), dense.filters()["mlp"]
        for include in (False, True):
            index, score = operator.scores(filter, include_unreachable=include)
            for rows in (slice(0, 1), slice(1, 4), slice(2, 2), slice(3, None), slice(None)):
                some_index, some_score = operator.scores(filter, rows, include)
                width = some_index.size(1)
                filler = 0.0 if include else -torch.inf
                assert torch.equal(some_index, index[rows, :width])
                assert_near(some_score, score[:, rows, :width], 1e-12)
                assert (score[:, rows, width:] == filler).all()

    def test_repr(self):
        assert repr(self.make(ZOO["one edge"])) == (
            f"TableOperator(CandidateTable(exact, num_nodes=2, order={self.order}, candidates_per_node=2.0, "
            "dtype=float64))"
        )


class TestCompleteTable(CompleteTable): ...


class TestCompleteTableToLanczos(CompleteTable):
    order = 3
    lambda_max = "lanczos"


# -- against all pairs -------------------------------------------------------------------------------------


def ranked(score: torch.Tensor) -> torch.Tensor:
    return score.sort(dim=-1, descending=True).values


def check_against_all_pairs(graph, operator, filter, k):
    """Rank by rank the scores of all pairs, up to what the certificate of a row admits."""
    everything = ChebyshevOperator(graph, operator.order, dtype=DOUBLE)
    _, best = everything.top(filter, k)
    index, score = operator.top(filter, k)
    certificate = operator.certify(filter, index, score)
    score = ranked(score)[..., : best.size(-1)]
    assert torch.equal(torch.isneginf(score), torch.isneginf(best))
    loss = (best - score).masked_fill(torch.isneginf(best), 0.0)
    assert (loss.abs().amax(dim=-1) <= certificate.bound + 1e-12).all()
    assert (loss[certificate.exact].abs() <= certificate.bound[certificate.exact].unsqueeze(-1) + 1e-12).all()
    return certificate, loss


@given(graphs(max_nodes=12), st.integers(1, 5), st.sampled_from(FILTERS), st.integers(1, 6))
@settings(max_examples=40)
def test_top_of_a_complete_table_is_that_of_all_pairs_by_rank(graph, order, name, k):
    filter = dense.filters()[name]
    operator = TableOperator(graph, order, dtype=DOUBLE, candidates=EVERYTHING, cap=EVERYTHING, storage=DOUBLE)
    certificate, loss = check_against_all_pairs(graph, operator, filter, k)
    assert certificate.share == 1.0
    assert loss.abs().max() < 1e-12


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(0, 6), st.sampled_from(FILTERS))
@settings(max_examples=30)
def test_top_of_a_short_table_is_within_its_certificate(seed, k, cap, name):
    graph = ring_with_chords(40, seed)
    operator = TableOperator(graph, 6, dtype=DOUBLE, candidates=k, cap=cap, storage=DOUBLE)
    assert not operator.table.complete.all()
    check_against_all_pairs(graph, operator, dense.filters()[name], k)


def random_directed_graph(seed):
    """Directed edges, one-way and both ways, with self-loops and nodes without edges; weighted every other time."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40))
    ends = rng.integers(0, rng.integers(2, n + 1), size=(2, int(rng.integers(1, 4 * n))))
    back = ends[::-1, rng.random(ends.shape[1]) < 0.3]
    ends = np.concatenate([ends, back], axis=1)
    return Graph.from_edges(ends, n, rng.uniform(0.1, 5.0, ends.shape[1]) if seed % 2 else None, directed=True)


def test_the_certificate_holds_on_the_double_covers_of_hundreds_of_directed_graphs():
    incomplete, errors = 0, []
    for seed in range(300):
        rng = np.random.default_rng(1000 + seed)
        cover = random_directed_graph(seed).double_cover
        torch.manual_seed(seed)
        filter = MLPFilter(2).double()
        with torch.no_grad():
            for parameter in filter.parameters():
                parameter.mul_(float(rng.uniform(0.5, 4.0)))
        order, k = int(rng.integers(2, 9)), int(rng.integers(1, 6))
        candidates, cap = int(rng.integers(k, k + 4)), int(rng.integers(0, 5))
        operator = TableOperator(cover, order, dtype=DOUBLE, candidates=candidates, cap=cap, storage=DOUBLE)
        incomplete += not operator.table.complete.all()
        _, loss = check_against_all_pairs(cover, operator, filter, k)
        errors.append(float(loss.detach().abs().max()))
    assert incomplete > 150
    assert sum(error > 1e-6 for error in errors) > 40, "some tables were too short, and their certificates said so"


def test_more_candidates_are_nearer_to_all_pairs():
    filter, bounds, losses = dense.filters()["mlp"], [], []
    for candidates in (3, 6, 12, 60):
        operator = TableOperator(LARGE, 8, dtype=DOUBLE, candidates=candidates, cap=0, storage=DOUBLE)
        certificate, loss = check_against_all_pairs(LARGE, operator, filter, 3)
        bounds.append(certificate.mean_bound)
        losses.append(float(loss.detach().max()))
    assert bounds == sorted(bounds, reverse=True)
    assert losses[0] > 1e-4
    assert losses[-1] < 1e-12


@pytest.mark.parametrize("storage", [DOUBLE, torch.float32, torch.float16])
def test_storage_rounds_values_and_nothing_else(storage):
    filter = dense.filters()["mlp"].float()
    operator = TableOperator(LARGE, 6, candidates=8, storage=storage)
    exact = TableOperator(LARGE, 6, candidates=8, storage=DOUBLE, dtype=DOUBLE)
    assert operator.table.value.dtype == storage
    assert torch.equal(operator.table.index, exact.table.index)
    assert torch.equal(operator.table.value, exact.table.value.to(storage))
    index, score = operator.top(filter, 4)
    assert score.dtype == torch.float32
    difference = (score - exact.top(filter.double(), 4)[1]).abs().max()
    assert difference < (2e-3 if storage == torch.float16 else 2e-6)
    assert (difference > 1e-5) == (storage == torch.float16)
    bound = operator.certify(filter.float(), index, score).bound
    assert (bound.min() > 1e-4) == (storage == torch.float16), "the rounding of half precision is in the certificate"


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("candidates", [3, 60])
def test_gradients_of_top_are_those_of_finite_differences(candidates, name):
    filter = dense.filters()[name]
    operator = TableOperator(LARGE, 5, dtype=DOUBLE, candidates=candidates, cap=2, storage=DOUBLE)
    weight = torch.randn(2, 60, 3, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))

    class Value(torch.nn.Module):
        """A function of the filter, whose parameters gradcheck moves."""

        def __init__(self):
            super().__init__()
            self.filter = filter

        def forward(self):
            return (operator.top(self.filter, 3)[1] * weight).sum()

    module = Value()
    names = [key for key, _ in module.named_parameters()]

    def value(*values):
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), ())

    inputs = tuple(p.detach().clone().requires_grad_() for p in filter.parameters())
    assert torch.autograd.gradcheck(value, inputs, atol=1e-6)


# -- precision, place, rows --------------------------------------------------------------------------------


def test_to_another_precision_keeps_the_table():
    filter = dense.filters()["mlp"]
    single = TableOperator(LARGE, 5, candidates=5, cap=3)
    double = single.to(dtype=DOUBLE)
    assert single.to(dtype=torch.float32) is single
    assert torch.equal(double.table.value, single.table.value)
    score = double.top(filter, 3)[1]
    assert score.dtype == DOUBLE
    assert_near(single.top(filter.float(), 3)[1].double(), score, 1e-5)
    certificate = double.certify(filter.double(), *double.top(filter, 3))
    assert_near(certificate.bound, single.certify(filter.float(), *single.top(filter, 3)).bound.double(), 1e-5)


# -- truncated tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [*ZOO.values(), LARGE], ids=[*ZOO.keys(), "large"])
def test_a_truncated_table_is_certified_by_true_errors_of_a_sample(graph):
    filter = dense.filters()["mlp"].float()
    operator = TableOperator(graph, 4, candidates=6, builder="truncated")
    index, score = operator.top(filter, 3)
    certificate = operator.certify(filter, index, score)
    assert isinstance(certificate, SampledCertificate)
    assert certificate.bound.shape == (2, graph.num_nodes), "of so few nodes the sample takes all"
    if graph.num_nodes:
        truth = torch.from_numpy(exact_rows(operator.shifted.matrix, 4, np.arange(graph.num_nodes)))
        assert_near(certificate.bound, certify_rows(operator.coefficients(filter), truth, index, score))
    assert certificate.coverage == 1.0
    assert torch.equal(certificate.exact, certificate.bound <= 1e-6)


def test_the_sample_is_as_large_as_asked_and_the_same_every_time():
    filter = dense.filters()["mlp"].float()
    operator = TableOperator(LARGE, 6, candidates=4, builder="truncated")
    top = operator.top(filter, 3)
    every, some, again = (operator.certify(filter, *top, sample=n) for n in (60, 16, 16))
    assert some.bound.shape == (2, 16)
    assert torch.equal(some.bound, again.bound)
    nearest = (some.bound[0].unsqueeze(1) - every.bound[0]).abs().min(dim=1).values
    assert float(nearest.max()) < 1e-6, "the rows of a sample are rows of the whole"
    assert isinstance(some, SampledCertificate)
    assert 0 < some.coverage < 1
    assert every.max_bound > 1e-3, "with four candidates there are errors to be found"


def test_a_truncated_table_of_whole_neighbourhoods_is_that_of_all_pairs():
    filter = dense.filters()["mlp"]
    operator = TableOperator(
        generic_graph(4, 20), 4, dtype=DOUBLE, candidates=EVERYTHING, builder="truncated", storage=DOUBLE
    )
    _, best = ChebyshevOperator(generic_graph(4, 20), 4, dtype=DOUBLE).top(filter, 5)
    index, score = operator.top(filter, 5)
    assert_near(ranked(score), best)
    assert operator.certify(filter, index, score).share == 1.0


class SwapsEnds(SpectralFilter):
    """-T_3(λ - 1): on a path of four nodes each end scores the other end 1 and all other nodes 0."""

    def __init__(self):
        super().__init__(1)

    def forward(self, frequency):
        x = frequency - 1.0
        return (3.0 * x - 4.0 * x**3).unsqueeze(-1)


def ring(size):
    return np.stack([np.arange(size), (np.arange(size) + 1) % size])


def blob():
    """A ring of 3,000 nodes, and a dense blob of 60 with 60 links to it: errors are near the links."""
    rng = np.random.default_rng(0)
    pairs = np.stack(np.triu_indices(60, 1))
    links = np.stack([3000 + rng.integers(0, 60, 60), rng.integers(0, 3000, 60)])
    dense_part = 3000 + pairs[:, rng.random(pairs.shape[1]) < 0.6]
    return Graph.from_edges(np.concatenate([ring(3000), dense_part, links], axis=1))


def islands():
    """600 rings of five, all exact, and one random component of 80, which holds all the error."""
    rings = [ring(5) + first for first in range(0, 3000, 5)]
    return Graph.from_edges(np.concatenate([*rings, 3000 + np.random.default_rng(0).integers(0, 80, (2, 320))], axis=1))


def hidden_ends():
    """25 paths of four whose nodes have so many weak edges that the other end does not fit into a neighbourhood.

    The score left out is the largest there can be, in 50 of 1,612 rows; all others are exact.
    """
    paths = 1512 + np.arange(100).reshape(25, 4)
    ends, weights = [np.stack([paths[:, :3].ravel(), paths[:, 1:].ravel()])], [np.ones(75)]
    for place, first in enumerate((0, 256, 256, 0)):  # the inner nodes' weak neighbours are not those of the ends
        weak = np.stack(np.broadcast_arrays(paths[:, place, None], first + np.arange(256))).reshape(2, -1)
        ends.append(weak)
        weights.append(np.full(weak.shape[1], 1e-6))
    ends.append(np.arange(1512).reshape(-1, 2).T)  # the weak neighbours, and 1,000 other nodes, in pairs
    weights.append(np.ones(756))
    return Graph.from_edges(np.concatenate(ends, axis=1), 1612, np.concatenate(weights))


SKEWED = {
    "blob": (blob, HeatFilter(1, scale=3.0), 15, 16),
    "islands": (islands, HeatFilter(1, scale=3.0), 15, 16),
    "hidden ends": (hidden_ends, SwapsEnds(), 5, 4),
}


@pytest.mark.parametrize("draws", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SKEWED)
def test_the_sampled_mean_is_missed_in_at_most_five_per_cent_of_draws_where_few_rows_err(name, draws):
    make, filter, order, k = SKEWED[name]
    operator = TableOperator(make(), order, candidates=48, builder="truncated")
    top, n = operator.top(filter, k), operator.num_nodes
    every, some = operator.certify(filter, *top, sample=n), operator.certify(filter, *top)
    assert isinstance(every, SampledCertificate)
    true, worst = every.mean_bound, every.bound[0].sort(descending=True).values
    assert float(worst[: n // 20].sum() / worst.sum()) > 0.99, "a twentieth of the rows holds the error"
    missed = missed_by_t = 0
    for seed in range(draws):
        drawn = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:128].sort().values
        error = every.bound[:, drawn]
        assert seed or torch.allclose(error, some.bound, atol=1e-6), "rows are drawn as certify draws them"
        missed += replace(every, bound=error, exact=every.exact[:, drawn]).mean_bound < true
        t = scipy.stats.t.isf(0.05, 127) * float(error.std()) / np.sqrt(128)
        missed_by_t += float(error.mean()) + t < true
    print(f"{name}: {n} nodes, mean {true:.2g}, missed {missed} of {draws}, by Student's t {missed_by_t}")
    assert missed <= 0.05 * draws
    assert missed_by_t > 0.07 * draws, "the errors are not skewed enough to tell"


# -- the rest ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("builder", ["exact", "truncated"])
@pytest.mark.parametrize("name", ["no nodes", "one node", "one loop", "one edge", "no edges"])
def test_the_smallest_graphs(name, builder):
    graph, filter = ZOO[name], MLPFilter(2)
    operator = TableOperator(graph, 3, candidates=4, builder=builder)
    attention = attend(operator, filter, 4, certified=True)
    assert attention.index.shape == (2, graph.num_nodes, 4)
    reached = 2 if name == "one edge" else 1
    assert ((attention.weight > 0).sum(dim=-1) == reached).all()
    assert attention.certificate is not None
    assert attention.certificate.share == 1.0
    assert attention.certificate.max_bound < 1e-5
    assert operator.dense(filter).shape == (2, graph.num_nodes, graph.num_nodes)


def test_apply_is_that_of_all_pairs_whatever_the_candidates():
    filter, signal = dense.filters()["mlp"], torch.randn(60, 2, dtype=DOUBLE)
    short = TableOperator(LARGE, 5, dtype=DOUBLE, candidates=1, cap=0)
    assert_near(short.apply(filter, signal), ChebyshevOperator(LARGE, 5, dtype=DOUBLE).apply(filter, signal))


def test_dense_holds_the_candidates_and_zeros():
    filter = dense.filters()["mlp"]
    operator = TableOperator(LARGE, 5, dtype=DOUBLE, candidates=3, cap=0, storage=DOUBLE)
    full, truth = operator.dense(filter), ChebyshevOperator(LARGE, 5, dtype=DOUBLE).dense(filter)
    held = torch.zeros(60, 60, dtype=torch.bool)
    held[torch.arange(60).repeat_interleave(operator.table.indptr.diff()), operator.table.index.long()] = True
    assert_near(full[:, held], truth[:, held])
    assert (full[:, ~held] == 0).all()
    assert not held.all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"builder": "fast"}, "builder must be exact or truncated, not 'fast'"),
        ({"candidates": 0}, "candidates must be at least 1, but is 0"),
        ({"cap": -1}, "cap must not be negative, but is -1"),
        ({"storage": torch.int8}, "stored in float32, float64 or float16, not in torch.int8"),
        ({"order": 0}, "order must be at least 1, but is 0"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(AsgatError, match=sentence):
        TableOperator(ZOO["path"], **arguments)


def test_more_than_the_candidates_cannot_be_kept():
    operator = TableOperator(ZOO["path"], 3, candidates=4)
    with pytest.raises(AsgatError, match="k = 5 needs at least as many candidates, but there are 4"):
        operator.top(HeatFilter(1), 5)
    assert operator.top(HeatFilter(1), 4)[0].shape == (1, 6, 4)


def test_progress_is_told():
    seen = []
    TableOperator(LARGE, 3, candidates=2, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (60, 60)


def test_what_was_selected_is_remembered_until_the_filter_changes(monkeypatch):
    from asgat.tables import row_operator as module

    calls: list[int] = []

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return select_top(*arguments)

    monkeypatch.setattr(module, "select_top", counted)
    graph = load_dataset("karate").graph
    operator = TableOperator(graph, order=4, candidates=8)
    filter = MLPFilter(2)
    with torch.no_grad():
        first = operator.top(filter, 3)
    index, score = operator.top(filter, 3)
    assert len(calls) == 1
    assert torch.equal(index, first[0])
    assert torch.equal(score, first[1])
    fresh = TableOperator(graph, order=4, candidates=8)
    grads = [torch.autograd.grad(op.top(filter, 3)[1].sum(), list(filter.parameters())) for op in (operator, fresh)]
    for found, expected in zip(*grads, strict=True):
        torch.testing.assert_close(found, expected)
    with torch.no_grad():
        next(filter.parameters()).data.add_(1.0)
    assert not torch.equal(operator.top(filter, 3)[1], score), "a change by any means is seen"
    operator.top(filter, 2)
    assert len(calls) == 4, "the fresh operator's, the changed filter's, and another k's"


def test_true_rows_are_computed_few_at_a_time(monkeypatch):
    """As many as fit 256 MiB of double precision, but at least 16."""
    graph, asked = ring_with_chords(60), []

    def counted(shifted, order, rows):
        asked.append(len(rows))
        return exact_rows(shifted, order, rows)

    monkeypatch.setattr("asgat.tables.table_operator.exact_rows", counted)
    operator = TableOperator(graph, 4, candidates=4, builder="truncated")
    index, score = operator.top(MLPFilter(1), 3)
    operator.certify(MLPFilter(1), index, score, sample=50)
    assert asked == [50]
    asked.clear()
    operator.num_nodes, shown = 10**8, graph.num_nodes
    monkeypatch.setattr(torch, "randperm", lambda n, generator: torch.arange(shown))
    operator.certify(MLPFilter(1), index, score, sample=50)
    assert asked == [16, 16, 16, 2]
    asked.clear()
    operator.num_nodes = (1 << 28) // (8 * 5 * 20)
    operator.certify(MLPFilter(1), index, score, sample=50)
    assert asked == [20, 20, 10]


def test_rows_are_exact_up_to_a_millionth(monkeypatch):
    monkeypatch.setattr(
        "asgat.tables.table_operator.certify_rows", lambda *parts: torch.tensor([[0.0, 0.9e-6, 1.1e-6]])
    )
    operator = TableOperator(ZOO["path"], 4, candidates=4, builder="truncated")
    index, score = operator.top(MLPFilter(1), 3)
    assert operator.certify(MLPFilter(1), index, score).exact.tolist() == [[True, True, False]]
