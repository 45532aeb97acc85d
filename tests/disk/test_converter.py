import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import directed_graphs, edge_lists, graphs

from asgat.data.digest import dataset_digest
from asgat.disk.converter import ORDERS, locality_order, write_graph
from asgat.disk.disk_graph import OnDiskGraph
from asgat.distributed.shard import InMemory
from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.graph.graph import merge_entries
from asgat.nn.registry import make_config
from asgat.tables.exact_builder import build_exact
from asgat.tables.sparse_rows import SparseRows
from asgat.tables.truncated_builder import build_truncated, node_records


def numbered(n):
    """Features and labels that identify the nodes, and one split with all parts."""
    labels = np.arange(n) % 2
    part = np.array([1, 2, 3] + [1] * n)[:n]
    return np.arange(2.0 * n).reshape(n, 2), labels, part


def chunks(held, size):
    for start in range(0, held.ends.shape[1], size):
        part = slice(start, start + size)
        yield held.ends[0, part], held.ends[1, part], held.weight[part]


@settings(max_examples=30)
@given(
    edge_lists(min_nodes=3),
    st.sampled_from(["none", "rcm"]),
    st.sampled_from(["keep", "add", "remove"]),
    st.integers(1, 4),
)
def test_what_is_written_is_the_graph_in_another_order(held, order, self_loops, size):
    """Whatever the parts it came in and the buckets it was sorted in."""
    truth = held.graph(self_loops)
    n = truth.num_nodes
    features, labels, part = numbered(n)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "graph"
        graph = write_graph(
            out, chunks(held, size), features, labels, part, order=order, self_loops=self_loops, memory=64 * size
        )
        node = graph.original_nodes()
        assert sorted(node) == list(range(n))
        dataset = graph.to_dataset()
        assert np.array_equal(dataset.graph.adjacency.toarray(), truth.adjacency.toarray()[np.ix_(node, node)])
        assert np.array_equal(dataset.x, features[node].astype(np.float32))
        assert np.array_equal(dataset.y, labels[node])
        assert np.array_equal(np.sort(node[dataset.splits[0].val]), [1])
        matrix = graph.matrix()
        shifted = dataset.graph.laplacian.toarray() - np.eye(n)
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
        dense = np.zeros((n, n))
        dense[rows, matrix.indices] = matrix.data
        np.testing.assert_allclose(dense, shifted, atol=1e-15)
        assert matrix.records is not None
        again = node_records(SparseRows(matrix.indptr, matrix.indices, matrix.data), entries_at_once=2)
        assert matrix.records.tobytes() == again.tobytes()
        assert not list(Path(folder).glob(".*")), "something was left behind"


def test_a_rank_reads_its_part(tmp_path):
    ends = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    features, labels, part = numbered(6)
    graph = write_graph(tmp_path / "g", [(*ends, None)], features, labels, part, order="none", name="line")
    assert (graph.name, graph.num_entries, graph.header.weighted) == ("line", 10, False)
    assert np.array_equal(graph.features(2, 5), features[2:5])
    assert graph.labels(2, 5).tolist() == [0, 1, 0]
    split = graph.split(0, 1, 4)
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([2], [0], [1])


@pytest.mark.parametrize("weights", [[1e300, 1e-300, 1e300], [1e-300, 1e300, 1e-300], [1e-300, 1e-300, 1.0]])
def test_weights_far_apart_do_not_hide_a_node(weights, tmp_path):
    """On disk, and in the memory of every rank: all four nodes of a path are found in three steps."""
    chunk = np.array([0, 1, 2]), np.array([1, 2, 3]), np.array(weights)
    graph = write_graph(tmp_path / "g", [chunk], *numbered(4), order="none")
    for matrix in (graph.matrix(), InMemory(graph.to_dataset(), make_config("asgat-cheb")).matrix()):
        assert (matrix.data <= -1e-20).all()
        assert build_exact(matrix, 3, 4).index.tolist() == [0, 1, 2, 3] * 4
        assert build_exact(matrix, 3, 1, cap=0).complete.tolist() == [False] * 4
        assert build_truncated(matrix, 3, 4).index.tolist() == [0, 1, 2, 3] * 4


def test_splits_are_drawn_where_none_are_given(tmp_path):
    features, labels, _ = numbered(50)
    graph = write_graph(tmp_path / "g", [], features, labels, num_splits=3, seed=4)
    assert graph.num_splits == 3
    first, second = graph.split(0, 0, 50), graph.split(1, 0, 50)
    assert len(first.train) == 24
    assert set(first.train) != set(second.train)
    assert OnDiskGraph(tmp_path / "g").num_entries == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": np.zeros(4)}, "Features must be numbers"),
        ({"features": np.full((4, 1), np.nan)}, "node 0 hold NaN"),
        ({"labels": np.zeros(3, dtype=int)}, "Labels must be whole numbers"),
        ({"labels": np.array([0, -2, 1, 1])}, "from -2"),
        ({"splits": np.array([1, 2, 3, 4])}, "Splits must be"),
        ({"splits": np.array([1, 2, 1, 1])}, "Every split needs"),
        ({"metric": "accuracy"}, "metric must be"),
        ({"metric": "roc_auc", "labels": np.array([0, 1, 2, 0])}, "two classes"),
        ({"edges": [(np.array([0]), np.array([4]), None)]}, "names node 4"),
        ({"edges": [(np.array([0]), np.array([-1]), None)]}, "names node -1"),
        ({"edges": [(np.array([0]), np.array([1]), np.array([-1.0]))]}, "weight -1"),
        ({"order": "best"}, "order must be"),
        ({"self_loops": "some"}, "self_loops must be"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_left(changes, words, tmp_path):
    features, labels, part = numbered(4)
    edges = [(np.array([0]), np.array([1]), None)]
    given = {"edges": edges, "features": features, "labels": labels, "splits": part, **changes}
    with pytest.raises(AsgatError, match=words):
        write_graph(tmp_path / "g", **given)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_left_alone(tmp_path):
    features, labels, part = numbered(4)
    with pytest.raises(AsgatError, match="exists"):
        write_graph(tmp_path, [], features, labels, part)


@settings(max_examples=30)
@given(edge_lists(min_nodes=3), st.sampled_from(["none", "rcm"]), st.sampled_from(["keep", "add", "remove"]))
def test_a_directed_graph_is_written_in_another_order(held, order, self_loops):
    truth = held.graph(self_loops, directed=True)
    features, labels, part = numbered(truth.num_nodes)
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "graph"
        write_graph(
            where,
            chunks(held, 3),
            features,
            labels,
            part,
            order=order,
            self_loops=self_loops,
            memory=256,
            directed=True,
        )
        graph = OnDiskGraph(where)
        dataset, node = graph.to_dataset(), graph.original_nodes()
        assert graph.directed
        assert dataset.graph.directed
        assert np.array_equal(dataset.graph.adjacency.toarray(), truth.adjacency.toarray()[np.ix_(node, node)])
        assert graph.digest() == dataset_digest(dataset)
        with pytest.raises(AsgatError, match="is directed and can be trained on only in memory"):
            graph.matrix()


def test_a_folder_of_an_earlier_version_is_undirected(tmp_path):
    features, labels, part = numbered(6)
    write_graph(tmp_path / "g", [(np.array([0]), np.array([1]), None)], features, labels, part)
    header = json.loads((tmp_path / "g" / "header.json").read_text())
    assert header.pop("directed") is False
    (tmp_path / "g" / "header.json").write_text(json.dumps(header))
    assert not OnDiskGraph(tmp_path / "g").to_dataset().graph.directed


@given(graphs(), st.sampled_from(["none", "rcm"]))
def test_an_order_names_every_node_once(graph, order):
    found = locality_order(graph.adjacency.indptr, graph.adjacency.indices, order)
    assert sorted(found) == list(range(graph.num_nodes))


def bandwidth(graph, order):
    place = np.argsort(order)
    row, col = graph.edge_index()
    return int(np.abs(place[row] - place[col]).max())


def test_a_shuffled_line_is_found_again():
    """Blocks of a shuffled line have edges everywhere; in order they have one to the next block."""
    shuffled = np.random.default_rng(0).permutation(200)
    graph = Graph.from_edges(np.stack([shuffled[:-1], shuffled[1:]]))
    found = locality_order(graph.adjacency.indptr, graph.adjacency.indices, "rcm")
    cut = np.diff((np.argsort(found)[graph.edge_index()] // 50), axis=0)
    assert np.count_nonzero(cut) <= 2 * 6
    assert np.count_nonzero(np.diff(graph.edge_index() // 50, axis=0)) > 100
    assert bandwidth(graph, found) == 1


@given(directed_graphs(), st.sampled_from(["none", "rcm"]))
def test_directions_do_not_matter(graph, order):
    found = locality_order(graph.adjacency.indptr, graph.adjacency.indices, order, directed=True)
    without = graph.undirected.adjacency
    assert found.tolist() == locality_order(without.indptr, without.indices, order).tolist()


def test_unknown_orders_are_named():
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32)
    with pytest.raises(AsgatError, match=f"one of {', '.join(ORDERS)}"):
        locality_order(indptr, indices, "best")  # type: ignore[arg-type]


def killed(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", ["edges", "distribute", "sort", "order", "rows", "features"])
def test_work_that_was_killed_goes_on(step, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    ends, (features, labels, part) = rng.integers(0, 50, size=(2, 300)), numbered(50)
    places = {
        "edges": "asgat.disk.edge_sorter.EdgeSorter.finish",
        "distribute": "asgat.disk.edge_sorter.EdgeSorter._distribute",
        "order": "asgat.disk.converter.locality_order",
        "rows": "asgat.disk.converter._write_rows",
        "features": "asgat.disk.converter._write_features",
    }
    read: list[int] = []

    def edges():
        for start in range(0, 300, 100):
            read.append(start)
            yield *ends[:, start : start + 100], None

    def write(out):
        return write_graph(tmp_path / out, edges(), features, labels, part, memory=64 * 200, source="here")

    whole = write("whole")
    with monkeypatch.context() as patch:
        if step == "sort":
            calls = []

            def second(*arguments):
                calls.append(1)
                return merge_entries(*arguments) if len(calls) < 3 else killed()

            patch.setattr("asgat.disk.edge_sorter.merge_entries", second)
        else:
            patch.setattr(places[step], killed)
        with pytest.raises(KeyboardInterrupt):
            write("g")
    read.clear()
    (left,) = tmp_path.glob(".g.*")
    (left / "rest").write_text("of something else")  # other files do not matter
    graph = write("g")
    assert bool(read) == (step == "edges")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    (graph.path / "rest").unlink(missing_ok=True)
    for path in whole.path.iterdir():
        if path.name != "header.json":  # which has the name
            assert path.read_bytes() == (graph.path / path.name).read_bytes(), path.name


def test_what_was_begun_from_other_files_is_removed(tmp_path, monkeypatch):
    features, labels, part = numbered(4)
    edges = [(np.array([0]), np.array([1]), None)]
    with monkeypatch.context() as patch:
        patch.setattr("asgat.disk.converter.locality_order", killed)
        with pytest.raises(KeyboardInterrupt):
            write_graph(tmp_path / "g", edges, features, labels, part, source="first")
    other = [(np.array([2]), np.array([3]), None)]
    graph = write_graph(tmp_path / "g", other, features, labels, part, source="second", order="none")
    assert graph.to_dataset().graph.adjacency.toarray()[2, 3] == 1.0
    assert graph.num_entries == 2
