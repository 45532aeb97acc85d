"""How far predictions of test nodes can be relied on: precision and recall of every class, and calibration."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import precision_recall_fscore_support

from asgat.leaderboard.intervals import wilson_interval
from asgat.training.metrics import Labels, Probabilities, calibration_bins, calibration_error


def share_with_interval(hits: int, number: int) -> dict[str, Any]:
    """A share of nodes that are right, with its 95 % interval (Wilson)."""
    if not number:
        return {"nodes": 0, "accuracy": None, "low": None, "high": None}
    low, high = wilson_interval(hits, number)
    return {"nodes": number, "accuracy": hits / number, "low": low, "high": high}


def class_scores(truth: Labels, prediction: Labels, names: list[str]) -> list[dict[str, Any]]:
    """Precision, recall and F1 of every class; None where it is never predicted, or has no node."""
    if not len(truth):
        return []
    classes = np.arange(len(names))
    scores = precision_recall_fscore_support(truth, prediction, labels=classes, zero_division=np.nan)
    precision, recall, f1 = (_known(values) for values in scores[:3])
    rows = zip(names, scores[3].tolist(), precision, recall, f1, strict=True)
    keys = ("class", "nodes", "precision", "recall", "f1")
    return [dict(zip(keys, row, strict=True)) for row in rows]


def _known(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [float(value) if value == value else None for value in values]


def calibration(truth: Labels, probability: Probabilities) -> dict[str, Any] | None:
    """The calibration curve, a point for each bin that has nodes, and the calibration error; None without nodes."""
    if not len(truth):
        return None
    bins = [
        {"probability": float(expected / nodes), **share_with_interval(int(right), int(nodes))}
        for nodes, right, expected in zip(*calibration_bins(truth, probability), strict=True)
        if nodes
    ]
    return {"bins": bins, "error": calibration_error(truth, probability)}
