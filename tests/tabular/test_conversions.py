"""The same graph from any library."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.tabular.conversions import as_user_graph, from_frames, from_networkx
from asgat.tabular.user_graph import UserGraph

ENDS = np.array([[0, 1, 2], [1, 2, 0]])
X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 0.0]])


def of_pyg():
    from torch_geometric.data import Data

    return as_user_graph(Data(x=torch.tensor(X), edge_index=torch.tensor(ENDS), num_nodes=4))


def of_networkx():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from((i, {"x0": X[i, 0], "x1": X[i, 1]}) for i in range(4))
    graph.add_edges_from(ENDS.T.tolist())
    return as_user_graph(graph)


def of_scipy():
    return as_user_graph(sp.coo_array((np.ones(3), ENDS), shape=(4, 4)), X)


def of_graph():
    return as_user_graph(Graph.from_edges(ENDS, 4), torch.tensor(X))


def of_frames():
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame({"id": range(4), "x0": X[:, 0], "x1": X[:, 1]})
    return as_user_graph((pandas.DataFrame({"source": ENDS[0], "target": ENDS[1]}), nodes))


@pytest.mark.parametrize("make", [of_pyg, of_networkx, of_scipy, of_graph, of_frames])
def test_all_give_the_same_graph(make):
    user_graph = make()
    assert (user_graph.graph.adjacency != Graph.from_edges(ENDS, 4).adjacency).nnz == 0
    assert list(user_graph.ids) == ["0", "1", "2", "3"]
    assert [column.name for column in user_graph.features] == ["x0", "x1"]
    np.testing.assert_array_equal(np.stack([column.numbers for column in user_graph.features], axis=1), X)


def test_labels_and_masks_of_pyg():
    from torch_geometric.data import Data

    masks = {
        "train_mask": torch.tensor([[True, False], [False, True], [False, False]]),
        "val_mask": torch.tensor([False, True, False]),
    }
    user_graph = as_user_graph(Data(edge_index=torch.tensor(ENDS), y=torch.tensor([1, -1, 0]), num_nodes=3, **masks))
    assert user_graph.label is not None
    assert user_graph.split is not None
    assert user_graph.label.texts() == ["1", "", "0"]
    assert user_graph.split.texts() == ["train", "val", ""], "of several splits the first"
    assert not user_graph.features


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
