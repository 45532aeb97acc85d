"""The features of nodes as a user reads them."""

from dataclasses import replace

import numpy as np

from asgat.estimator.trained_run import load_run
from asgat.report.node_features import FEW, MOST, node_features


def with_features(run, x):
    x = np.asarray(x, dtype=np.float32)
    dataset = replace(run.dataset, x=x)
    return replace(run, dataset=dataset, feature_names=[f"f{i}" for i in range(x.shape[1])])


def test_few_columns_are_all_shown_and_of_many_those_that_stand_out(karate_run):
    few = with_features(karate_run, np.tile([0.0, -2.5], (34, 1)))
    assert node_features(few, np.array([3])) == [[["f0", "0"], ["f1", "-2.5"]]]
    many = with_features(karate_run, np.tile(np.arange(FEW + 1), (34, 1)))
    (found,) = node_features(many, np.array([3]))
    assert found == [[f"f{i}", str(i)] for i in range(FEW, FEW - MOST, -1)]
    sparse = with_features(karate_run, np.eye(34))
    assert node_features(sparse, np.array([5, 6])) == [[["f5", "1"]], [["f6", "1"]]]


def test_names_of_a_users_graph_are_shown(named):
    run = load_run(named)
    assert node_features(run, np.array([5])) == [[["is 5", "1"]]]


def test_a_long_name_is_cut(karate_run):
    run = replace(with_features(karate_run, np.ones((34, 1))), feature_names=["n" * 100])
    assert node_features(run, np.array([0]))[0][0][0] == "n" * 59 + "…"
