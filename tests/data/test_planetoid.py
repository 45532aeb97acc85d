import numpy as np
import pytest
import scipy.sparse as sp

from asgat.data import load_dataset
from asgat.errors import AsgatError


def test_small_files_are_put_together(planetoid, write_files):
    dataset = load_dataset("cora", data_dir=write_files(planetoid))
    assert (dataset.num_nodes, dataset.num_features, dataset.num_classes) == (509, 3, 2)
    assert dataset.graph.num_entries == 2 * 508
    nodes = np.delete(np.arange(509), 507)  # in the graph, but not in test.index
    assert np.array_equal(dataset.y[nodes], nodes % 2)
    assert np.array_equal(dataset.x[nodes], np.eye(3)[nodes % 3])
    assert dataset.y[507] == -1
    assert not dataset.x[507].any()


@pytest.mark.parametrize(
    ("asked", "protocol", "train"),
    [
        ("full", "full", [0, 1, 502, 503, 504]),
        ("public", "public", [0, 1]),
        (None, "full", [0, 1, 502, 503, 504]),
    ],
)
def test_protocols(planetoid, write_files, asked, protocol, train):
    dataset = load_dataset("cora", asked, write_files(planetoid))
    (split,) = dataset.splits
    assert dataset.protocol == protocol
    assert split.train.tolist() == train
    assert split.val.tolist() == list(range(2, 502))
    assert split.test.tolist() == [505, 506, 508]


def test_geom_gcn_masks_lose_unlabelled_nodes(planetoid, write_files, npz):
    parts = np.arange(509) % 3
    masks = {f"{part}_mask": (parts == i).astype(np.uint8) for i, part in enumerate(["train", "val", "test"])}
    for i in range(10):
        planetoid[f"geom-gcn/splits/cora_split_0.6_0.2_{i}.npz"] = npz(**masks)
    dataset = load_dataset("cora", "geom-gcn", write_files(planetoid))
    assert len(dataset.splits) == 10
    assert parts[507] == 0
    assert dataset.splits[0].train.tolist() == [i for i in range(0, 509, 3) if i != 507]


@pytest.mark.parametrize(
    ("part", "value", "sentence"),
    [
        ("ally", np.ones((505, 2), dtype=np.int32), "ally is damaged: row 0 has two labels"),
        ("ally", np.full((505, 2), 3, dtype=np.int32), "zeros and ones"),
        ("ally", np.eye(2, dtype=np.int32), "labels 2 nodes, but allx has 505"),
        ("ty", np.eye(3, dtype=np.int32), r"ty is damaged: its shape is \(3, 3\), but \(3, 2\) is expected"),
        ("y", np.tile(np.eye(2, dtype=np.int32), (5, 1)), "10 training and 500 validation nodes do not fit"),
        ("graph", {0: [1], 1: [0]}, r"test\.index is damaged: test nodes must be distinct and from 505 to 1"),
        ("graph", {i: [10**6] for i in range(509)}, r"ind\.cora\.graph: edge_index names node 1000000"),
    ],
)
def test_parts_that_do_not_fit(planetoid, write_files, legacy_pickle, part, value, sentence):
    planetoid[f"planetoid/ind.cora.{part}"] = legacy_pickle(value)
    with pytest.raises(AsgatError, match=sentence):
        load_dataset("cora", data_dir=write_files(planetoid))


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        (b"505\n506\n", r"tx is damaged: its shape is \(3, 3\), but \(2, 3\)"),
        (b"505\n505\n506\n", "must be distinct"),
        (b"505\n506\n509\n", "from 505 to 508"),
        (b"505\n506\n504\n", "from 505 to 508"),
        (b"505\nabc\n506\n", r"test\.index is damaged: line 2 is 'abc', which is not a node number"),
        (b"505\n506\t7\n", r"line 2 is '506\\t7'"),
        (b"505\n-506\n", "line 2"),
        (b"505\n99999999999999999999\n", "line 2"),
        (b"505\n\xff\n", "byte 4 is not ASCII"),
    ],
)
def test_bad_test_index(planetoid, write_files, index, sentence):
    planetoid["planetoid/ind.cora.test.index"] = index
    with pytest.raises(AsgatError, match=sentence):
        load_dataset("cora", data_dir=write_files(planetoid))


def test_features_with_nan_name_node_and_column(planetoid, write_files, legacy_pickle):
    features = sp.csr_array(np.array([[1, 0, 0], [0, 1, np.nan], [1, 0, 0]], dtype=np.float32))
    planetoid["planetoid/ind.cora.tx"] = legacy_pickle(features)
    with pytest.raises(AsgatError, match=r"NaN.*node 505, column 2"):
        load_dataset("cora", data_dir=write_files(planetoid))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("cora", (1208, 500, 1000)), ("citeseer", (1812, 500, 1000)), ("pubmed", (18217, 500, 1000))],
)
def test_published_full_split(real_data, name, sizes):
    (split,) = load_dataset(name, data_dir=real_data).splits
    assert tuple(len(nodes) for nodes in split.parts().values()) == sizes


@pytest.mark.parametrize(("name", "num_train"), [("cora", 140), ("citeseer", 120), ("pubmed", 60)])
def test_published_public_split(real_data, name, num_train):
    dataset = load_dataset(name, "public", real_data)
    split = dataset.splits[0]
    assert (len(split.train), len(split.val), len(split.test)) == (num_train, 500, 1000)
    assert set(np.bincount(dataset.y[split.train])) == {20}


@pytest.mark.parametrize(
    ("name", "sizes", "unlabelled"),
    [("cora", (1192, 796, 497), 0), ("citeseer", (1586, 1061, 665), 15), ("pubmed", (9463, 6310, 3944), 0)],
)
def test_published_geom_gcn_splits(real_data, name, sizes, unlabelled):
    dataset = load_dataset(name, "geom-gcn", real_data)
    assert len(dataset.splits) == 10
    assert tuple(len(nodes) for nodes in dataset.splits[0].parts().values()) == sizes
    assert np.sum(dataset.y < 0) == unlabelled
    assert not dataset.x[dataset.y < 0].any()
