"""Which finalists are saved: one of the best or, where few nodes cannot separate them, the average of several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor, stack
from torch.nn.functional import cross_entropy

from asgat.nn.ensemble import average
from asgat.training.objective import score

NEAR = 0.5  # standard errors of a validation score by which two candidates count as equally good
MAYBE = 2.0  # standard errors of the best validation score within which a candidate may be the best


@dataclass(frozen=True, eq=False)
class FoldPredictions:
    """The outputs of networks on nodes they were not trained on.

    Args:
        truth: the classes of the validation nodes, by fold.
        logits: of the same nodes, by candidate and fold.
    """

    metric: str
    truth: Mapping[int, Tensor]
    logits: Mapping[tuple[int, int], Tensor]

    def validate(self, numbers: Sequence[int]) -> tuple[float, float]:
        """Score and loss of the average of some candidates, as the mean over folds."""
        found = []
        for fold, truth in self.truth.items():
            joined = average(stack([self.logits[n, fold] for n in numbers]))
            found.append((score(joined, truth, self.metric).item(), cross_entropy(joined, truth).item()))
        of_score, of_loss = np.mean(found, axis=0)
        return float(of_score), float(of_loss)


def standard_error(score: float, nodes: int) -> float:
    """That of a share of nodes, whatever the metric is."""
    share = float(np.clip(score, 0.05, 0.95))
    return float(np.sqrt(share * (1 - share) / nodes))


def prefer_simple(ranked: Sequence[int], scores: Sequence[float], standard_error: float) -> int:
    """The best candidate, or the cheapest of those that are as good within a part of the standard error."""
    near = [n for n, score in zip(ranked, scores, strict=True) if score >= scores[0] - NEAR * standard_error]
    return min(near)


def choose(
    ranked: Sequence[int], scores: Sequence[float], standard_error: float, predictions: FoldPredictions
) -> list[int]:
    """The best candidate, then one after the other that which lowers the loss of their average most, until none does.

    The loss decides, whatever the metric is: on few nodes it is less noisy than a share of right answers. Only
    candidates that may be the best by the metric are considered.
    """
    left = [n for n, one in zip(ranked, scores, strict=True) if one >= scores[0] - MAYBE * standard_error]
    chosen, best = [left.pop(0)], np.inf
    if left:
        best = predictions.validate(chosen)[1]
    while left:
        losses = [predictions.validate([*chosen, n])[1] for n in left]
        place = int(np.argmin(losses))
        if losses[place] >= best:
            break
        best = losses[place]
        chosen.append(left.pop(place))
    return chosen
