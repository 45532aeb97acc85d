"""Scores of predictions, as fractions between 0 and 1; log-loss in nats."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Labels = npt.NDArray[np.int64]
Probabilities = npt.NDArray[np.float64]  # [nodes, classes]


def micro_f1(truth: Labels, prediction: Labels) -> float:
    """Micro-averaged F1; with one label per node this is accuracy."""
    return float(np.mean(truth == prediction)) if len(truth) else float("nan")


def macro_f1(truth: Labels, prediction: Labels) -> float:
    """F1 averaged over the classes present in truth or prediction, as scikit-learn defines it."""
    if not len(truth):
        return float("nan")
    both, hits = np.concatenate([truth, prediction]), truth[truth == prediction]
    members = np.bincount(both)  # of a class, in the truth and in the prediction
    scores = 2 * np.bincount(hits, minlength=len(members))[members > 0] / members[members > 0]
    return float(scores.mean())


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


def log_loss(truth: Labels, probability: Probabilities) -> float:
    """Mean of minus the logarithm of the probability given to the true class; a probability of 0 counts as 1e-15."""
    if not len(truth):
        return float("nan")
    given = probability[np.arange(len(truth)), truth]
    return float(-np.log(np.maximum(given, 1e-15)).mean())


def calibration_bins(
    truth: Labels, probability: Probabilities, bins: int = 10
) -> tuple[Labels, Labels, npt.NDArray[np.float64]]:
    """Nodes in bins of equal width by the probability of their prediction.

    Returns for each bin the number of its nodes, how many of them are predicted rightly, and the sum of their
    probabilities, which would be the same in expectation.
    """
    confidence, right = probability.max(axis=1), probability.argmax(axis=1) == truth
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    counts = [np.bincount(nodes, minlength=bins).astype(np.int64) for nodes in (place, place[right])]
    return counts[0], counts[1], np.asarray(np.bincount(place, confidence, minlength=bins), dtype=np.float64)


def calibration_error(truth: Labels, probability: Probabilities, bins: int = 10) -> float:
    """How far a prediction's probability is from how often it is right, on average over nodes.

    The difference in a bin (:func:`calibration_bins`) counts as often as it has nodes.
    """
    if not len(truth):
        return float("nan")
    _, right, expected = calibration_bins(truth, probability, bins)
    return float(np.abs(right - expected).sum() / len(truth))


def all_scores(truth: Labels, probability: Probabilities) -> dict[str, float | None]:
    """Every score of some nodes from the probabilities of their classes; ROC-AUC needs two classes, both present."""
    prediction = probability.argmax(axis=1)
    both = probability.shape[1] == 2 and len(np.unique(truth)) == 2
    area = roc_auc(torch.from_numpy(truth), torch.from_numpy(probability[:, 1].copy())).item() if both else None
    return {
        "micro_f1": micro_f1(truth, prediction),
        "macro_f1": macro_f1(truth, prediction),
        "roc_auc": area,
        "log_loss": log_loss(truth, probability),
        "calibration_error": calibration_error(truth, probability),
    }


def guess(train: Labels, classes: int, nodes: int) -> Probabilities:
    """Predictions without a model: for every node the shares of the classes among the training nodes."""
    counts = np.bincount(train, minlength=classes) + 1.0  # so that no class is impossible
    return np.tile(counts / counts.sum(), (nodes, 1))


def majority_share(train: Labels, other: Labels) -> float:
    """How often the most frequent class of ``train`` is right on ``other``: what learning nothing would score."""
    return micro_f1(other, np.full_like(other, np.bincount(train).argmax()))
