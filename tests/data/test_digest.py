import hashlib
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from asgat.data import Dataset, Split, digest
from asgat.data.digest import dataset_digest
from asgat.graph import Graph

PARTS = Split(np.array([0, 1]), np.array([2]), np.array([3]))


def tiny(**changes):
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    data = Dataset("tiny", Graph.from_edges([[0, 1, 2], [1, 2, 3]], 4), x, np.array([0, 1, 0, 1]), (PARTS,), 2)
    return replace(data, **changes)


def test_the_digest_is_a_fixed_sha256_of_canonical_bytes():
    def part(name, dtype, values):
        array = np.array(values, dtype)
        return f"\n{name} {dtype} {list(array.shape)}\n".encode() + array.tobytes()

    graph = part("indptr", "<i8", [0, 1, 3, 5, 6]) + part("indices", "<i8", [1, 0, 2, 1, 3, 2])
    graph += part("data", "<f8", [1.0] * 6)
    nodes = part("features", "<f4", [[0, 1], [2, 3], [4, 5], [6, 7]]) + part("labels", "<i8", [0, 1, 0, 1])
    splits = part("train", "<i8", [0, 1]) + part("val", "<i8", [2]) + part("test", "<i8", [3])
    expected = hashlib.sha256(b"asgat data set 1: 2 classes, micro_f1" + graph + nodes + splits).hexdigest()
    assert dataset_digest(tiny()) == expected


def test_names_integer_width_memory_order_and_blocks_do_not_matter(monkeypatch):
    expected = dataset_digest(tiny())
    assert dataset_digest(tiny(name="other", protocol="public")) == expected
    adjacency = tiny().graph.adjacency
    for width in (np.int32, np.int64):
        arrays = (adjacency.data, adjacency.indices.astype(width), adjacency.indptr.astype(width))
        assert dataset_digest(tiny(graph=Graph(sp.csr_array(arrays, shape=(4, 4))))) == expected
    assert dataset_digest(tiny(x=np.asfortranarray(tiny().x))) == expected
    monkeypatch.setattr(digest, "ELEMENTS_AT_ONCE", 3)
    assert dataset_digest(tiny()) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"graph": Graph.from_edges([[0, 1, 2], [1, 2, 0]], 4)},
        {"graph": Graph.from_edges([[0, 1, 2], [1, 2, 3]], 4, [1.0, 1.0, 0.5])},
        {"graph": Graph(tiny().graph.adjacency, directed=True)},
        {"x": tiny().x + np.array([[0, 0]] * 3 + [[0, 1e-6]], dtype=np.float32) * 10},
        {"x": tiny().x.reshape(4, 2)[:, ::-1]},
        {"y": np.array([0, 1, 0, 0])},
        {"splits": (Split(np.array([0]), np.array([1, 2]), np.array([3])),)},
        {"splits": (PARTS, PARTS)},
        {"num_classes": 3},
        {"metric": "roc_auc"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_every_change_of_the_data_changes_the_digest(changes):
    assert dataset_digest(tiny(**changes)) != dataset_digest(tiny())
