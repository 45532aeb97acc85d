import numpy as np
import pytest

from asgat.data import load_dataset
from asgat.data.geom_gcn import parse_edges, parse_nodes
from asgat.errors import AsgatError

HEADER = b"node_id\tfeature\tlabel\n"


@pytest.fixture
def texas(npz):
    """Three nodes in odd order, two edges and a self-loop, one node per part."""
    files = {
        "geom-gcn/new_data/texas/out1_node_feature_label.txt": HEADER + b"2\t0,0,1\t1\n0\t1,0,0\t0\n1\t0,1,0.5\t1\n",
        "geom-gcn/new_data/texas/out1_graph_edges.txt": b"node_id\tnode_id\n0\t1\n1\t0\n2\t1\n2\t2\n",
    }
    masks = dict(zip(["train_mask", "val_mask", "test_mask"], np.eye(3, dtype=np.uint8), strict=True))
    for i in range(10):
        files[f"geom-gcn/splits/texas_split_0.6_0.2_{i}.npz"] = npz(**masks)
    return files


def test_small_files_are_put_together(texas, write_files):
    dataset = load_dataset("texas", data_dir=write_files(texas))
    assert dataset.x.tolist() == [[1, 0, 0], [0, 1, 0.5], [0, 0, 1]]
    assert dataset.y.tolist() == [0, 1, 1]
    assert dataset.graph.num_entries == 5
    assert dataset.num_classes == 2
    assert dataset.protocol == "geom-gcn"
    assert [part.tolist() for part in dataset.splits[9].parts().values()] == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "line 1 must be node_id <tab> feature <tab> label"),
        (b"node_id\tfeature\n", "line 1 must be"),
        (HEADER, "its 0 nodes"),
        (HEADER + b"0\t1,0\n", r"line 2 is '0\\t1,0', which is not a node with features and a label"),
        (HEADER + b"0\t1,0\t0\n0\t1,0\t0\n", "line 3 gives node 0 a second time"),
        (HEADER + b"0\t1,0\t0\n1\t1\t0\n", "line 3 has 1 features, but the lines before it have 2"),
        (HEADER + b"0\t1,0\t0\n2\t1,0\t0\n", "2 nodes must be numbered from 0 without a gap"),
        (HEADER + b"0\t1,x\t0\n", "line 2 has a feature that is not a number"),
        (HEADER + b"0\t\t0\n", "line 2 has a feature that is not a number"),
        (HEADER + b"0\t1\t-1\n", r"line 2 is '0\\t1\\t-1'"),
        (HEADER + b"0\t1\t1_0\n", r"line 2 is '0\\t1\\t1_0'"),
        (HEADER + b"0\t1\t" + b"1" * 5000 + b"\n", r"line 2 is '0\\t1\\t1{36}'"),
        (HEADER + b"0\t1\t0\n\n", "line 3 is ''"),
        (HEADER + "0\t1\t²\n".encode(), "is not ASCII"),
        (b"x" * (8 * 2**20 + 1), "at most 8388608 are allowed"),
    ],
)
def test_bad_node_files(raw, content, sentence):
    with pytest.raises(AsgatError, match=sentence):
        parse_nodes(raw(content))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"node_id\tnode_id\n0\n", "line 2 is '0', which is not an edge of two nodes"),
        (b"node_id\tnode_id\n0\tx\n", r"line 2 is '0\\tx'"),
    ],
)
def test_bad_edge_files(raw, content, sentence):
    with pytest.raises(AsgatError, match=sentence):
        parse_edges(raw(content))


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("graph_edges", b"2\t1", b"2\t3", "edges.txt: edge_index names node 3"),
        ("node_feature_label", b"0,0,1", b"0,0,nan", "label.txt: Features with NaN.*node 2, column 2"),
        ("node_feature_label", b"0,0,1", b"0,0,1e99", "node 2, column 2 is inf"),
        ("node_feature_label", b"\t1\n0", b"\t9\n0", "label 9 is out of range for 3 nodes"),
    ],
)
def test_values_out_of_range(texas, write_files, file, old, new, sentence):
    name = f"geom-gcn/new_data/texas/out1_{file}.txt"
    assert old in texas[name]
    texas[name] = texas[name].replace(old, new)
    with pytest.raises(AsgatError, match=sentence):
        load_dataset("texas", data_dir=write_files(texas))


@pytest.mark.parametrize(
    ("masks", "sentence"),
    [
        (np.eye(3, 4, dtype=np.uint8), "train_mask must be 3 zeros and ones"),
        (2 * np.eye(3, dtype=np.uint8), "train_mask must be 3 zeros and ones"),
        (np.ones((3, 3), dtype=np.uint8), "its parts overlap"),
        (np.zeros((3, 3), dtype=np.uint8), "nothing to train on"),
    ],
)
def test_bad_splits(texas, write_files, npz, masks, sentence):
    name = "geom-gcn/splits/texas_split_0.6_0.2_4.npz"
    texas[name] = npz(**dict(zip(["train_mask", "val_mask", "test_mask"], masks, strict=True)))
    with pytest.raises(AsgatError, match=sentence) as error:
        load_dataset("texas", data_dir=write_files(texas))
    assert name in str(error.value)


def test_published_files(real_data):
    texas, cornell = (load_dataset(name, data_dir=real_data) for name in ("texas", "cornell"))
    assert [len(part) for part in texas.splits[0].parts().values()] == [87, 59, 37]
    assert np.array_equal(texas.x, cornell.x)  # the published mistake the registry notes
    assert np.array_equal(texas.y, cornell.y)
    assert np.sum(texas.graph.adjacency.diagonal() > 0) == 16
