import numpy as np
import pytest

from asgat.data import stratified_splits
from asgat.data.splits import split_from_masks
from asgat.errors import AsgatError

Y = np.array([0] * 100 + [1] * 50 + [2] + [-1] * 5)


def test_parts_are_disjoint_stratified_and_labelled():
    for split in stratified_splits(Y):
        together = np.concatenate(list(split.parts().values()))
        assert np.array_equal(np.sort(together), np.arange(151))
        assert np.bincount(Y[split.train]).tolist() == [48, 24, 1]
        assert np.bincount(Y[split.val]).tolist() == [32, 16]
        assert np.bincount(Y[split.test]).tolist() == [20, 10]


def test_seeded_and_independent_of_the_number_of_splits():
    ten, three, other = stratified_splits(Y), stratified_splits(Y, num_splits=3), stratified_splits(Y, seed=1)
    assert len(ten) == 10
    for i in range(3):
        assert np.array_equal(ten[i].train, three[i].train)
        assert not np.array_equal(ten[i].train, other[i].train)
    assert not np.array_equal(ten[0].train, ten[1].train)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_splits": 0}, "num_splits must be at least 1"),
        ({"train": 0.9, "val": 0.2}, "0.9 and 0.2"),
        ({"train": 0.0}, "must be positive"),
        ({"seed": -1}, "non-negative integer, not -1"),
        ({"seed": True}, "non-negative integer"),
    ],
)
def test_bad_options(options, sentence):
    with pytest.raises(AsgatError, match=sentence):
        stratified_splits(Y, **options)


def test_nothing_labelled():
    with pytest.raises(AsgatError, match="no labelled node"):
        stratified_splits(np.array([-1, -1]))


def test_masks_lose_unlabelled_nodes():
    train, val, test = np.eye(3, 4, dtype=bool) | np.array([False, False, False, True])
    split = split_from_masks(train, val, test, np.array([0, 1, 1, -1]))
    assert [part.tolist() for part in split.parts().values()] == [[0], [1], [2]]
