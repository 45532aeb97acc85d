"""Tables without a graph; see also test_sklearn_checks.py."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from asgat import ASGATClassifier
from asgat.errors import AsgatError
from asgat.estimator.feature_table import is_table
from asgat.graph import Graph

QUICK: dict[str, Any] = {"epochs": 30, "heads": 2, "hidden": 8, "lr": 0.05}
EDGELESS = "There are no edges: every row is a node of its own"


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    return rng.standard_normal((80, 3)) + 2.0 * y[:, None], y


def test_what_is_a_table():
    pandas = pytest.importorskip("pandas")
    for held in (np.ones((2, 2)), [[1, 2]], torch.ones(2, 2), pandas.DataFrame({"a": [1]})):
        assert is_table(held)
    for graph in (sp.eye_array(3), Graph.from_edges([[0], [1]]), (pandas.DataFrame(), pandas.DataFrame())):
        assert not is_table(graph)


def test_rows_are_nodes_without_edges_and_it_is_said(table):
    x, y = table
    with pytest.warns(UserWarning, match=EDGELESS):
        model = ASGATClassifier(**QUICK).fit(x, y)
    assert model.dataset_.graph.num_entries == 0
    assert model.score(x, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(x[5:6]), model.predict_proba(x)[5:6], atol=1e-6)
    np.testing.assert_array_equal(model.predict(torch.tensor(x)), model.predict(x))
    with pytest.raises(ValueError, match="X has 2 features, but ASGATClassifier is expecting 3 features"):
        model.predict(x[:, :2])


def test_minus_one_is_a_class_of_a_table(table):
    x, y = table
    with pytest.warns(UserWarning, match=EDGELESS):
        model = ASGATClassifier(**QUICK).fit(x, 2 * y - 1)
    assert model.classes_.tolist() == [-1, 1]


def test_a_data_frame_may_hold_words(table):
    pandas = pytest.importorskip("pandas")
    x, y = table
    frame = pandas.DataFrame({"size": x[:, 0], "colour": np.array(["red", "blue", "green"])[np.arange(80) % 3]})
    with pytest.warns(UserWarning, match=EDGELESS):
        model = ASGATClassifier(**QUICK).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["size", "colour"]
    assert model.dataset_.num_features == 4
    assert model.predict(frame[:10]).shape == (10,)
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        model.predict(frame.rename(columns={"size": "height"}))
    frame["kind"] = y
    with pytest.raises(AsgatError, match="y is also among the features, as 'kind'"):
        ASGATClassifier(**QUICK).fit(frame, frame["kind"])


def test_an_adjacency_matrix_is_not_taken_for_features_in_silence():
    square = np.eye(40)[np.random.default_rng(0).permutation(40)]
    with pytest.warns(UserWarning, match=r"A dense adjacency matrix is given as scipy\.sparse\.csr_array\(matrix\)"):
        ASGATClassifier(**{**QUICK, "epochs": 1}).fit(square, np.arange(40) % 2)


def test_labels_are_needed(table):
    x, y = table
    with pytest.raises(ValueError, match="requires y to be passed"):
        ASGATClassifier().fit(x)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ASGATClassifier().fit(x, y[:10])
