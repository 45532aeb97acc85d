"""What a report advises."""

from dataclasses import replace

import numpy as np
import pytest
from tests.report.conftest import made_board

from asgat.estimator.trained_run import load_run
from asgat.leaderboard.standings import CUT
from asgat.report.next_steps import next_steps


def texts(run, result=None, board=None, classes=(), calibration=None):
    return [step.text for step in next_steps(run, result or {}, board, list(classes), calibration)]


def test_a_model_with_attention_can_be_explained(karate_run, gcn):
    (step,) = next_steps(karate_run, {}, None, [], None)
    assert step.command == f"asgat explain {karate_run.path} --node 0"
    assert texts(load_run(gcn)) == []


@pytest.mark.parametrize(
    ("gain", "advised"), [([0.1, 0.3], False), ([-0.1, 0.3], True), ([0.0, 0.3], True), (None, False)]
)
def test_a_score_like_guessing_has_advice(gcn, gain, advised):
    test = {"metric": "micro_f1", "scores": {"micro_f1": 0.5}, "guessing": {"micro_f1": 0.5}, "gain": gain}
    assert any("guessing" in text for text in texts(load_run(gcn), {"test": test})) == advised


def test_weak_classes_and_probabilities_that_are_off_are_named(gcn):
    classes = [{"class": name, "nodes": n, "recall": r} for name, n, r in (("a", 9, 0.4), ("b", 9, 0.2), ("c", 2, 0.0))]
    found = texts(load_run(gcn), classes=[*classes, {"class": "d", "nodes": 0, "recall": None}])
    assert found == ["Class b is recognised in 20% of its test nodes; label more of its nodes."]
    assert "off by 12 points" in texts(load_run(gcn), calibration={"error": 0.12})[0]
    assert texts(load_run(gcn), calibration={"error": 0.05}) == []


def test_a_users_graph_is_predicted_and_searched_further(named):
    run, one = load_run(named), {"rows": [{"run": 0}]}
    found = texts(run, one, made_board())
    assert [text.split(":")[0] for text in found[:3]] == [
        "Predict the nodes of another graph with the same columns",
        "See how much the score depends on the split",
        "Try more settings, for up to an hour",
    ]
    bound = replace(run, name="linkx")
    assert "another graph" not in " ".join(texts(bound, one, made_board())), "its weights belong to these nodes"
    assert "another graph" in " ".join(texts(replace(bound, partners=(run,)), one, made_board()))
    assert texts(run, one, made_board(cut=True))[0] == CUT
    assert "fit without --model" in texts(run, one)[2]
    y = run.y.copy()
    y[run.dataset.splits[0].test] = -1
    split = replace(run.dataset.splits[0], test=np.zeros(0, dtype=np.int64))
    unlabelled = replace(run, dataset=replace(run.dataset, y=y, splits=(split,)))
    assert texts(unlabelled)[0] == f"Predict {(y < 0).sum()} nodes without a label:"
