"""Labels as class numbers, and parts of the labelled nodes."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.tabular.caution import Caution
from asgat.tabular.column import Column
from asgat.tabular.labels import encode_labels, make_split, read_split, split_of_mask

LABELS = st.lists(st.integers(-1, 3), min_size=4, max_size=40).map(np.array)


@given(st.lists(st.sampled_from(["", "b", "a", "c"]), min_size=1))
def test_numbers_stand_for_names(texts):
    assume(len(set(texts) - {""}) > 1)
    codes, classes = encode_labels(Column.of_texts("k", texts))
    assert classes.tolist() == sorted(set(texts) - {""})
    assert [classes[code] if code >= 0 else "" for code in codes] == texts


def test_whole_floats_are_numbers_of_classes():
    codes, classes = encode_labels(Column.of_array("k", np.array([2.0, np.nan, 10.0])))
    assert classes.tolist() == [2, 10]
    assert classes.dtype.kind == "i"
    assert codes.tolist() == [0, -1, 1]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["", ""], "No node has a label"),
        (["a", "a", ""], "of one class, 'a'"),
        ([str(i / 7) for i in range(30)], "30 different values at 30 nodes"),
    ],
)
def test_labels_no_model_learns_from(texts, words):
    with pytest.raises(AsgatError, match=words):
        encode_labels(Column.of_texts("k", texts))


def test_a_class_with_one_member_is_said():
    notes: list[str] = []
    encode_labels(Column.of_texts("k", ["a", "a", "b"]), notes)
    assert "Only one node is of class 'b': it is trained on" in notes[0]
    encode_labels(Column.of_texts("k", ["a", "a", "b", "c"]), notes)
    assert notes[1] == (
        "Only one node is of each of the classes 'b', 'c': they are trained on, so the classes cannot be tested."
    )


@given(LABELS, st.integers(0, 5))
def test_a_split_covers_the_labelled_nodes_once(y, seed):
    counts = np.bincount(y[y >= 0])
    assume(counts.size and counts.max() > 1)
    notes: list[str] = []
    split = make_split(y, seed, notes)
    together = np.concatenate(list(split.parts().values()))
    assert sorted(together.tolist()) == np.flatnonzero(y >= 0).tolist()
    assert len(split.val) > 0
    assert set(y[split.train]) == set(y[y >= 0])
    assert "stratified" in notes[0]


@given(LABELS, st.data())
def test_only_the_mask_is_learned_from(y, data):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(y), max_size=len(y))))
    counts = np.bincount(y[mask & (y >= 0)])
    assume(counts.size and counts.max() > 1)
    split = split_of_mask(mask, y, 0)
    assert sorted([*split.train, *split.val]) == np.flatnonzero(mask & (y >= 0)).tolist()
    assert split.test.tolist() == np.flatnonzero(~mask & (y >= 0)).tolist()
    assert len(split.val) > 0


def test_a_column_of_words():
    y = np.array([0, 1, 0, 1, -1, 0])
    notes: list[str] = []
    split = read_split(Column.of_texts("s", ["train", "Validation", "TEST", "", "train", "none"]), y, 0, notes)
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([0], [1], [2])
    assert "1 nodes of the split have no label" in notes[0]


def test_validation_is_taken_from_training_where_there_is_none():
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    notes: list[str] = []
    split = read_split(Column.of_texts("s", ["train"] * 8 + ["test"]), y, 0, notes)
    assert sorted([*split.train, *split.val]) == list(range(8))
    assert len(split.val) == 2
    assert "kept for validation" in notes[0]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["train", "tset", "val"], "holds 'tset' in row 2"),
        (["test", "val", ""], "no labelled node into train"),
        (["train", "train", "test"], "only 2 labelled nodes to train on"),
    ],
)
def test_splits_that_do_not_serve(texts, words):
    with pytest.raises(AsgatError, match=words):
        read_split(Column.of_texts("s", texts), np.array([0, 1, 1]), 0, [])


def test_a_mask_without_labels():
    with pytest.raises(AsgatError, match="no labelled node"):
        split_of_mask(np.array([True, False]), np.array([-1, 0]), 0)


@pytest.mark.parametrize("word", ["NA", "None", "null"])
def test_labels_that_are_read_as_missing_are_reported(word):
    notes: list[str] = []
    codes, _ = encode_labels(Column.of_texts("k", ["a", word, "", "b", f" {word}", "a", "b"]), notes)
    assert codes.tolist() == [0, -1, -1, 1, -1, 0, 1]
    assert notes == [f"2 nodes are labelled {word!r}, which is read as no label; rename the class if it is one."]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.repeat(np.arange(18, 60), 3), True),
        (np.repeat(np.arange(1.0, 5.0, 0.5), 3), True),
        (np.repeat(np.arange(40), 3), False),
        (np.repeat(np.arange(1, 6), 3), False),
    ],
)
def test_quantities_as_labels_are_reported(values, said):
    for column in (Column.of_array("age", values), Column.of_texts("age", [str(value) for value in values])):
        notes: list[str] = []
        encode_labels(column, notes)
        found = [note for note in notes if "this is classification" in note]
        assert bool(found) == said
        assert all(isinstance(note, Caution) and "'age'" in note for note in found)


@pytest.mark.parametrize("word", ["unknown", "?", "Unlabeled", "-1"])
def test_labels_that_may_mean_none_get_a_hint(word):
    notes: list[str] = []
    codes, _ = encode_labels(Column.of_texts("k", ["a", "a", word, word, "b", "b"]), notes)
    assert codes.min() == 0, "it is a class"
    assert notes == [
        f"2 nodes are labelled {word!r}, which is taken as a class of its own. If their class is not known, leave "
        "their label empty."
    ]


def test_minus_one_is_a_plain_class_next_to_one_alone():
    for values, doubted in (([-1, 1] * 5, False), ([-1, 0, 1] * 5, True), ([-1, 2] * 5, True)):
        notes: list[str] = []
        encode_labels(Column.of_array("y", np.array(values)), notes)
        assert any("labelled '-1'" in note for note in notes) == doubted
