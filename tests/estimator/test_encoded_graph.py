"""From what a user gives to what is trained on."""

import json

import numpy as np
import pytest
import torch

from asgat.errors import AsgatError
from asgat.estimator.encoded_graph import Encoding, as_mask, encode_graph_for, label_column, prepare
from asgat.tabular.column import Column
from asgat.tabular.user_graph import UserGraph

RING = np.stack([np.arange(12), np.roll(np.arange(12), -1)])


def own(label=None, split=None):
    features = [Column.of_array("f", np.arange(12.0)), Column.of_texts("c", [*"ab"] * 6)]
    return UserGraph([f"n{i}" for i in range(12)], RING, features, None, label, split, {"id": "id"}, ["a note"])


LABEL = Column.of_texts("kind", ["x", "x", "x", "x", "y", "y", "y", "y", "", "", "x", "y"])


def test_features_and_labels_are_encoded():
    prepared = prepare(own(LABEL))
    assert prepared.dataset.num_features == 3
    assert prepared.dataset.y.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, -1, -1, 0, 1]
    assert prepared.encoding.class_names == ["x", "y"]
    assert prepared.notes[0] == "a note"
    assert len(prepared.dataset.splits[0].test) > 0


def test_masks_come_first_then_the_split_then_a_new_one():
    split = Column.of_texts("s", ["train", "val"] * 6)
    given = prepare(own(LABEL, split))
    assert given.dataset.splits[0].val.tolist() == [1, 3, 5, 7, 11]
    masked = prepare(own(LABEL, split), mask=np.arange(8))
    assert sorted([*masked.dataset.splits[0].train, *masked.dataset.splits[0].val]) == list(range(8))
    assert masked.dataset.splits[0].test.tolist() == [10, 11]
    both = prepare(own(LABEL), mask=np.arange(6), val_mask=np.array([6, 7]))
    assert both.dataset.splits[0].train.tolist() == [0, 1, 2, 3, 4, 5]
    assert both.dataset.splits[0].val.tolist() == [6, 7]
    assert len(prepare(own(LABEL), test=False).dataset.splits[0].test) == 0


def test_chosen_nodes_are_the_only_ones_with_a_label():
    part = own()[np.array([5, 0, 1, 4])]
    column = label_column(part, ["y", "x", "x", "y"])
    assert column.texts() == ["x", "x", "", "", "y", "y", "", "", "", "", "", ""]
    dataset = prepare(part, ["y", "x", "x", "y"]).dataset
    assert sorted([*dataset.splits[0].train, *dataset.splits[0].val]) == [0, 1, 4, 5]


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.array([3, 7, -1] * 4), [3, 7]),
        (torch.tensor([3, 7, -1] * 4), [3, 7]),
        (np.array([True, False, True] * 4), [False, True]),
        (["a", None, "b"] * 4, ["a", "b"]),
        ([1.0, float("nan"), 2.0] * 4, [1, 2]),
        ([0.5, 0.5, 1.5] * 4, [0.5, 1.5]),
    ],
)
def test_classes_keep_their_type(y, expected):
    encoding = prepare(own(), y).encoding
    assert encoding.classes.tolist() == expected
    again = Encoding.from_dict(json.loads(json.dumps(encoding.to_dict())))
    assert again.classes.tolist() == expected
    assert again.classes.dtype.kind == encoding.classes.dtype.kind
    assert again.encoder == encoding.encoder
    assert again.columns == encoding.columns


def test_another_graph_is_encoded_alike():
    prepared = prepare(own(LABEL))
    other, notes = encode_graph_for(own(), prepared.encoding)
    np.testing.assert_array_equal(other.x, prepared.dataset.x)
    assert notes == []


def test_a_class_that_is_never_trained_on_is_said():
    split = Column.of_texts("s", ["train"] * 4 + ["test"] * 8)
    assert "No training node is of class 'y'" in " ".join(prepare(own(LABEL, split)).notes)


def test_masks():
    assert as_mask([0, 2], 3).tolist() == [True, False, True]
    assert as_mask(torch.tensor([True, False]), 2).tolist() == [True, False]
    for bad in ([5], [-1], [0.5], np.ones(3, dtype=bool), [[0]]):
        with pytest.raises(AsgatError, match="mask"):
            as_mask(bad, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "no labels"),
        ({"y": ["a"] * 3}, "one label per node, 12"),
        ({"y": [*"ab"] * 6, "mask": [0, 1], "val_mask": [1]}, "must be disjoint"),
        ({"y": ["a", "b", ""] * 4, "mask": [0, 1, 3], "val_mask": [2]}, "val_mask holds no labelled node"),
    ],
)
def test_what_does_not_fit_is_told(arguments, words):
    with pytest.raises(AsgatError, match=words):
        prepare(own(), **arguments)


@pytest.mark.parametrize("change", [{"class_type": "nonsense"}, {"classes": None}, {"columns": 3}, {"features": 1}])
def test_a_broken_encoding_is_told(change):
    held = prepare(own(LABEL)).encoding.to_dict()
    with pytest.raises(AsgatError, match="cannot be read"):
        Encoding.from_dict({**held, **change})
