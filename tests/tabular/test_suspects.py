"""Columns that are no features, and features that are not taken for one of those."""

import numpy as np
import pytest

from asgat.tabular.column import Column
from asgat.tabular.suspects import find_splits, forms_of_label, is_complete, looks_like

N = 90
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 3, N)
HIDDEN = np.where(np.arange(N) % 4 == 0, -1, CODES)


def column(values, name="c"):
    values = np.asarray(values)
    return Column.of_texts(name, values.tolist()) if values.dtype.kind == "U" else Column.of_array(name, values)


FORMS = {
    "copy": CODES,
    "floats": CODES.astype(np.float32),
    "other words": np.array(["x", "y", "z"])[CODES],
    "finer": np.array(["x", "y", "z"])[CODES].astype("U2") + np.array(["1", "2"])[RNG.integers(0, 2, N)],
    "one class": CODES == 1,
    "missing at one class": np.where(CODES == 2, np.nan, CODES),
}
FEATURES = {
    "ids": np.arange(N),
    "words that differ": np.array([f"n{i}" for i in range(N)]),
    "a measurement of classes far apart": CODES * 100 + RNG.random(N),
    "a copy with one error": np.where(np.arange(N) == 1, (CODES + 1) % 3, CODES),
    "constant": np.ones(N),
    "one node": np.arange(N) == 5,
    "unrelated": RNG.integers(0, 3, N),
    "groups of two nodes of a class": np.argsort(np.argsort(CODES, kind="stable")) // 2,
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_the_label(name):
    held = column(FORMS[name])
    assert forms_of_label([held], CODES) == [held]
    assert forms_of_label([held], HIDDEN) == [held], "only labelled nodes count"


@pytest.mark.parametrize("name", FEATURES)
def test_features_are_not_taken_for_the_label(name):
    assert forms_of_label([column(FEATURES[name])], CODES) == []


def test_chance_is_not_taken_for_the_label():
    codes = np.array([0, 1] * 5)
    words = [column((RNG.random(10) < 0.5).astype(np.int64), f"w{i}") for i in range(3000)]
    assert any((word.values == codes).all() or (word.values != codes).all() for word in words)
    assert forms_of_label(words, codes) == []
    assert forms_of_label([], codes) == []
    assert forms_of_label(words[:1], np.full(10, -1)) == []


@pytest.mark.parametrize(
    ("words", "is_split"),
    [
        (["train", "Val", "TEST", ""], True),
        (["training", "test"], True),
        (["train", "bus", "test"], False),
        (["train", "none"], False),
        (["val", "test"], False),
        (["1", "2"], False),
    ],
)
def test_words_of_a_split(words, is_split):
    held = column(words)
    assert find_splits([held]) == ([([held], held)] if is_split else [])


def test_masks_are_a_split():
    masks = [column(np.arange(4) == i, name) for i, name in enumerate(("train_mask", "val_mask", "test_mask"))]
    ((held, parts),) = find_splits([column(np.arange(4)), *masks])
    assert held == masks
    assert parts.texts() == ["train", "val", "test", ""]
    assert find_splits([column(np.arange(4.0), "train_mask")]) == [], "not a mask"


def test_masks_with_the_same_number_are_a_split():
    masks = {"train_mask1": [1, 0, 0], "train_mask_0": [0, 1, 0], "val_mask1": [0, 1, 0], "test_mask": [0, 0, 1]}
    first, second = find_splits([column(np.array(values), name) for name, values in masks.items()])
    assert [held.name for held in first[0]] == ["test_mask", "train_mask_0"]
    assert first[1].texts() == ["", "train", "test"]
    assert second[1].texts() == ["train", "val", "test"]


def test_a_split_is_complete_if_every_labelled_node_has_a_part():
    parts = column(["train", "test", "", "val"])
    assert is_complete(parts, np.array([0, 1, -1, 0]))
    assert not is_complete(parts, np.array([0, 1, 0, 0]))
    assert not is_complete(column(["train", "val", "train", "val"]), np.array([0, 1, 0, 0]))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (RNG.integers(235, 279, 400), "codes"),  # subjects
        (RNG.choice(RNG.integers(0, 60_000, 100), 400), "codes"),  # schools
        (RNG.integers(1, 6, 400), "codes"),  # states
        (RNG.integers(18, 90, 400), None),  # ages
        (RNG.integers(1980, 2010, 400), None),  # years
        (RNG.integers(20, 90, 400) * 1000, None),  # incomes, rounded
        (RNG.geometric(0.02, 400), None),  # counts
        ((RNG.pareto(1, 400) * 3).astype(np.int64), None),  # counts with a long tail
        (RNG.random(400), None),
        (RNG.integers(0, 2, 400), None),
        (np.where(RNG.random(400) < 0.8, 0, RNG.integers(1, 5, 400)), None),  # counts of a word
        (RNG.permutation(400), "ids"),
        (RNG.integers(0, 10**6, 400), None),  # all or most differ
    ],
)
def test_codes_and_ids(values, kind):
    assert looks_like(column(values)) == kind
    assert looks_like(column(np.array([str(value) for value in values]))) == kind
