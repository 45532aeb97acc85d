"""The certificate against the truth, computed here from dense matrices in extended precision."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.strategies import ZOO, generic_graph, graphs

from asgat.filters import HeatFilter
from asgat.graph import Graph
from asgat.spectral import ChebyshevOperator, ExactOperator, TableOperator
from asgat.spectral.certificate import Certificate, SampledCertificate, certify, certify_rows

STORAGES = [torch.float64, torch.float32, torch.float16]
LARGEST = float(torch.finfo(torch.float32).max)


class GivenCoefficients(TableOperator):
    """A table whose scores are made with the coefficients a test gives, not with those of a filter."""

    given: torch.Tensor

    def coefficients(self, filter):
        return self.given


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
    assert exact[:, complete].all()
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
        row = rng.standard_normal(order + 1)
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
    return np.array(rows).clip(-1e36, 1e36)


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
@settings(max_examples=120)
def test_no_true_error_is_above_its_bound_on_random_graphs(problem):
    check(**problem)


@given(problems(HUBS))
@settings(max_examples=100)
def test_nor_beside_hubs_beyond_the_cap(problem):
    check(**problem)


@given(problems(st.one_of(TIES, graphs(max_nodes=12), st.sampled_from(list(ZOO.values())[1:]))))
@settings(max_examples=100)
def test_nor_among_ties_and_on_the_smallest_graphs(problem):
    check(**problem)


@given(problems(st.one_of(RANDOM, HUBS)), st.data())
@settings(max_examples=100)
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
