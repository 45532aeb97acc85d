"""Other divisions of training and validation nodes."""

import numpy as np
import pytest

from asgat.data.dataset import Split
from asgat.data.splits import stratified_splits
from asgat.leaderboard.folds import FEW, PARTS, SMALL, fold_splits, is_few

Y = np.random.default_rng(0).integers(0, 3, 2 * FEW)
SPLIT = stratified_splits(Y, 1, 0, 0.6, 0.2)[0]


def test_they_divide_the_same_nodes_and_leave_test_nodes_alone():
    both = set(SPLIT.train) | set(SPLIT.val)
    folds = fold_splits(SPLIT, Y, 4, seed=3)
    assert folds[0] is SPLIT
    for fold in folds:
        assert set(fold.train) | set(fold.val) == both
        assert not set(fold.train) & set(fold.val)
        np.testing.assert_array_equal(fold.test, SPLIT.test)
        assert len(fold.val) == pytest.approx(len(SPLIT.val), abs=2)


def test_every_node_is_validated_once_before_any_is_twice():
    folds = fold_splits(SPLIT, Y, 4, seed=3)
    validated = np.concatenate([fold.val for fold in folds])
    assert sorted(validated) == sorted(np.concatenate([SPLIT.train, SPLIT.val]))


def test_classes_are_in_proportion():
    for fold in fold_splits(SPLIT, Y, 6, seed=3):
        shares = np.bincount(Y[fold.val]) / len(fold.val)
        np.testing.assert_allclose(shares, np.bincount(Y) / len(Y), atol=0.06)


def test_the_seed_decides():
    one, again, other = (fold_splits(SPLIT, Y, 3, seed)[2].val for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert set(one) != set(other)


def test_a_validation_part_of_the_user_is_kept_if_it_is_large_enough():
    y = np.arange(4 * SMALL) % 2
    nodes = np.arange(4 * SMALL)
    large = Split(nodes[: 2 * SMALL], nodes[2 * SMALL : 3 * SMALL], nodes[3 * SMALL :])
    assert fold_splits(large, y, 3, 0, given=True) == [large] * 3
    assert len({tuple(fold.val) for fold in fold_splits(large, y, 3, 0)}) == 3
    small = Split(nodes[: 2 * SMALL], nodes[2 * SMALL : 3 * SMALL - 1], nodes[3 * SMALL :])
    assert len({tuple(fold.val) for fold in fold_splits(small, y, 3, 0, given=True)}) == 3


def test_few_nodes_are_cross_validated():
    y = np.arange(FEW) % 3
    split = Split(np.arange(0, 200), np.arange(200, 350), np.arange(350, FEW))
    assert is_few(split)
    assert not is_few(SPLIT)
    folds = fold_splits(split, y, 1 + 2 * PARTS, seed=3)
    assert folds[0] is split
    for first in (1, 1 + PARTS):
        validated = np.concatenate([fold.val for fold in folds[first : first + PARTS]])
        assert sorted(validated) == list(range(350)), "every node once in each cross-validation"
    for fold in folds[1:]:
        assert sorted([*fold.train, *fold.val]) == list(range(350))
        assert len(fold.val) == 350 // PARTS
        np.testing.assert_array_equal(fold.test, split.test)


def test_both_classes_are_in_every_validation_part():
    y = np.zeros(60, dtype=np.int64)
    y[[0, 1, 40]] = 1
    for fold in fold_splits(Split(np.arange(40), np.arange(40, 60), np.arange(0)), y, 9, 0):
        assert set(y[fold.val]) == set(y[fold.train]) == {0, 1}


def test_classes_of_a_single_node_are_always_trained_on():
    y = np.array([0, 1, 1, 1, 1, 1])
    split = Split(np.arange(4), np.arange(4, 6), np.arange(0))
    for fold in fold_splits(split, y, 5, 0):
        assert 0 in fold.train
    lonely = Split(np.arange(2), np.arange(2, 3), np.arange(0))
    assert [fold.train.tolist() for fold in fold_splits(lonely, np.arange(3), 3, 0)] == [[0, 1]] * 3
