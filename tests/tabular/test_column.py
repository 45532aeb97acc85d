"""Columns: what counts as a number, a boolean, a missing value."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.tabular.column import MISSING, Column


@given(st.lists(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.none()), min_size=1))
def test_numbers_written_as_texts_are_read_back(values):
    column = Column.of_texts("a", ["" if value is None else repr(value) for value in values])
    assert column.numbers is not None
    expected = np.array([math.nan if value is None else value for value in values])
    np.testing.assert_array_equal(column.numbers, expected)
    assert column.missing.tolist() == [value is None for value in values]


@pytest.mark.parametrize("word", sorted(MISSING))
def test_words_for_nothing(word):
    column = Column.of_texts("a", ["1", word, f" {word} "])
    assert column.missing.tolist() == [False, True, True]
    assert column.texts() == ["1", "", ""]


@pytest.mark.parametrize("text", ["1_000", "١٢", "1,5", "x", "0x10", "--1"])
def test_what_is_not_a_number(text):
    column = Column.of_texts("a", ["1", text])
    assert column.numbers is None
    assert column.first_text() == text


def test_booleans():
    column = Column.of_texts("a", ["yes", "No", "", " TRUE"])
    assert column.numbers is not None
    np.testing.assert_array_equal(column.numbers, [1, 0, math.nan, 1])
    assert Column.of_texts("a", ["yes", "perhaps"]).numbers is None
    np.testing.assert_array_equal(Column.of_texts("a", ["", ""]).numbers, [math.nan, math.nan])


def test_objects_of_one_kind():
    assert Column.of_objects("a", [1, None, 3]).texts() == ["1", "", "3"]
    assert Column.of_objects("a", [1.0, float("nan"), 2.5]).texts() == ["1", "", "2.5"]
    assert Column.of_objects("a", [True, False]).texts() == ["true", "false"]
    assert Column.of_objects("a", ["x", 3, None]).texts() == ["x", "3", ""]
    assert Column.of_objects("a", [2**80, 1]).texts() == [str(2**80), "1"], "exact, though beyond 64 bits"
    assert Column.of_objects("a", [None, None]).missing.all()
    with pytest.raises(AsgatError, match="'a' holds lists"):
        Column.of_objects("a", [[1], [2]])


def test_large_whole_numbers_stay_exact():
    assert Column.of_array("a", np.array([2**60 + 1])).texts() == [str(2**60 + 1)]


@given(st.lists(st.sampled_from(["a", "", "1", "NA"]), min_size=1), st.data())
def test_taking_rows(values, data):
    rows = data.draw(st.lists(st.integers(0, len(values) - 1)))
    column = Column.of_texts("a", values)
    part = column.take(np.array(rows, dtype=np.int64))
    assert part.texts() == [column.texts()[i] for i in rows]
    assert len(part) == len(rows)
