"""Precision, recall and calibration on test nodes."""

import numpy as np
import pytest

from asgat.report.reliability import calibration, class_scores, share_with_interval
from asgat.training.metrics import calibration_error


def test_the_interval_of_a_share_is_wilsons():
    found = share_with_interval(8, 10)
    assert (found["accuracy"], found["low"], found["high"]) == pytest.approx((0.8, 0.4902, 0.9433), abs=1e-4)
    assert share_with_interval(0, 0)["accuracy"] is None


def test_precision_and_recall_are_counted():
    truth, prediction = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 0, 0])
    first, second, third, fourth = class_scores(truth, prediction, ["a", "b", "c", "d"])
    assert (first["class"], first["nodes"], first["precision"], first["recall"]) == ("a", 3, 0.5, 2 / 3)
    assert (second["precision"], second["recall"], second["f1"]) == (0.5, 0.5, 0.5)
    assert (third["precision"], third["recall"]) == (None, 0.0), "it is never predicted"
    assert (fourth["nodes"], fourth["recall"]) == (0, None)
    assert class_scores(truth[:0], prediction[:0], ["a"]) == []


def test_the_calibration_curve_has_a_point_per_bin():
    probability = np.array([[0.95, 0.05]] * 4 + [[0.4, 0.6]] * 2)
    truth = np.array([0, 0, 0, 1, 1, 0])
    found = calibration(truth, probability)
    assert found is not None
    assert [(b["nodes"], b["accuracy"]) for b in found["bins"]] == [(2, 0.5), (4, 0.75)]
    assert [b["probability"] for b in found["bins"]] == pytest.approx([0.6, 0.95])
    assert found["error"] == calibration_error(truth, probability) == pytest.approx((4 * 0.2 + 2 * 0.1) / 6)
    assert calibration(truth[:0], probability[:0]) is None
