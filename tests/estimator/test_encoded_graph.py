"""A user's graph, encoded for training."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from asgat.errors import AsgatError
from asgat.estimator.encoded_graph import Encoding, apply_encoding, as_mask, encode_user_graph, label_column
from asgat.tabular.caution import Caution
from asgat.tabular.column import Column
from asgat.tabular.user_graph import UserGraph

RING = np.stack([np.arange(12), np.roll(np.arange(12), -1)])


def user_graph(label=None, *splits):
    features = [Column.of_array("f", np.arange(12.0)), Column.of_texts("c", [*"ab"] * 6)]
    return UserGraph([f"n{i}" for i in range(12)], RING, features, None, label, splits, {"id": "id"}, ["a note"])


PARTS = ["train", "val", "test"]
LABEL = Column.of_texts("kind", ["x", "x", "x", "x", "y", "y", "y", "y", "", "", "x", "y"])


def test_features_and_labels_are_encoded():
    encoded = encode_user_graph(user_graph(LABEL))
    assert encoded.dataset.num_features == 3
    assert encoded.dataset.y.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, -1, -1, 0, 1]
    assert encoded.encoding.class_names == ["x", "y"]
    assert encoded.notes[0] == "a note"
    assert len(encoded.dataset.splits[0].test) > 0


def test_masks_come_first_then_the_split_then_a_new_one():
    split = Column.of_texts("s", ["train", "val"] * 6)
    given = encode_user_graph(user_graph(LABEL, split))
    assert given.dataset.splits[0].val.tolist() == [1, 3, 5, 7, 11]
    masked = encode_user_graph(user_graph(LABEL, split), mask=np.arange(8))
    assert sorted([*masked.dataset.splits[0].train, *masked.dataset.splits[0].val]) == list(range(8))
    assert masked.dataset.splits[0].test.tolist() == [10, 11]
    both = encode_user_graph(user_graph(LABEL), mask=np.arange(6), val_mask=np.array([6, 7]))
    assert both.dataset.splits[0].train.tolist() == [0, 1, 2, 3, 4, 5]
    assert both.dataset.splits[0].val.tolist() == [6, 7]
    assert len(encode_user_graph(user_graph(LABEL), test=False).dataset.splits[0].test) == 0


def test_only_selected_nodes_have_a_label():
    part = user_graph()[np.array([5, 0, 1, 4])]
    column = label_column(part, ["y", "x", "x", "y"])
    assert column.texts() == ["x", "x", "", "", "y", "y", "", "", "", "", "", ""]
    dataset = encode_user_graph(part, ["y", "x", "x", "y"]).dataset
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
    encoding = encode_user_graph(user_graph(), y).encoding
    assert encoding.classes.tolist() == expected
    again = Encoding.from_dict(json.loads(json.dumps(encoding.to_dict())))
    assert again.classes.tolist() == expected
    assert again.classes.dtype.kind == encoding.classes.dtype.kind
    assert again.encoder == encoding.encoder
    assert again.columns == encoding.columns


def test_another_graph_is_encoded_in_the_same_way():
    encoded = encode_user_graph(user_graph(LABEL))
    other, notes = apply_encoding(user_graph(), encoded.encoding)
    np.testing.assert_array_equal(other.x, encoded.dataset.x)
    assert notes == []


def test_a_class_without_training_nodes_is_reported():
    split = Column.of_texts("s", ["train"] * 4 + ["test"] * 8)
    assert "No training node is of class 'y'" in " ".join(encode_user_graph(user_graph(LABEL, split)).notes)


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
def test_what_does_not_fit_is_refused(arguments, words):
    with pytest.raises(AsgatError, match=words):
        encode_user_graph(user_graph(), **arguments)


@pytest.mark.parametrize("change", [{"class_type": "nonsense"}, {"classes": None}, {"columns": 3}, {"features": 1}])
def test_a_broken_encoding_is_refused(change):
    held = encode_user_graph(user_graph(LABEL)).encoding.to_dict()
    with pytest.raises(AsgatError, match="cannot be read"):
        Encoding.from_dict({**held, **change})


def test_repeats_are_other_splits_unless_one_is_given():
    drawn = encode_user_graph(user_graph(LABEL), seed=3, repeats=3)
    assert not drawn.given_validation
    for place, split in enumerate(drawn.dataset.splits):
        alone = encode_user_graph(user_graph(LABEL), seed=3 + place)
        np.testing.assert_array_equal(split.train, alone.dataset.splits[0].train)
    assert len([note for note in drawn.notes if "stratified split" in note]) == 1
    column = Column.of_texts("s", ["train", "val"] * 6)
    given = encode_user_graph(user_graph(LABEL, column), repeats=2)
    assert given.given_validation
    assert len({tuple(split.val) for split in given.dataset.splits}) == 1


def test_repeats_take_given_splits_one_after_another():
    one, other = (Column.of_texts(name, parts * 4) for name, parts in (("s", PARTS), ("t", PARTS[::-1])))
    given = encode_user_graph(user_graph(LABEL, one, other), repeats=3)
    first, second, third = (split.parts() for split in given.dataset.splits)
    assert first["train"].tolist() == second["test"].tolist() == third["train"].tolist() == [0, 3, 6]
    assert given.encoding.splits == ["s", "t"]
    assert Encoding.from_dict(given.encoding.to_dict()).splits == ["s", "t"]
    assert "There are 2 splits, taken in turn." in given.notes
    assert "There are 2 splits, of which the first is used." in encode_user_graph(user_graph(LABEL, one, other)).notes
    three = encode_user_graph(user_graph(LABEL, one, other, replace(one, name="u")), repeats=2)
    assert "There are 3 splits, of which the first 2 are used." in three.notes


def test_notes_name_the_split_they_are_on():
    one, other = Column.of_texts("s", PARTS * 4), Column.of_texts("t", ["train"] * 4 + ["test"] * 8)
    notes = encode_user_graph(user_graph(LABEL, one, other), repeats=4).notes
    assert "In the split 't': No training node is of class 'y'; it cannot be learned." in notes
    assert "In the split 't': 1 of the training nodes was kept for validation." in notes
    assert len([note for note in notes if "In the split 't'" in note]) == 2, "once, however often a split is taken"


def test_splits_with_and_without_test_nodes_are_refused():
    one, other = Column.of_texts("s", PARTS * 4), Column.of_texts("t", ["train", "val"] * 6)
    with pytest.raises(AsgatError, match="Some splits have test nodes and others have none"):
        encode_user_graph(user_graph(LABEL, one, other), repeats=2)


def test_an_encoding_of_a_version_with_one_split_is_read():
    held = encode_user_graph(user_graph(LABEL)).encoding.to_dict()
    del held["splits"]
    older = Encoding.from_dict({**held, "columns": {**held["columns"], "split": "part"}})
    assert older.splits == ["part"]
    assert older.columns == {"id": "id"}
    assert Encoding.from_dict({**held, "columns": {"split": None}}).splits == []


def test_all_complete_columns_of_parts_are_splits():
    own = user_graph(LABEL)
    parts = [
        Column.of_texts(name, held * 4)
        for name, held in (("s", PARTS), ("t", PARTS[::-1]), ("u", ["test", "", "train"]), ("same", PARTS))
    ]
    encoded = encode_user_graph(replace(own, features=[*own.features, *parts]), repeats=2)
    assert [split.train.tolist() for split in encoded.dataset.splits] == [[0, 3, 6], [2, 5, 11]]
    assert encoded.encoding.splits == [], "they are not left out by name"
    cautions = [note for note in encoded.notes if isinstance(note, Caution)]
    assert cautions[1] == "'s', 't', 'same' say which part a node is in: used as 2 splits."
    assert cautions[0].startswith("'u' says which part a node is in, but not for all")


def test_the_metric_is_checked():
    assert encode_user_graph(user_graph(LABEL), metric="roc_auc").dataset.metric == "roc_auc"
    with pytest.raises(AsgatError, match="metric must be one of"):
        encode_user_graph(user_graph(LABEL), metric="accuracy")


def test_a_graph_is_also_directed_where_its_edges_are_or_seem_so():
    graph = user_graph(LABEL)
    assert list(encode_user_graph(graph).datasets()) == [False]
    one_way = encode_user_graph(replace(graph, reciprocal=0.0)).datasets()
    assert [one_way[kind].directed for kind in (False, True)] == [False, True]
    given = encode_user_graph(replace(graph, directed=True)).datasets()
    assert [given[kind].directed for kind in (False, True)] == [False, True]
    assert given[False].graph.num_entries == 2 * given[True].graph.num_entries


def test_an_incomplete_split_is_left_out():
    parts = Column.of_texts("part", ["train", "test"] * 5 + ["", ""])
    own = user_graph(LABEL)
    encoded = encode_user_graph(replace(own, features=[*own.features, parts]))
    assert encoded.dataset.num_features == 3
    assert not encoded.given_validation
    (note,) = [note for note in encoded.notes if isinstance(note, Caution)]
    assert note.startswith("'part' says which part a node is in, but not for all labelled nodes and parts: left out.")


def test_codes_are_reported_unless_the_user_has_said_what_they_are():
    own, codes = user_graph(LABEL), Column.of_array("subject", np.array([235, 236, 240] * 4))
    own = replace(own, features=[codes])
    said = "'subject' may be codes: whole numbers that name things. `--categorical COLUMN` gives every value a column"
    assert any(note.startswith(said) for note in encode_user_graph(own).notes)
    assert not any("may be" in note for note in encode_user_graph(replace(own, declared=("subject",))).notes)


def test_a_form_of_the_label_is_kept_if_the_user_says_what_it_is():
    label = Column.of_texts("kind", [*"xy"] * 10)
    ring = np.stack([np.arange(20), np.roll(np.arange(20), -1)])
    own = UserGraph([str(i) for i in range(20)], ring, [Column.of_texts("copy", [*"ab"] * 10)], label=label)
    assert encode_user_graph(own).encoding.encoder.degree
    assert encode_user_graph(replace(own, declared=["copy"])).dataset.num_features == 2


def test_labels_handed_over_as_a_feature_are_refused_and_other_forms_left_out():
    words, codes = ["a", "b"] * 20, np.tile([0, 1], 20)
    features = [Column.of_texts("kind", words), Column.of_array("f", np.arange(40.0))]
    graph = UserGraph([str(i) for i in range(40)], np.array([[0, 1, 2], [1, 2, 3]]), features)
    with pytest.raises(AsgatError, match="y is also among the features, as 'kind'"):
        encode_user_graph(graph, words)
    partly = [*words[:30], *[None] * 10]
    with pytest.raises(AsgatError, match="y is also among the features, as 'kind'"):
        encode_user_graph(graph, partly)
    for y in (codes, ["u", "v"] * 20):  # another form of it
        assert encode_user_graph(graph, y).dataset.num_features == 1
    numbers = replace(graph, features=[Column.of_array("code", codes), features[1]])
    with pytest.raises(AsgatError, match="y is also among the features, as 'code'"):
        encode_user_graph(numbers, codes)
    assert encode_user_graph(numbers, codes.astype(float)).dataset.num_features == 1
    named = replace(graph, label=Column.of_texts("label", words), columns={"label": "label"})
    assert encode_user_graph(named).dataset.num_features == 1, "a copy in another column"
