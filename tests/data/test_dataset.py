from dataclasses import replace

import numpy as np
import pytest
import torch

from asgat.data import Dataset, Split
from asgat.errors import AsgatError
from asgat.graph import Graph


def split(train=(0,), val=(1,), test=(2,)):
    return Split(np.array(train, dtype=int), np.array(val, dtype=int), np.array(test, dtype=int))


@pytest.fixture
def dataset():
    graph = Graph.from_edges([[0, 1, 2], [1, 2, 2]], 4)
    return Dataset("tiny", graph, np.arange(8, dtype=np.float32).reshape(4, 2), np.array([0, 1, 0, -1]), (split(),), 2)


def test_properties_and_types(dataset):
    assert (dataset.num_nodes, dataset.num_features) == (4, 2)
    assert dataset.x.dtype == np.float32
    assert dataset.y.dtype == np.int64
    assert dataset.splits[0].train.dtype == np.int64
    assert repr(dataset) == ("Dataset('tiny', nodes=4, entries=5, features=2, classes=2, splits=1, protocol='random')")
    assert repr(dataset.splits[0]) == "Split(train=1, val=1, test=1)"


def test_to_pyg_with_one_split(dataset):
    data = dataset.to_pyg()
    assert data.train_mask.tolist() == [True, False, False, False]
    assert data.test_mask.tolist() == [False, False, True, False]
    assert torch.equal(data.x, torch.arange(8.0).reshape(4, 2))
    assert data.y.tolist() == [0, 1, 0, -1]
    assert sorted(zip(*data.edge_index.tolist(), strict=True)) == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)]
    assert "edge_weight" not in data


def test_to_pyg_keeps_the_direction_of_edges(dataset):
    graph = Graph.from_edges([[0, 2, 1], [1, 1, 0]], 4, directed=True)
    data = replace(dataset, graph=graph).to_pyg()
    assert data.edge_index.tolist() == [[0, 1, 2], [1, 0, 1]]
    assert np.array_equal(Graph.from_pyg(data, directed=True).edge_index(), graph.edge_index())


def test_to_pyg_with_several_splits_and_weights(dataset):
    weighted = Graph.from_edges([[0], [1]], 4, [0.5])
    data = replace(dataset, graph=weighted, splits=(split(), split((2,), (0,), (1,)))).to_pyg()
    assert data.val_mask.shape == (4, 2)
    assert data.val_mask.T.tolist() == [[False, True, False, False], [True, False, False, False]]
    assert data.edge_weight.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": np.zeros((3, 2))}, r"shape \[4, F\].*not \[3, 2\]"),
        ({"x": np.zeros(4)}, r"not \[4\]"),
        ({"x": np.array([[0, 1], [2, 3], [4, np.nan], [0, 0]])}, "NaN.*node 2, column 1"),
        ({"x": np.full((4, 1), 1e300)}, "node 0, column 0 is inf"),
        ({"x": np.full((4, 1), "a")}, "must be numbers"),
        ({"y": np.array([0, 1, 0])}, "one per node"),
        ({"y": np.array([0, 1, 2, -1])}, "Node 2 has label 2; labels run from 0 to 1"),
        ({"y": np.array([0, 1, 0, -2])}, "Node 3 has label -2"),
        ({"y": np.array([0.0, 1.0, 0.0, 1.0])}, "must be integers"),
        ({"num_classes": 0}, "num_classes must be at least 1"),
        ({"metric": "f1"}, "metric must be one of"),
        ({"metric": "roc_auc", "num_classes": 3}, "needs two classes, but tiny has 3"),
        ({"splits": ()}, "has no splits"),
        ({"splits": (split(), split(train=()))}, "split 1 of tiny the train part is empty"),
        ({"splits": (split(val=(4,)),)}, "val part names node 4, but nodes run from 0 to 3"),
        ({"splits": (split(test=(-1,)),)}, "names node -1"),
        ({"splits": (split(test=(3,)),)}, "test part holds node 3, which has no label"),
        ({"splits": (split(train=(0, 0)),)}, "names node 0 twice"),
        ({"splits": (split(test=(0,)),)}, "node 0 is in both train and test"),
    ],
)
def test_bad_input_is_a_sentence(dataset, change, sentence):
    with pytest.raises(AsgatError, match=sentence):
        replace(dataset, **change)


def test_a_mask_is_no_split():
    with pytest.raises(AsgatError, match="is a mask; give node indices"):
        Split(np.array([True, False]), np.array([1]), np.array([], dtype=int))
    with pytest.raises(AsgatError, match="list of node indices, not float64"):
        Split(np.array([0.5]), np.array([1]), np.array([], dtype=int))


def test_empty_parts_besides_train_are_welcome(dataset):
    assert len(replace(dataset, splits=(split(val=(), test=()),)).splits[0].val) == 0
