"""Features as numbers, the same on every graph."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgat.errors import AsgatError
from asgat.graph import Graph
from asgat.tabular.column import Column
from asgat.tabular.encoder import LARGEST, MAX_CATEGORIES, FeatureEncoder

CELL = st.one_of(st.sampled_from(["", "red", "blue", "1", "0", "yes"]), st.floats(allow_nan=False).map(repr))


def empty(size):
    return Graph.from_edges(np.zeros((2, 0), dtype=np.int64), size)


def encode(column, other=None):
    encoder = FeatureEncoder.fit([column])
    x, notes = encoder.transform([other or column], empty(len(other or column)))
    return encoder, x, notes


@given(st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=1, max_size=8))
def test_any_column_becomes_finite_numbers_and_the_encoding_is_remembered(rows):
    columns = [Column.of_texts(f"c{i}", cells) for i, cells in enumerate(zip(*rows, strict=True))]
    encoder = FeatureEncoder.fit(columns)
    x, _ = encoder.transform(columns, empty(len(rows)))
    assert x.shape == (len(rows), len(encoder.names))
    assert x.dtype == np.float32
    assert np.isfinite(x).all()
    assert np.abs(x).max(initial=0.0) <= LARGEST
    again = FeatureEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again == encoder
    np.testing.assert_array_equal(again.transform(columns, empty(len(rows)))[0], x)
    # A row means the same wherever it stands.
    alone, _ = encoder.transform([column.take(np.array([0])) for column in columns], empty(1))
    if not encoder.degree:
        np.testing.assert_array_equal(alone[0], x[0])


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=30).filter(lambda v: np.std(v) > 1e-3 and 0.0 not in v))
def test_numbers_have_mean_zero_and_spread_one(values):
    _, x, _ = encode(Column.of_array("a", np.array([*values, 17.5])))
    assert x.mean() == pytest.approx(0.0, abs=1e-4)
    assert x.std() == pytest.approx(1.0, abs=1e-3)


def test_mostly_zero_numbers_stay_zero():
    _, x, _ = encode(Column.of_array("a", np.array([0.0, 0.0, 0.0, 4.0])))
    assert x[:3, 0].tolist() == [0, 0, 0]
    assert x[3, 0] == pytest.approx(2.0)


def test_huge_numbers_do_not_overflow():
    _, x, _ = encode(Column.of_array("a", np.array([1e308, -1e308, 1.0])))
    assert np.isfinite(x).all()
    assert x[0, 0] > 1


def test_zero_and_one_stay_as_they_are():
    encoder, x, _ = encode(Column.of_texts("a", ["yes", "no", "yes"]))
    assert x[:, 0].tolist() == [1, 0, 1]
    assert encoder.features[0].kind == "boolean"
    assert encode(Column.of_array("a", np.array([0, 1, 1])))[1][:, 0].tolist() == [0, 1, 1]


def test_categories_have_a_column_each():
    encoder, x, _ = encode(Column.of_texts("c", ["b", "a", "", "b"]))
    assert encoder.names == ["c=a", "c=b", "c missing"]
    assert x.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert encoder.notes == ("Column c (1): values are missing; an additional column marks them.",)


def test_rare_categories_share_a_column():
    cells = [f"v{i % 60}" for i in range(600)]
    encoder, x, _ = encode(Column.of_texts("c", cells))
    assert len(encoder.names) == MAX_CATEGORIES + 1
    assert (x.sum(axis=1) == 1).all()
    assert x[:, -1].sum() == 100
    assert encoder.notes[0].startswith("Column c (60): many values")


def test_uninformative_columns_are_left_out():
    columns = [
        Column.of_texts("free", [f"text {i}" for i in range(80)]),
        Column.of_texts("constant", ["7"] * 80),
        Column.of_texts("same", ["x"] * 80),
        Column.of_texts("empty", [""] * 80),
    ]
    encoder = FeatureEncoder.fit(columns)
    assert encoder.degree
    assert [feature.kind for feature in encoder.features] == ["unused"] * 4
    assert len(encoder.notes) == 4
    assert "2 columns (constant, same): left out, as the value is the same everywhere." in encoder.notes
    x, _ = encoder.transform([column.take(np.arange(3)) for column in columns], Graph.from_edges([[0], [1]], 3))
    np.testing.assert_allclose(x, [[1, np.log(2)], [1, np.log(2)], [1, 0]], rtol=1e-6)


def test_unseen_categories_and_missing_values_are_reported():
    fitted = Column.of_texts("c", ["a", "b"])
    _, x, notes = encode(fitted, Column.of_texts("c", ["z", "a", ""]))
    assert x.tolist() == [[0, 0], [1, 0], [0, 0]]
    assert len(notes) == 2
    _, x, notes = encode(Column.of_texts("n", ["1", "3"]), Column.of_texts("n", ["", "3", "inf"]))
    assert x[:, 0].tolist() == [0, 1, 0]
    assert "2 nodes" in notes[0]


def test_other_columns_are_refused_by_name():
    encoder = FeatureEncoder.fit([Column.of_texts("a", ["1", "2"]), Column.of_texts("b", ["1", "2"])])
    with pytest.raises(AsgatError, match="lack 'b' and have 'c' as well"):
        encoder.transform([Column.of_texts("a", ["1"]), Column.of_texts("c", ["1"])], empty(1))
    with pytest.raises(AsgatError, match="'a' held numbers when the model was fitted, but now 'x'"):
        encoder.transform([Column.of_texts("a", ["x"]), Column.of_texts("b", ["1"])], empty(1))


@pytest.mark.parametrize(
    "change",
    [{"kind": "nonsense"}, {"scale": 0.0}, {"scale": None}, {"scale": 10**400}, {"centre": "x"}, {"categories": 3}],
)
def test_a_broken_encoding_is_refused(change):
    held = FeatureEncoder.fit([Column.of_texts("a", ["1", "2"])]).to_dict()
    held["features"][0] |= change
    with pytest.raises(AsgatError, match="cannot be read"):
        FeatureEncoder.from_dict(held)


@pytest.mark.timeout(100)
def test_the_cost_is_linear_in_the_number_of_columns():
    """40,000 columns took 91 s; these take two."""
    columns = [Column.of_array(f"c{i}", np.array([0.0, i + 1.0, 2.0])) for i in range(60_000)]
    x, _ = FeatureEncoder.fit(columns).transform(columns, empty(3))
    assert x.shape == (3, 60_000)


def test_the_degree_counts_neighbours_in_either_direction():
    graph = Graph.from_edges([[0, 1, 2], [1, 0, 1]], 4, directed=True)
    x, _ = FeatureEncoder.fit([]).transform([], graph)
    np.testing.assert_allclose(x[:, 1], np.log1p([1, 2, 1, 0]), rtol=1e-6)


def test_a_row_is_read_back_as_it_was_given():
    columns = [
        Column.of_texts("weight", ["3", "5", "", "1000000"] + ["4", "6"] * 200),
        Column.of_texts("town", ["a", "b", "", "a"] + ["a", "b"] * 200),
        Column.of_texts("same", ["x"] * 404),
        Column.of_texts("member", ["1", "0", "1", "0"] * 101),
    ]
    encoder, graph = FeatureEncoder.fit(columns), empty(404)
    x, _ = encoder.transform(columns, graph)

    def read(node):
        return {value.name: value.text for value in encoder.read_row(x[node])}

    assert read(0) == {"weight": "3", "town": "a", "member": "1"}
    assert read(1) == {"weight": "5", "town": "b", "member": "0"}
    assert read(2) == {"weight": "missing", "town": "missing", "member": "1"}
    assert read(3)["weight"].startswith("≥ "), "it was clipped"
    degree = FeatureEncoder.fit([])
    (value,) = degree.read_row(degree.transform([], Graph.from_edges(np.array([[0, 1], [2, 2]]), 3))[0][2])
    assert (value.name, value.text) == ("degree", "2")


def test_categories_that_are_numbers():
    column = replace(Column.of_array("c", np.array([3, 1, 3])), is_category=True)
    encoder, x, _ = encode(column, Column.of_texts("c", ["1", "3", "5"]))
    assert encoder.names == ["c=1", "c=3"]
    np.testing.assert_array_equal(x, [[1, 0], [0, 1], [0, 0]])
    switch = replace(Column.of_texts("c", ["yes", "no", "yes"]), is_category=True)
    assert encode(switch)[0].features[0].kind == "boolean"
    different = replace(Column.of_array("c", np.arange(200)), is_category=True)
    assert encode(different)[0].features[0].kind == "number", "they do not repeat"


def test_unused_columns_may_be_absent_and_are_not_noted():
    columns = [Column.of_texts("a", ["1", "2"]), Column.of_texts("b", ["1", "2"])]
    encoder = FeatureEncoder.fit(columns, {"b"})
    assert encoder.names == ["a"]
    assert not encoder.notes
    x, _ = encoder.transform(columns[:1], empty(2))
    np.testing.assert_array_equal(x, encoder.transform(columns, empty(2))[0])
