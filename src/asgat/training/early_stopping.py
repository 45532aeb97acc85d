"""When to stop, and which epoch counts."""

import math


class EarlyStopping:
    """The paper's rule, on validation loss and score together, or one on the score alone.

    Training stops after ``patience`` epochs in a row with neither a lower loss nor a higher score than ever before.
    The epoch that counts is the last one that was at least as good as every earlier one in both.

    A deep network's loss rises again, because it becomes too sure, while its score still improves. If
    ``score_alone``, the epoch that counts is the one with the highest score, and of these the one with the lowest loss;
    training stops after ``patience`` epochs without such an epoch.

    Example:
        >>> stopping = EarlyStopping(patience=1)
        >>> stopping.update(1.0, 0.5), stopping.update(2.0, 0.4), stopping.stop
        (True, False, True)
    """

    def __init__(self, patience: int, score_alone: bool = False) -> None:
        self.patience, self.score_alone = patience, score_alone
        self.best_loss = math.inf
        self.best_score = -math.inf
        self.waited = 0

    def update(self, loss: float, score: float) -> bool:
        """Takes an epoch's figures; True if this is now the epoch that counts. NaN is worse than any number."""
        loss, score = math.inf if math.isnan(loss) else loss, -math.inf if math.isnan(score) else score
        if self.score_alone:
            keep = better = score > self.best_score or (score == self.best_score and loss < self.best_loss)
            self.best_loss = loss if keep else self.best_loss
        else:
            keep = loss <= self.best_loss and score >= self.best_score
            better = loss < self.best_loss or score > self.best_score
            self.best_loss = min(loss, self.best_loss)
        self.best_score = max(score, self.best_score)
        self.waited = 0 if better else self.waited + 1
        return keep

    @property
    def stop(self) -> bool:
        return self.waited >= self.patience
