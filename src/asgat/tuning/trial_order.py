"""The position of trials in a study: a retry takes the position of the trial it repeats.

Failed trials stay in an Optuna study, and their settings are queued again as new trials. Positions count each setting
once, so that a search that was interrupted has the same positions as one that was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

RETRY_OF = "retry_of"  # user attribute: number of the failed trial that this one repeats
SURPLUS = "surplus"  # user attribute: begun at the same time as another worker's last trial, and discarded


def position(trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> int:
    """The position of a trial among all trials of the study."""
    while (before := trial.user_attrs.get(RETRY_OF)) is not None:
        trial = trials[before]
    return sum(map(_is_original, trials[: trial.number]))


def next_position(trials: Sequence[FrozenTrial]) -> int:
    """The position of the trial that is asked for next: the first in the queue, or a new one."""
    waiting = next((trial for trial in trials if trial.state.name == "WAITING"), None)
    return sum(map(_is_original, trials)) if waiting is None else position(waiting, trials)


def unqueued(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Failed trials whose settings have not been queued again."""
    retried = {trial.user_attrs.get(RETRY_OF) for trial in trials}
    failed = [trial for trial in trials if trial.state.name == "FAIL" and not trial.user_attrs.get(SURPLUS)]
    return [trial for trial in failed if trial.number not in retried]


def out_of_order(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Trials of the queue that must be queued again, in this order, for the queue to be in the order of positions."""
    waiting = [trial for trial in trials if trial.state.name == "WAITING"]
    positions = [position(trial, trials) for trial in waiting]
    first = next((i for i in range(1, len(positions)) if positions[i] < max(positions[:i])), None)
    if first is None:
        return []
    late = [pair for pair in zip(positions, waiting, strict=True) if pair[0] > min(positions[first:])]
    return [trial for _, trial in sorted(late, key=lambda pair: pair[0])]


def _is_original(trial: FrozenTrial) -> bool:
    return RETRY_OF not in trial.user_attrs and not trial.user_attrs.get(SURPLUS)
