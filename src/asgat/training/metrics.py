"""Scores of predictions, as fractions between 0 and 1."""

import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score, roc_auc_score

Labels = npt.NDArray[np.int64]


def micro_f1(truth: Labels, prediction: Labels) -> float:
    """Micro-averaged F1; with one label per node this is accuracy."""
    return float(np.mean(truth == prediction)) if len(truth) else float("nan")


def macro_f1(truth: Labels, prediction: Labels) -> float:
    """F1 averaged over the classes present in truth or prediction, as scikit-learn defines it."""
    if not len(truth):
        return float("nan")
    return float(f1_score(truth, prediction, average="macro", zero_division=0))


def roc_auc(truth: Labels, score: npt.NDArray[np.floating]) -> float:
    """Area under the ROC curve of two classes, from the score of class 1; NaN where only one class is present."""
    if len(np.unique(truth)) < 2:
        return float("nan")
    return float(roc_auc_score(truth, score))


def majority_share(train: Labels, other: Labels) -> float:
    """How often the most frequent class of ``train`` is right on ``other``: what learning nothing would score."""
    return micro_f1(other, np.full_like(other, np.bincount(train).argmax()))
