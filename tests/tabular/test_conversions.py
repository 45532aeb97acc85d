"""The same graph from any library."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.tabular.caution import Caution
from asgat.tabular.conversions import as_user_graph, from_frames, from_networkx
from asgat.tabular.encoder import FeatureEncoder
from asgat.tabular.user_graph import UserGraph

ENDS = np.array([[0, 1, 2], [1, 2, 0]])
X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 0.0]])


def of_pyg(directed=False):
    from torch_geometric.data import Data

    return as_user_graph(Data(x=torch.tensor(X), edge_index=torch.tensor(ENDS), num_nodes=4), directed=directed)


def of_networkx(directed=False):
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph() if directed else networkx.Graph()
    graph.add_nodes_from((i, {"x0": X[i, 0], "x1": X[i, 1]}) for i in range(4))
    graph.add_edges_from(ENDS.T.tolist())
    return as_user_graph(graph, directed=directed)


def of_scipy(directed=False):
    return as_user_graph(sp.coo_array((np.ones(3), ENDS), shape=(4, 4)), X, directed)


def of_graph(directed=False):
    return as_user_graph(Graph.from_edges(ENDS, 4, directed=directed), torch.tensor(X), directed)


def of_frames(directed=False):
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({"id": range(4), "x0": X[:, 0], "x1": X[:, 1]})
    return as_user_graph((pandas.DataFrame({"source": ENDS[0], "target": ENDS[1]}), nodes), directed=directed)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("make", [of_pyg, of_networkx, of_scipy, of_graph, of_frames])
def test_all_give_the_same_graph(make, directed):
    user_graph = make(directed)
    assert user_graph.directed == user_graph.graph.directed == directed
    assert (user_graph.graph.adjacency != Graph.from_edges(ENDS, 4, directed=directed).adjacency).nnz == 0
    again = Graph.from_edges(user_graph.edges, 4, user_graph.weight, directed=directed)
    assert (again.adjacency != user_graph.graph.adjacency).nnz == 0
    assert list(user_graph.ids) == ["0", "1", "2", "3"]
    assert [column.name for column in user_graph.features] == ["x0", "x1"]
    np.testing.assert_array_equal(np.stack([column.numbers for column in user_graph.features], axis=1), X)


def test_labels_and_masks_of_pyg():
    from torch_geometric.data import Data

    masks = {
        "train_mask": torch.tensor([[True, False], [False, False], [False, True]]),
        "val_mask": torch.tensor([False, True, False]),
    }
    user_graph = as_user_graph(Data(edge_index=torch.tensor(ENDS), y=torch.tensor([1, -1, 0]), num_nodes=3, **masks))
    assert user_graph.label is not None
    assert user_graph.label.texts() == ["1", "", "0"]
    assert [split.texts() for split in user_graph.splits] == [["train", "val", ""], ["", "val", "train"]]
    assert not user_graph.features


@pytest.mark.parametrize(
    ("mask", "parts"),
    [
        (torch.tensor([True, False, True]), [["train", "", "train"]]),
        (torch.tensor([1, 0, 1], dtype=torch.uint8), [["train", "", "train"]]),
        (np.array([[1.0], [0.0], [1.0]]), [["train", "", "train"]]),
        (np.eye(3, dtype=bool), [["train", "", ""], ["", "train", ""], ["", "", "train"]]),
        (torch.ones(2, 3, dtype=torch.bool), "train_mask must be booleans of shape [3], or [3, S] for S splits"),
        (torch.tensor([0, 2]), "but is int64 [2]"),
        (torch.tensor([0.5, 0.0, 1.0]), "but is float32 [3]"),
    ],
)
def test_masks_of_pyg_of_any_shape(mask, parts):
    from torch_geometric.data import Data

    data = Data(edge_index=torch.tensor(ENDS), num_nodes=3, train_mask=mask)
    if isinstance(parts, str):
        with pytest.raises(AsgatError) as refused:
            as_user_graph(data)
        assert parts in str(refused.value)
    else:
        assert [split.texts() for split in as_user_graph(data).splits] == parts


def test_the_label_of_networkx_is_not_a_feature():
    networkx = pytest.importorskip("networkx")
    user_graph = from_networkx(networkx.karate_club_graph(), label="club")
    assert user_graph.label is not None
    assert set(user_graph.label.texts()) == {"Mr. Hi", "Officer"}
    assert user_graph.features == []
    with pytest.raises(AsgatError, match="No node has an attribute 'x'"):
        from_networkx(networkx.path_graph(2), label="x")


def test_roles_of_data_frames():
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"a": ["x"], "b": ["y"], "w": [2.0]})
    nodes = pandas.DataFrame({"who": ["x", "y"], "kind": ["p", None], "junk": [1, 2], "f": [0, 1]})
    user_graph = from_frames(edges, nodes, "kind", "who", "a", "b", "w", ignore=["junk"])
    assert user_graph.graph.adjacency.toarray().tolist() == [[0, 2], [2, 0]]
    assert [column.name for column in user_graph.features] == ["f"]


def test_what_is_not_a_graph_is_refused():
    with pytest.raises(AsgatError, match="A list is not a graph"):
        as_user_graph([1, 2])
    with pytest.raises(AsgatError, match="3 rows, but the graph has 4 nodes"):
        as_user_graph(Graph.from_edges(ENDS, 4), X[:3])
    with pytest.raises(AsgatError, match="numbers of shape"):
        as_user_graph(Graph.from_edges(ENDS, 4), X[:, 0])


def test_features_can_be_replaced():
    user_graph = as_user_graph(UserGraph(["a", "b"], np.array([[0], [1]]), []), sp.csr_array(np.eye(2)))
    assert len(user_graph.features) == 2


def test_an_undirected_graph_read_as_directed_has_both_directions():
    graph = Graph.from_edges(ENDS, 4)
    both = as_user_graph(graph, X, directed=True)
    assert np.array_equal(both.graph.edge_index(), graph.edge_index())
    assert both.edges.shape == (2, 6)


def test_a_directed_graph_is_read_as_undirected_unless_its_directions_are_asked_for():
    graph = Graph.from_edges(ENDS, 4, directed=True)
    assert np.array_equal(as_user_graph(graph, X).graph.edge_index(), graph.undirected.edge_index())
    with pytest.raises(AsgatError, match="read with directed=False, not True; read it again"):
        as_user_graph(as_user_graph(graph, X), directed=True)


@pytest.mark.parametrize("directed", [False, True])
def test_libraries_say_whether_their_edges_have_a_direction(directed):
    from torch_geometric.data import Data

    networkx = pytest.importorskip("networkx")
    line = np.stack([np.arange(30), np.arange(1, 31)])
    ends = line if directed else np.concatenate([line, line[::-1]], axis=1)
    network = networkx.DiGraph(ends.T.tolist()) if directed else networkx.Graph(ends.T.tolist())
    given = [
        Data(edge_index=torch.tensor(ends), num_nodes=31),
        network,
        sp.coo_array((np.ones(ends.shape[1]), ends), shape=(31, 31)),
        Graph.from_edges(line, 31, directed=directed),
    ]
    assert [as_user_graph(graph).reciprocal for graph in given] == [0.0 if directed else 1.0] * 4


def test_edge_attributes_that_are_not_used_are_reported():
    from torch_geometric.data import Data

    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_edge("a", "b", weight=2.0, kind="friend")
    (note,) = as_user_graph(graph).notes
    assert note == "Attributes of the edges are not used: kind."
    data = Data(edge_index=torch.tensor(ENDS), edge_attr=torch.ones(3, 2), num_nodes=3)
    (note,) = as_user_graph(data).notes
    assert note == "edge_attr is not used; edge_weight takes a number per edge."
    assert isinstance(note, Caution)


def test_the_column_of_labels_can_be_named():
    from torch_geometric.data import Data

    pandas, networkx = pytest.importorskip("pandas"), pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from((i, {"x0": float(i), "kind": "ab"[i % 2]}) for i in range(3))
    nodes = pandas.DataFrame({"id": range(3), "x0": range(3), "kind": [*"aba"]})
    frames = pandas.DataFrame({"source": ENDS[0], "target": ENDS[1]}), nodes
    read = as_user_graph(frames)
    for given in (graph, frames, read):
        own = as_user_graph(given, label="kind")
        assert own.label is not None
        assert own.label.texts() == [*"aba"]
        assert [column.name for column in own.features] == ["x0"]
        assert own.columns["label"] == "kind"
        assert as_user_graph(given, label="none").label is None
        only_x = as_user_graph(given, np.ones((3, 2)), label="kind")
        assert only_x.label is not None
        assert [column.name for column in only_x.features] == ["x0", "x1"]
    data = Data(edge_index=torch.tensor(ENDS), target=torch.tensor([[1], [0], [-1]]), num_nodes=3)
    own = as_user_graph(data, label="target")
    assert own.label is not None
    assert own.label.texts() == ["1", "0", ""]
    assert as_user_graph(data).label is None


def test_pandas_types_are_respected():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({"id": range(3), "code": [7, 8, 7], "word": ["7", "8", None], "on": [True, False, True]})
    nodes["kind"] = nodes["code"].astype("category")
    graph = from_frames(pandas.DataFrame({"source": ENDS[0], "target": ENDS[1]}), nodes)
    assert {column.name: column.is_category for column in graph.features} == {
        "code": False,
        "word": True,
        "on": False,
        "kind": True,
    }
    encoder = FeatureEncoder.fit(graph.features)
    assert {feature.name: feature.kind for feature in encoder.features} == {
        "code": "number",
        "word": "category",
        "on": "boolean",
        "kind": "category",
    }
    assert [name for name in encoder.names if "=" in name] == ["word=7", "word=8", "kind=7", "kind=8"]
