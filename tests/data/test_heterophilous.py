import numpy as np
import pytest

from asgat.data import load_dataset
from asgat.errors import AsgatError
from asgat.files.npz import read_npz
from asgat.files.raw_file import RawFile

NAME = "heterophilous-graphs/data/minesweeper.npz"


@pytest.fixture
def arrays():
    masks = np.eye(3, dtype=bool)
    return {
        "node_features": np.arange(6, dtype=np.float32).reshape(3, 2),
        "node_labels": np.array([0, 1, 1]),
        "edges": np.array([[0, 1], [1, 2], [2, 1]]),
        "train_masks": masks[[0, 1]],
        "val_masks": masks[[1, 2]],
        "test_masks": masks[[2, 0]],
    }


def test_small_file(arrays, write_files, npz):
    dataset = load_dataset("minesweeper", data_dir=write_files({NAME: npz(**arrays)}))
    assert np.array_equal(dataset.x, arrays["node_features"])
    assert dataset.y.tolist() == [0, 1, 1]
    assert dataset.graph.num_entries == 4
    assert (dataset.metric, dataset.protocol) == ("roc_auc", "masks")
    assert [[part.tolist() for part in s.parts().values()] for s in dataset.splits] == [
        [[0], [1], [2]],
        [[1], [2], [0]],
    ]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("node_features", np.zeros(3), "do not fit"),
        ("node_labels", np.array([0, 1]), "do not fit"),
        ("node_labels", np.array([0.0, 1.0, 1.0]), "do not fit"),
        ("node_labels", np.array([0, 1, -1]), "a label is negative"),
        ("node_labels", np.array([0, 1, 2**40]), "label 1099511627776 is out of range for 3 nodes"),
        ("edges", np.array([0, 1]), r"edges must be integers of shape \[E, 2\]"),
        ("edges", np.array([[0.0, 1.0]]), "edges must be integers"),
        ("edges", np.array([[0, 3]]), r"minesweeper\.npz: edge_index names node 3"),
        ("train_masks", np.zeros((2, 3), dtype=int), "masks must be true or false"),
        ("val_masks", np.zeros((1, 3), dtype=bool), "masks must be true or false"),
        ("train_masks", np.zeros((2, 3), dtype=bool), "train part is empty"),
        ("train_masks", np.ones((2, 3), dtype=bool), "node 1 is in both train and val"),
        ("node_features", np.full((3, 1), np.nan), "NaN.*node 0, column 0"),
        ("node_features", np.array([[None]]), "not plain numbers"),
    ],
)
def test_bad_arrays(arrays, write_files, npz, name, value, sentence):
    folder = write_files({NAME: npz(**{**arrays, name: value})})
    with pytest.raises(AsgatError, match=sentence) as error:
        load_dataset("minesweeper", data_dir=folder)
    assert "minesweeper.npz" in str(error.value)


def test_endless_splits_over_no_nodes(arrays, write_files, npz):
    empty = {name: np.zeros((10**9, 0), dtype=bool) for name in arrays if name.endswith("masks")}
    nothing = {"node_features": np.zeros((0, 2)), "node_labels": np.zeros(0, dtype=int)}
    folder = write_files({NAME: npz(**{**arrays, **empty, **nothing})})
    with pytest.raises(AsgatError, match="1000000000 splits, and at most 100"):
        load_dataset("minesweeper", data_dir=folder)


@pytest.mark.parametrize("name", ["chameleon", "squirrel"])
def test_published_masks_are_the_geom_gcn_splits(real_data, name):
    dataset = load_dataset(name, data_dir=real_data)
    assert dataset.protocol == "geom-gcn"
    for i, split in enumerate(dataset.splits):
        path = real_data / f"geom-gcn/splits/{name}_split_0.6_0.2_{i}.npz"
        masks = read_npz(RawFile(path, path.read_bytes()), ["train_mask", "val_mask", "test_mask"])
        for nodes, mask in zip(split.parts().values(), masks.values(), strict=True):
            assert np.array_equal(nodes, np.flatnonzero(mask))
