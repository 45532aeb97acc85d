import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dense import hops
from tests.strategies import ZOO, generic_graph, graphs
from tests.tables.test_exact_builder import shifted

import asgat.tables.truncated_builder as module
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.tables.exact_builder import exact_rows
from asgat.tables.sparse_rows import SparseRows
from asgat.tables.truncated_builder import build_truncated, fanout_for, node_records


def random_graph(num_nodes: int, degree: float, seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    return Graph.from_edges(rng.integers(0, num_nodes, (2, int(num_nodes * degree / 2))), num_nodes)


def tree(branching: int, depth: int) -> Graph:
    """Every node but the leaves has so many children."""
    size = sum(branching**i for i in range(depth + 1))
    child = np.arange(1, size)
    return Graph.from_edges(np.stack([(child - 1) // branching, child]), size)


def row(table, v):
    entries = slice(int(table.indptr[v]), int(table.indptr[v + 1]))
    return table.index[entries].long().numpy(), table.value[entries].numpy()


def errors(table, x, order, rows):
    """Stored minus true values, [entries, R + 1]."""
    true = exact_rows(x, order, rows)
    return np.concatenate([row(table, j)[1] - true[:, j, row(table, j)[0]].T for j in range(len(rows))])


def assert_true_and_complete(graph, x, order):
    n = graph.num_nodes
    table = build_truncated(x, order, candidates=max(n, 1), keep=max(n, 1), dtype=torch.float64)
    assert not table.exact
    assert bool(table.complete.all())
    distance = hops(graph)
    true = exact_rows(x, order, np.arange(n))
    for v in range(n):
        index, value = row(table, v)
        assert index.tolist() == np.flatnonzero((distance[v] >= 0) & (distance[v] <= order)).tolist()
        np.testing.assert_allclose(value, true[:, v, index].T, atol=1e-12 * 3.0**order)


@given(graphs(max_nodes=12), st.integers(1, 6), st.sampled_from([2.0, 1.7]))
@settings(max_examples=50, derandomize=True, deadline=None)
def test_with_room_for_all_nodes_values_are_true(graph, order, lambda_max):
    assert_true_and_complete(graph, shifted(graph, lambda_max), order)


@pytest.mark.parametrize("name", ZOO)
def test_with_room_for_all_nodes_every_shape_is_true(name):
    assert_true_and_complete(ZOO[name], shifted(ZOO[name]), 3)


@given(graphs(max_nodes=14), st.integers(1, 5), st.integers(1, 4), st.integers(0, 4))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_rows_are_well_formed_and_complete_ones_true(graph, order, candidates, more):
    x = shifted(graph)
    n = graph.num_nodes
    keep = candidates + more
    table = build_truncated(x, order, candidates, keep, dtype=torch.float64)
    distance = hops(graph)
    true = exact_rows(x, order, np.arange(n))
    for v in range(n):
        index, value = row(table, v)
        reachable = np.flatnonzero((distance[v] >= 0) & (distance[v] <= order))
        assert len(index) == min(candidates, len(reachable))
        assert v in index
        assert (np.diff(index) > 0).all()
        assert np.isin(index, reachable).all()
        assert bool(np.isfinite(value).all())
        if keep >= n:
            assert bool(table.complete[v]) == (len(reachable) <= candidates)
        if table.complete[v]:
            assert len(index) == len(reachable)
            np.testing.assert_allclose(value, true[:, v, index].T, atol=1e-12)


def test_orders_that_cannot_leave_the_neighbourhood_are_exact():
    x = shifted(tree(3, 6))
    keep = 1 + 3 + 9  # the root and two hops
    table = build_truncated(x, 8, candidates=13, keep=keep, rows=[0], dtype=torch.float64)
    index, value = row(table, 0)
    assert index.tolist() == list(range(13))
    distance = np.array([0] + [1] * 3 + [2] * 9)
    wrong = np.abs(value - exact_rows(x, 8, [0])[:, 0, :13].T) > 1e-12
    for d in range(3):
        assert not wrong[distance == d, : 2 * 2 + 1 - d + 1].any()


def test_chains_count_the_walks_that_leave_a_tree_by_two_hops():
    x = shifted(tree(3, 6))
    table = build_truncated(x, 9, candidates=13, keep=13, rows=[0], dtype=torch.float64)
    _, value = row(table, 0)
    true = exact_rows(x, 9, [0])[:, 0, :13].T
    # Of the true tree four hops are there, so a walk that would show a difference has 10 - d steps.
    np.testing.assert_allclose(value[0], true[0], atol=1e-12)
    np.testing.assert_allclose(value[1:4, :9], true[1:4, :9], atol=1e-12)
    np.testing.assert_allclose(value[4:, :8], true[4:, :8], atol=1e-12)
    assert np.abs(value[4:, 8] - true[4:, 8]).min() > 1e-3


def test_values_on_a_random_graph_are_close():
    x = shifted(random_graph(3000, 6.0))
    rows = np.arange(0, 3000, 100)
    table = build_truncated(x, 8, rows=rows, dtype=torch.float64)
    error = np.sqrt((errors(table, x, 8, rows) ** 2).mean(axis=0))
    assert error[:4].max() < 1e-12
    assert error.max() < 1e-2  # of values of about 0.1
    assert np.abs(errors(table, x, 8, rows)).max() < 5e-2


def test_more_room_means_smaller_errors():
    x = shifted(random_graph(3000, 6.0))
    rows = np.arange(0, 3000, 100)
    sizes = [(errors(build_truncated(x, 6, 16, k, rows=rows), x, 6, rows) ** 2).sum() for k in (64, 256, 1024)]
    assert sizes[0] > 2 * sizes[1] > 4 * sizes[2]


@pytest.mark.parametrize("fanout", [1, 3, 8])
def test_hubs_beyond_the_fanout_stay_in_bounds(monkeypatch, fanout):
    monkeypatch.setattr(module, "fanout_for", lambda candidates: fanout)
    rng = np.random.default_rng(0)
    spokes = np.stack([np.repeat([0, 1, 2], 59), np.tile(range(1, 60), 3)])
    ends = np.concatenate([rng.integers(0, 60, (2, 90)), spokes], axis=1)
    x = shifted(Graph.from_edges(ends, 60, rng.uniform(0.5, 2.0, ends.shape[1])))
    table = build_truncated(x, 5, candidates=60, keep=60, dtype=torch.float64)
    norm = np.abs(table.value.numpy()).max(axis=0)
    assert norm.max() <= 1.0 + 1e-9  # still polynomials of a matrix with its spectrum in [-1, 1]
    assert np.abs(errors(table, x, 5, np.arange(60))[:, :2]).max() < 1e-12  # v's own row is always there in full
    assert not table.complete.all()


def test_a_full_row_beside_a_hub_is_exact(monkeypatch):
    # The hub of 20 is looked at from its leaves, whose rows are short.
    monkeypatch.setattr(module, "fanout_for", lambda candidates: 4)
    x = shifted(Graph.from_edges([[0] * 20, list(range(1, 21))], edge_weight=np.linspace(0.1, 2.0, 20)))
    table = build_truncated(x, 4, candidates=5, keep=21, dtype=torch.float64, rows=[0])
    assert 0 in table.index.tolist()
    assert np.abs(errors(table, x, 4, np.array([0]))).max() < 1e-12


def test_nearest_neighbours_come_first():
    x = shifted(Graph.from_edges([[0] * 20, list(range(1, 21))], edge_weight=np.linspace(0.1, 2.0, 20)))
    index, _ = row(build_truncated(x, 2, candidates=8, rows=[0]), 0)
    strongest = np.argsort(-np.abs(x.toarray()[0]), kind="stable")[:4]
    assert np.isin(strongest, index).all()


def test_some_rows_are_the_rows_of_all_and_several_threads_build_the_same_table():
    x = shifted(random_graph(500, 5.0))
    threads, told = torch.get_num_threads(), []
    try:
        torch.set_num_threads(1)
        whole = build_truncated(x, 5, 16, 64)
        torch.set_num_threads(2)
        again = build_truncated(x, 5, 16, 64, progress=lambda *where: told.append(where))
        some = build_truncated(x, 5, 16, 64, rows=[400, 3])
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(whole.index, again.index)
    torch.testing.assert_close(whole.value, again.value)
    assert told[-1] == (500, 500)
    for j, v in enumerate([400, 3]):
        assert row(some, j)[0].tolist() == row(whole, v)[0].tolist()
        assert row(some, j)[1].tolist() == row(whole, v)[1].tolist()


def test_what_is_left_out_is_not_known_and_takes_no_room():
    table = build_truncated(shifted(generic_graph(0)), 3, 4, 8, dtype=torch.float16)
    assert bool(table.above.isnan().all())
    assert table.above.shape == table.below.shape == (14, 4)
    assert table.nbytes < 14 * 4 * (4 + 4 * 2) + 14 * 8 + 200
    assert table.value.dtype == torch.float16
    assert not table.exact


def test_refuses_a_neighbourhood_smaller_than_its_candidates():
    with pytest.raises(AsgatError, match="keep must be at least candidates = 48, but is 16"):
        build_truncated(shifted(ZOO["path"]), 2, keep=16)


def looked_at(x, v, fanout):
    """Which entries of X are: the largest of every row, seen from either end, and all of v's own."""
    order = np.argsort(-np.abs(x), axis=1, kind="stable")
    seen = np.zeros(x.shape, dtype=bool)
    np.put_along_axis(seen, order[:, :fanout], True, axis=1)
    seen[v] = True
    return (seen | seen.T) & (x != 0)


def with_chains(x, inside, v, fanout):
    """X restricted to some nodes, and behind each of them two more that stand for what it sees elsewhere."""
    size, diagonal = len(inside), np.diag(x)
    known = looked_at(x, v, fanout) | np.eye(len(x), dtype=bool)
    among = np.isin(np.arange(len(x)), inside)
    matrix = np.zeros((3 * size, 3 * size))
    matrix[:size, :size] = (x * known)[np.ix_(inside, inside)]
    norm = (x**2).sum(axis=1) - diagonal**2
    for a, s in enumerate(inside):
        square = x[s] ** 2 * ~(known[s] & among)
        if total := square.sum():
            link = np.sqrt(total)
            middle = (square * diagonal).sum() / total
            onward = np.sqrt((square * (norm - square)).sum() / total)
            near, far = size + a, 2 * size + a
            matrix[a, near] = matrix[near, a] = link
            matrix[near, near] = matrix[far, far] = middle
            matrix[near, far] = matrix[far, near] = onward
    return matrix


@pytest.mark.parametrize(("fanout", "keep"), [(256, 14), (3, 14), (4, 25), (6, 60)])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_is_that_of_its_neighbourhood_with_chains(seed, fanout, keep, monkeypatch):
    """With a largest eigenvalue below 2 X has a diagonal, which chains have to know of; hubs are seen in part."""
    monkeypatch.setattr(module, "fanout_for", lambda candidates: fanout)
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 60, (2, 120))
    weight = rng.choice([0.5, 1.0, 2.0], 120) if seed else rng.uniform(0.5, 2.0, 120)
    x = shifted(Graph.from_edges(ends, 60, weight), 1.7)
    order, full = 6, x.toarray()
    table = build_truncated(x, order, candidates=keep, keep=keep, dtype=torch.float64)
    checked = 0
    for v in range(60):
        index, value = row(table, v)
        if len(index) < min(keep, 40):
            continue
        checked += 1
        matrix = with_chains(full, index, v, fanout)
        terms = [np.eye(len(matrix)), matrix]
        while len(terms) <= order:
            terms.append(2 * matrix @ terms[-1] - terms[-2])
        at = index.tolist().index(v)
        expected = np.stack([term[at, : len(index)] for term in terms], axis=1)
        np.testing.assert_allclose(value, expected, atol=1e-12)
    assert checked > 40


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("candidates", [3, 6, 11])
def test_the_nearest_neighbours_and_then_the_largest_values_are_chosen(seed, candidates):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 40, (2, 50))
    x = shifted(Graph.from_edges(ends, 40, rng.uniform(0.5, 2.0, 50)))
    true, full = exact_rows(x, 4, np.arange(40)), np.abs(x.toarray())
    table = build_truncated(x, 4, candidates, keep=40, dtype=torch.float64)
    for v in range(40):
        best = np.abs(true[1:, v]).max(axis=0)
        near = [u for u in np.argsort(-full[v], kind="stable") if full[v, u] > 0 and u != v]
        best[[v, *near[: candidates // 2]]] = np.inf
        chosen = [u for u in np.argsort(-best, kind="stable")[:candidates] if best[u] > 0]
        assert row(table, v)[0].tolist() == sorted(chosen), v


def test_a_row_next_to_a_hub_has_all_its_candidates():
    """A hub is read up to 256 entries, and further where a row would have fewer candidates than it can have."""
    assert (fanout_for(48), fanout_for(300)) == (256, 300)
    x = shifted(Graph.from_edges([[0] * 400, list(range(1, 401))]))
    for candidates in (257, 258, 300, 401):
        table = build_truncated(x, 2, candidates, rows=[0, 5])
        assert table.indptr.diff().tolist() == [candidates] * 2
        assert table.complete.tolist() == [candidates == 401] * 2


@pytest.mark.parametrize(
    ("order", "candidates", "sizes"),
    [(3, 64, [4096, 4096, 1808]), (15, 64, [1024] * 9 + [784]), (32767, 300, [1] * 3)],
)
def test_a_task_is_eight_megabytes_of_values_or_4096_rows(order, candidates, sizes, monkeypatch):
    asked: list[int] = []

    def stop(work, tasks):
        asked.extend(len(task) for task in tasks)
        return iter(())

    monkeypatch.setattr(module, "map_in_order", stop)
    graph = Graph.from_edges([[0], [1]], 10_000)
    build_truncated(shifted(graph), order, candidates, rows=np.arange(sum(sizes)))
    assert asked == sizes


def test_records_are_sums_over_neighbours_however_many_are_taken_at_once():
    rng = np.random.default_rng(1)
    x = shifted(Graph.from_edges(rng.integers(0, 25, (2, 60)), 30, rng.uniform(0.5, 2.0, 60)), 1.6)
    rows = SparseRows.of(x)
    whole, dense = node_records(rows), x.toarray()
    square = dense**2 * (1 - np.eye(30))
    np.testing.assert_array_equal(whole["start"], rows.indptr[:-1])
    np.testing.assert_array_equal(whole["degree"], (dense != 0).sum(axis=1))
    np.testing.assert_allclose(whole["diagonal"], np.diag(dense))
    np.testing.assert_allclose(whole["square"], square.sum(axis=1))
    np.testing.assert_allclose(whole["middle"], square @ np.diag(dense))
    np.testing.assert_allclose(whole["onward"], (square * (square.sum(axis=1) - square)).sum(axis=1), atol=1e-15)
    for few in (1, 7, 30):
        np.testing.assert_array_equal(node_records(rows, few), whole)
