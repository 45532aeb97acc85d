"""Ids of two graphs: which row is which node, and how they differ."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.estimator.node_matching import difference, rows_of_fitted


@given(st.lists(st.text(max_size=2), unique=True).flatmap(lambda ids: st.tuples(st.just(ids), st.permutations(ids))))
def test_the_same_ids_in_any_order_are_found(both):
    fitted, given = both
    rows = rows_of_fitted(fitted, given)
    assert rows is not None
    assert [given[row] for row in rows] == fitted


@pytest.mark.parametrize(
    ("fitted", "given", "words"),
    [
        ("abcde", "a", "4 ids are missing ('b', 'c', 'd' and 1 more)"),
        ("ab", "abx", "1 id is new ('x')"),
        ("abc", "abb", "1 id is missing ('c'), 1 id is given more than once ('b')"),
        ("aab", "ab", "1 id is given more than once ('a')"),
        ("aab", "aab", "1 id is given more than once ('a')"),
    ],
)
def test_others_are_named(fitted, given, words):
    assert rows_of_fitted(list(fitted), list(given)) is None
    assert difference(list(fitted), list(given)) == words


def test_long_ids_are_shortened():
    assert len(difference(["a" * 5000], ["b"])) < 300
