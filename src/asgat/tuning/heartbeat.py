"""Time stamps by which other workers see that a trial is still being trained."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.trial import FrozenTrial

KEY = "beat"  # the user attribute of a trial that holds the stamp


@contextmanager
def heartbeat(trials: list[Trial], seconds: float) -> Iterator[None]:
    """Renews the time stamps of running trials every few seconds while the body runs."""
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(seconds):
            for trial in trials:
                with suppress(Exception):  # finished by another worker, or the database is unreachable for a moment
                    stamp(trial)

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def stamp(trial: Trial) -> None:
    """Sets the time stamp of a trial to now."""
    trial.set_user_attr(KEY, time.time())


def last_stamp(trial: FrozenTrial) -> float:
    """The last time stamp of a trial, or when it started."""
    start = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
    return max(start, float(trial.user_attrs.get(KEY, 0.0)))
