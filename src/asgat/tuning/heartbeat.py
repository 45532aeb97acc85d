"""Time stamps by which other workers see that a trial is still being trained."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.trial import FrozenTrial

KEY = "beat"  # the user attribute of a trial that holds the stamp


class Heartbeat:
    """Renews the time stamps of running trials every few seconds while the body runs."""

    def __init__(self, trials: list[Trial], seconds: float) -> None:
        self.trials, self.seconds = trials, seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def _renew(self) -> None:
        while not self._stop.wait(self.seconds):
            for trial in self.trials:
                try:
                    stamp(trial)
                except Exception:  # failed by another worker, or the database is unreachable for a moment
                    continue

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def stamp(trial: Trial) -> None:
    """Sets the time stamp of a trial to now."""
    trial.set_user_attr(KEY, time.time())


def last_stamp(trial: FrozenTrial) -> float:
    """The last time stamp of a trial, or when it started."""
    start = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
    return max(start, float(trial.user_attrs.get(KEY, 0.0)))
