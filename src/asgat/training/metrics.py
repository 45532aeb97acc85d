"""Scores of predictions, as fractions between 0 and 1."""

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import f1_score
from torch import Tensor

Labels = npt.NDArray[np.int64]


def micro_f1(truth: Labels, prediction: Labels) -> float:
    """Micro-averaged F1; with one label per node this is accuracy."""
    return float(np.mean(truth == prediction)) if len(truth) else float("nan")


def macro_f1(truth: Labels, prediction: Labels) -> float:
    """F1 averaged over the classes present in truth or prediction, as scikit-learn defines it."""
    if not len(truth):
        return float("nan")
    return float(f1_score(truth, prediction, average="macro", zero_division=0))


def roc_auc(truth: Tensor, score: Tensor) -> Tensor:
    """Area under the ROC curve of two classes, 0 and 1, from the score of class 1; NaN if only one class is present.

    The share of pairs of both classes that are ranked rightly, a tie counting half: whole numbers until the last
    division, so that it is the same on every device. Nothing waits for the device.
    """
    ordered, order = score.sort()
    of_class_0 = (1 - truth[order]).cumsum(0)
    below, up_to = (torch.searchsorted(ordered, score, right=right) for right in (False, True))
    counts = torch.cat([of_class_0.new_zeros(1), of_class_0])
    twice = (truth * (counts[below] + counts[up_to])).sum()
    ones = truth.sum()
    return twice.double() / (2 * ones * (len(truth) - ones)).double()


def majority_share(train: Labels, other: Labels) -> float:
    """How often the most frequent class of ``train`` is right on ``other``: what learning nothing would score."""
    return micro_f1(other, np.full_like(other, np.bincount(train).argmax()))
