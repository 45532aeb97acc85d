"""The certificate against the truth, computed here from dense matrices in extended precision."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import ZOO, generic_graph, graphs

from asgat.filters import HeatFilter
from asgat.graph import Graph
from asgat.spectral import ChebyshevOperator, ExactOperator
from asgat.spectral.certificate import Certificate, SampledCertificate, certify, certify_rows, mean_limit
from asgat.tables import TableOperator

STORAGES = [torch.float64, torch.float32, torch.float16]
LARGEST = float(torch.finfo(torch.float32).max)


class GivenCoefficients(TableOperator):
    """A table whose scores are made with the coefficients a test gives, not with those of a filter."""

    given: torch.Tensor

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.rows.coefficients = lambda filter: self.given  # type: ignore[method-assign]


def dense_terms(graph, order):
    """T_0(X) … T_R(X), [R + 1, N, N], of the operator's own X in extended precision."""
    x = graph.laplacian.toarray().astype(np.longdouble) - np.eye(graph.num_nodes, dtype=np.longdouble)
    terms = [np.eye(graph.num_nodes, dtype=np.longdouble), x]
    while len(terms) <= order:
        terms.append(2 * x @ terms[-1] - terms[-2])
    return np.stack(terms)


def reached_by(graph, order):
    """Who is within ``order`` hops of whom."""
    near = ((graph.adjacency.toarray() > 0) | np.eye(graph.num_nodes, dtype=bool)).astype(np.float32)
    reached = np.eye(graph.num_nodes, dtype=np.float32)
    for _ in range(order):
        reached = np.minimum(reached @ near, 1.0)
    return reached > 0


def true_errors(c, terms, reached, index, score):
    """Backward error of every row and head, and the largest error of a kept score."""
    true = np.tensordot(c.astype(np.longdouble), terms, axes=1)
    kept = score > -np.inf
    at_kept = np.take_along_axis(true, index, axis=2)
    own = np.where(kept, np.abs(score - at_kept), 0.0).max(axis=2)
    left = np.broadcast_to(reached, true.shape).copy()
    for place in range(index.shape[2]):
        head, v = np.nonzero(kept[:, :, place])
        assert left[head, v, index[head, v, place]].all(), "a node kept twice, or one that is not reached"
        left[head, v, index[head, v, place]] = False
    best_left = np.where(left, true, -np.inf).max(axis=2)
    worst = np.where(kept, np.minimum(score, at_kept), np.inf).min(axis=2)
    worst = np.where(kept.all(axis=2), worst, -np.inf)  # with room left, whoever is left out should have been taken
    error = np.where(left.any(axis=2), np.maximum(best_left, -LARGEST) - worst, 0.0)
    return np.maximum(error, 0.0), own


def check(graph, c, order, candidates, cap, k, storage=torch.float32, dtype=torch.float32):
    """Builds, selects, certifies; no bound may be below the truth. Returns the certificate and the true errors."""
    operator = GivenCoefficients(graph, order, dtype=dtype, candidates=candidates, cap=cap, storage=storage)
    operator.given = torch.from_numpy(c).to(dtype)
    filter = HeatFilter(len(c))
    index, score = operator.top(filter, k)
    certificate = operator.certify(filter, index, score)
    bound, exact = certificate.bound.numpy(), certificate.exact.numpy()
    terms, reached = dense_terms(graph, order), reached_by(graph, order)
    error, own = true_errors(operator.given.numpy(), terms, reached, index.numpy(), score.numpy())
    worst = np.unravel_index(np.argmax(error - bound), bound.shape)
    assert (error <= bound).all(), f"true error {error[worst]} above its bound {bound[worst]} at {worst}"
    assert (2 * own <= bound).all(), f"scores are off by {own.max()}: {bound[own.argmax() // bound.shape[1]]}"
    # What is called exact is exact up to rounding.
    magnitude = np.abs(operator.given.numpy()).astype(np.float64) @ np.abs(terms).max(axis=2).astype(np.float64)
    unit = 2.0**-10 if storage == torch.float16 else 2.0**-22
    level = 4 * (order + 1) * unit * magnitude + 2.0**-20 * np.abs(c).sum(axis=1, keepdims=True) + 1e-36
    assert (error[exact] <= level[exact]).all()
    assert (bound[exact] <= level[exact]).all()
    complete = operator.table.complete.numpy()
    assert exact[:, complete].all() or np.isinf(bound).any()
    assert not exact[np.isinf(bound)].any()
    held = operator.table.indptr.diff().numpy()
    assert ((held == reached.sum(axis=1)) == complete).all()
    return certificate, error


# -- graphs and filters ------------------------------------------------------------------------------------


def random_graph(seed, nodes, degree, weighted):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, nodes, (2, max(1, round(nodes * degree / 2))))
    return Graph.from_edges(ends, nodes, rng.uniform(0.1, 3.0, ends.shape[1]) if weighted else None)


def hub_graph(seed, hubs, leaves, links):
    """Stars of equal leaves, their hubs in a row, with a few links among the leaves."""
    rng = np.random.default_rng(seed)
    edges = [(h, hubs + h * leaves + j) for h in range(hubs) for j in range(leaves)]
    edges += [(h, h + 1) for h in range(hubs - 1)]
    edges += [tuple(rng.integers(hubs, hubs + hubs * leaves, 2)) for _ in range(links)]
    return Graph.from_edges(np.array(edges).T, hubs * (1 + leaves))


def regular(nodes, steps):
    """A ring in which everybody also knows the next ones: nothing but ties."""
    ring = np.arange(nodes)
    return Graph.from_edges(np.concatenate([np.stack([ring, np.roll(ring, -s)]) for s in range(1, steps + 1)], axis=1))


SEEDS = st.integers(0, 10**6)
RANDOM = st.builds(random_graph, SEEDS, st.integers(2, 60), st.floats(0.5, 8.0), st.booleans())
HUBS = st.builds(hub_graph, SEEDS, st.integers(1, 3), st.integers(5, 18), st.integers(0, 6))
TIES = st.builds(regular, st.integers(3, 40), st.integers(1, 3))
ANY = st.one_of(RANDOM, HUBS, TIES, graphs(max_nodes=12), st.sampled_from(list(ZOO.values())[1:]))


@st.composite
def coefficients(draw: Any, order: int, heads: int = 2) -> Any:
    """Smooth ones as filters learn, and those that no filter would."""
    rng = np.random.default_rng(draw(SEEDS))
    degree = np.arange(order + 1)
    rows = []
    for _ in range(heads):
        kind = draw(st.sampled_from(["smooth", "random", "alternating", "single", "sparse", "integer", "growing"]))
        row: Any = rng.standard_normal(order + 1)
        if kind == "smooth":
            row *= 5.0 * 0.4**degree
        elif kind == "alternating":
            row = 100.0 * (-1.0) ** (degree + rng.integers(2))
        elif kind == "single":
            row = np.where(degree == rng.integers(order + 1), rng.choice([-1.0, 1.0]), 0.0)
        elif kind == "sparse":
            row *= rng.random(order + 1) < 0.3
        elif kind == "integer":  # scores tie often
            row = rng.integers(-1, 2, order + 1).astype(float)
        elif kind == "growing":  # magnitudes from tiny to huge side by side
            row *= 10.0 ** rng.uniform(-12, 12, order + 1)
        rows.append(row * draw(st.sampled_from([1.0, 1.0, 1e-3, 1e4, 1e-30, 1e30])))
    return np.array(rows).clip(-1e36, 1e36)  # beyond, scores overflow; see below


@st.composite
def problems(draw: Any, shapes: Any) -> Any:
    order = draw(st.integers(1, 8))
    k = draw(st.integers(1, 4))
    return dict(
        graph=draw(shapes),
        c=draw(coefficients(order)),
        order=order,
        candidates=draw(st.integers(k, 4)),
        cap=draw(st.sampled_from([0, 1, 3, 256])),
        k=k,
        storage=draw(st.sampled_from(STORAGES)),
        dtype=draw(st.sampled_from([torch.float32, torch.float32, torch.float64])),
    )


# -- the bound ---------------------------------------------------------------------------------------------


@given(problems(RANDOM))
@settings(max_examples=100)
def test_no_true_error_is_above_its_bound_on_random_graphs(problem):
    check(**problem)


@given(problems(HUBS))
@settings(max_examples=80)
def test_nor_beside_hubs_beyond_the_cap(problem):
    check(**problem)


@given(problems(st.one_of(TIES, graphs(max_nodes=12), st.sampled_from(list(ZOO.values())[1:]))))
@settings(max_examples=80)
def test_nor_among_ties_and_on_the_smallest_graphs(problem):
    check(**problem)


@given(problems(st.one_of(RANDOM, HUBS)), st.data())
@settings(max_examples=60)
def test_nor_with_coefficients_made_for_a_pair_that_was_left_out(problem, data):
    """The scores of all nodes but one are lowered as far as one filter can."""
    graph, order = problem["graph"], problem["order"]
    terms = dense_terms(graph, order).astype(np.float64)
    table = TableOperator(graph, order, candidates=problem["candidates"], cap=problem["cap"]).table
    reached, open_rows = reached_by(graph, order), (~table.complete).nonzero().flatten().tolist()
    v = data.draw(st.sampled_from(open_rows or [0]))
    held = table.index[int(table.indptr[v]) : int(table.indptr[v + 1])].tolist()
    u = data.draw(st.sampled_from(np.setdiff1d(np.flatnonzero(reached[v]), held).tolist() or [v]))
    row = terms[:, v, u] - data.draw(st.sampled_from([0.0, 1.0])) * terms[:, v, held].mean(axis=1)
    problem["c"] = np.stack([row, np.sign(terms[:, v, u])]) * data.draw(st.sampled_from([1.0, 1e3, 1e-3]))
    check(**problem)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("scale", [1e-36, 1e-40, 1e-44, 1e37, 1.5e38, 3e38])
def test_nor_at_the_ends_of_the_range_of_numbers(scale, storage):
    """Products that vanish below the smallest number, and scores that overflow."""
    rng = np.random.default_rng(int(1e3 * abs(np.log10(scale))))
    for seed in range(3):
        c = scale * rng.uniform(-1, 1, (2, 6))
        certificate, _ = check(hub_graph(seed, 2, 12, 3), c, 5, 3, 1, 3, storage)
        assert bool(torch.isinf(certificate.bound).any()) == (scale > 1e38)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("weight", [1e-9, 3e-13, 1e-17])
def test_nor_where_stored_values_vanish(weight, storage):
    """A node that hangs by a thread has values too small for half precision, or gone in it."""
    graph = Graph.from_edges([[0, 0, 0, 1, 2, 3], [1, 2, 3, 2, 3, 4]], edge_weight=[1, 1, 1, 1, 1, weight])
    for c in ([[0.0, 1.0, 0.0]], [[0.0, -1e3, 1.0]], [[0.0, 0.0, 1.0]]):
        for candidates in (1, 2):
            check(graph, np.array(c), 2, candidates, 0, candidates, storage)


def test_coefficients_that_are_no_numbers_prove_nothing():
    for bad in (np.nan, np.inf):
        operator = GivenCoefficients(ZOO["generic"], 3, candidates=2, cap=0)
        operator.given = torch.tensor([[1.0, bad, 0.0, 1.0]])
        certificate = operator.certify(HeatFilter(1), *operator.top(HeatFilter(1), 2))
        linked = torch.from_numpy(np.diff(ZOO["generic"].laplacian.indptr) > 1)
        assert torch.isinf(certificate.bound[0, linked]).all()
        assert not certificate.exact[0, linked].any()


@given(problems(ANY))
@settings(max_examples=40)
def test_half_precision_costs_a_little_more_and_breaks_nothing(problem):
    bounds = []
    for storage in (torch.float32, torch.float16):
        certificate, _ = check(**{**problem, "storage": storage, "c": problem["c"].clip(-1e30, 1e30)})
        bounds.append(certificate.bound.numpy())
    scale = np.abs(problem["c"].clip(-1e30, 1e30)).sum(axis=1, keepdims=True)
    assert (bounds[1] <= bounds[0] + 2.0**-8 * scale + 1e-30).all()


def test_the_bounds_are_worth_something():
    """Smooth filters on a graph with rows left open: many rows are proven exact, and open bounds are near the truth."""
    graph = random_graph(1, 60, 5.0, True)
    c = np.array([[0.5, -2.0, 1.0, -0.3, 0.1, 0.05, 0.01]])
    certificate, _ = check(graph, c, 6, 8, 256, 3)
    assert not GivenCoefficients(graph, 6, candidates=8, cap=256).table.complete.all()
    assert certificate.share > 0.5
    assert certificate.max_bound < 1.0
    few, error_of_few = check(graph, c, 6, 3, 0, 3)
    assert few.mean_bound > certificate.mean_bound
    assert error_of_few.max() > 1e-2, "with so few candidates there are errors to be bounded"
    assert few.share < certificate.share


def test_a_row_whose_worst_score_is_above_the_bound_is_exact():
    """One row, by hand: candidates score 3 and 2, what was left out at most 1.5 · 1 or -0.5 · -1."""
    c = torch.tensor([[1.0, -1.0]])
    above, below = torch.tensor([[1.0, 0.5]]), torch.tensor([[0.5, -0.5]])  # B = 1 + 0.5
    magnitude, open_row = torch.ones(1, 2), torch.tensor([False])
    noise = (5 * 2.0**-24) * 2 + 2 * 2.0**-126

    def one(worst, complete=open_row, **more):
        result = certify(c, torch.tensor([[worst]]), above, below, magnitude, complete, 0.0, **more)
        return float(result.bound), bool(result.exact)

    def near(bound):
        return pytest.approx(bound, rel=1e-12)

    assert one(2.0) == (near(2 * noise), True)
    assert one(1.5) == (near(2 * noise), False), "a tie is no proof"
    assert one(1.0) == (near(0.5 + noise), False)
    assert one(1.0, torch.tensor([True])) == (near(2 * noise), True), "with nothing left out no score matters"
    assert one(-float("inf")) == (float("inf"), False)
    assert one(2.0, underflow=0.125) == (near(2 * (noise + 0.25)), True)
    assert one(1.0, underflow=0.125) == (near(0.75 + noise), False)


@given(st.integers(1, 3), st.integers(0, 7), st.integers(1, 5), SEEDS)
def test_the_bound_on_what_was_left_out_is_the_formula(heads, nodes, orders, seed):
    rng = np.random.default_rng(seed)
    c, worst = rng.standard_normal((heads, orders)), rng.standard_normal((heads, nodes))
    low, high = np.sort(rng.standard_normal((2, nodes, orders)), axis=0)
    complete = rng.random(nodes) < 0.3
    size = np.abs(np.stack([low, high])).max(axis=0)
    tensors: Any = map(torch.from_numpy, (c, worst, high, low, size, complete))
    rounding: Any = {"rounding": 2.0**-11, "underflow": 1e-3}
    certificate = certify(*tensors, **rounding)
    for head, v in np.ndindex(heads, nodes):
        left_out = sum(max(c[head, i] * high[v, i], c[head, i] * low[v, i]) for i in range(orders))
        units = 2.0**-11 + (orders + 3) * 2.0**-24
        noise = sum(abs(c[head, i]) * (size[v, i] * units + 1e-3) for i in range(orders))
        excess = -np.inf if complete[v] else left_out - worst[head, v] + noise
        assert float(certificate.bound[head, v]) == pytest.approx(max(excess, 2 * noise), rel=1e-12)
        assert bool(certificate.exact[head, v]) == (excess < 0)


# -- figures of a certificate ------------------------------------------------------------------------------


def test_share_mean_and_largest():
    certificate = Certificate(torch.tensor([[0.0, 0.5], [0.25, 0.25]]), torch.tensor([[True, False], [False, False]]))
    assert (certificate.share, certificate.mean_bound, certificate.max_bound) == (0.25, 0.25, 0.5)
    nothing = Certificate(torch.empty(2, 0), torch.empty(2, 0, dtype=torch.bool))
    assert (nothing.share, nothing.mean_bound, nothing.max_bound) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("kind", [ExactOperator, ChebyshevOperator])
def test_where_all_pairs_are_scored_nothing_is_in_doubt(kind, name):
    operator, filter = kind(ZOO[name]), HeatFilter(2)
    certificate = operator.certify(filter, *operator.top(filter, 3)) if ZOO[name].num_nodes else None
    if certificate is not None:
        assert certificate.bound.shape == (2, ZOO[name].num_nodes)
        assert (certificate.share, certificate.mean_bound, certificate.max_bound) == (1.0, 0.0, 0.0)


# -- true errors of some rows ------------------------------------------------------------------------------


def naive_row_error(true, reached, index, score):
    """One row, one head, in plain Python."""
    kept = {int(u): float(s) for u, s in zip(index, score, strict=True) if s > -np.inf}
    own = max(abs(s - true[u]) for u, s in kept.items())
    left = [true[u] for u in range(len(true)) if reached[u] and u not in kept]
    if left and len(kept) < len(index):
        return np.inf
    return max(own, max(left, default=-np.inf) - min(kept.values()), 0.0)


@given(st.integers(1, 12), st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), SEEDS)
@settings(max_examples=80)
def test_true_errors_are_those_of_a_loop(nodes, heads, orders, k, seed):
    """Kept are some reached nodes, not the best ones, with scores a little off, and fillers after them."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((orders, 3, nodes)) * (rng.random((3, nodes)) < 0.7)
    truth[:, :, 0] = 1.0  # somebody is reached
    c = rng.standard_normal((heads, orders))
    index, score = np.zeros((heads, 3, k), dtype=np.int64), np.full((heads, 3, k), -np.inf)
    expected = np.empty((heads, 3))
    for head, row in np.ndindex(heads, 3):
        true, reached = c[head] @ truth[:, row], (truth[:, row] != 0).any(axis=0)
        kept = rng.permutation(np.flatnonzero(reached))[: rng.integers(1, k + 1)]
        index[head, row, : len(kept)] = kept
        score[head, row, : len(kept)] = true[kept] + 0.1 * rng.standard_normal(len(kept))
        expected[head, row] = naive_row_error(true, reached, index[head, row], score[head, row])
    actual = certify_rows(*(torch.from_numpy(array) for array in (c, truth, index, score)))
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_true_errors_of_the_best_rows_are_rounding():
    operator, filter = ChebyshevOperator(generic_graph(3, 30), 5), HeatFilter(2, scale=3.0)
    index, score = operator.top(filter, 4)
    truth = torch.from_numpy(dense_terms(generic_graph(3, 30), 5).astype(np.float64))
    error = certify_rows(operator.coefficients(filter), truth, index, score)
    assert error.shape == (2, 30)
    assert float(error.max()) < 1e-6
    swapped = certify_rows(operator.coefficients(filter).flip(0), truth, index, score)
    assert torch.equal(swapped, error), "both heads are the same filter"
    worse = certify_rows(operator.coefficients(filter) + 0.5, truth, index, score)
    assert float(worse.min()) > 0.1


# -- a sample of rows --------------------------------------------------------------------------------------


def sampled(errors, num_nodes, largest=10.0):
    bound = torch.as_tensor(errors, dtype=torch.float64)
    return SampledCertificate(bound, bound <= 1e-6, num_nodes, largest)


@given(st.integers(2, 60), SEEDS)
def test_limits_are_the_formulas(rows, seed):
    rng = np.random.default_rng(seed)
    errors = rng.exponential(size=(2, rows)) * (rng.random((2, rows)) < 0.5)
    certificate = sampled(errors, 10**6)
    worst = errors.max(axis=0)
    good = int((worst <= 1e-6).sum())
    # Clopper and Pearson: at the limit p, so many good rows or more have probability 5 %.
    if good:
        assert scipy.stats.binom.sf(good - 1, rows, certificate.share) == pytest.approx(0.05, rel=1e-6)
    else:
        assert certificate.share == 0.0
    assert certificate.mean_bound == mean_limit(torch.from_numpy(worst), 10.0)
    assert certificate.max_bound == pytest.approx(worst.max())
    assert certificate.coverage**rows == pytest.approx(0.05)


def test_limits_hold_as_often_as_they_say():
    """A population of rows of which four fifths are exact, sampled four hundred times."""
    rng = np.random.default_rng(0)
    population = rng.gamma(2.0, 1.0, 20_000) * (rng.random(20_000) < 0.2)
    share, mean = (population == 0).mean(), population.mean()
    held = np.zeros(3)
    for _ in range(400):
        drawn = population[rng.integers(0, len(population), 256)]
        certificate = sampled(drawn[None], len(population))
        covered = (population <= certificate.max_bound).mean()
        held += [certificate.share <= share, certificate.mean_bound >= mean, certificate.coverage <= covered]
    assert (held >= 0.92 * 400).all()
    assert held[0] < 400, "a limit that always holds is none"


def skewed(kind, rng):
    """Errors of populations in which few rows hold most of the error."""
    if kind == "blob":  # 3,000 good rows and a dense blob of 60
        return np.concatenate([1e-4 * rng.random(3000), 0.3 + 0.2 * rng.random(60)])
    if kind == "heavy tail":
        return np.minimum(1e-3 * (rng.pareto(1.1, 5000) + 1), 1.0)
    return (rng.random(4000) < 0.01).astype(float)  # a row in a hundred is as wrong as can be


@pytest.mark.parametrize("kind", ["blob", "heavy tail", "one in a hundred"])
def test_the_limit_of_the_mean_is_missed_in_at_most_five_per_cent_of_draws(kind):
    rng = np.random.default_rng(1)
    errors = skewed(kind, rng)
    missed = missed_by_t = 0
    for _ in range(1000):
        drawn = torch.from_numpy(rng.choice(errors, 128, replace=False))
        missed += mean_limit(drawn, 1.0) < errors.mean()
        t = scipy.stats.t.isf(0.05, 127) * float(drawn.std()) / np.sqrt(128)
        missed_by_t += float(drawn.mean()) + t < errors.mean()
    assert missed <= 50
    assert missed_by_t > 70, "the population is not skewed enough to tell"


def test_the_limit_of_the_mean_is_near_the_mean_where_errors_are_not_skewed():
    errors = torch.from_numpy(np.random.default_rng(0).uniform(0.3, 0.7, 2000))
    assert 0.5 < mean_limit(errors, 1.0) < 0.54
    nothing = mean_limit(torch.zeros(128), 1.0)
    assert 1.0 - 0.05 ** (1 / 128) <= nothing < 0.05
    assert mean_limit(torch.zeros(128), 3.0) == pytest.approx(3.0 * nothing)
    assert mean_limit(torch.zeros(128), 0.0) == 0.0
    assert mean_limit(torch.tensor([0.1, 1.5]), 1.0) == mean_limit(torch.tensor([torch.inf]), 1.0) == float("inf")


def test_a_sample_of_all_rows_is_the_truth():
    certificate = sampled([[0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.25, 0.0]], 4)
    assert (certificate.share, certificate.mean_bound, certificate.max_bound) == (0.5, 0.1875, 0.5)
    assert certificate.coverage == 1.0
    nothing = sampled(np.empty((2, 0)), 0)
    assert (nothing.share, nothing.mean_bound, nothing.max_bound, nothing.coverage) == (1.0, 0.0, 0.0, 1.0)


def test_one_row_of_many_says_next_to_nothing():
    certificate = sampled([[0.0]], 1000)
    assert certificate.share == pytest.approx(0.05)
    assert certificate.coverage == pytest.approx(0.05)
    assert 9.4 < certificate.mean_bound <= 10.0
    assert sampled([[0.5]], 1000).share == sampled([[0.5, 0.1]], 1000).share == 0.0


def test_a_bound_that_is_just_reached_proves_nothing():
    """Nothing but the smallest number above zero for rounding, and a worst score that is just that."""
    zeros, tiny = torch.zeros(1, 1), torch.tensor([[2.0**-126]])
    for worst, exact in ((tiny, False), (2 * tiny, True)):
        found = certify(torch.ones(1, 1), worst, zeros, zeros, zeros, torch.tensor([False]), rounding=0.0)
        assert found.exact.tolist() == [[exact]]
