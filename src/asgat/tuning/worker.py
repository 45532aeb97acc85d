"""How workers of a search see that another is dead: by its file lock, which ends with it, or by old time stamps."""

import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from asgat.errors import AsgatError
from asgat.tuning.storage import optuna

KEY = "beat"  # the user attribute of a trial that holds its last time stamp


class Worker:
    """One worker of a study whose workers share a folder with one lock each, or only a database (None)."""

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self.host = socket.gethostname()
        self.name = f"{secrets.token_hex(8)}@{self.host}"  # with the host, as locks are only trusted on one machine

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Other workers see this worker as alive while the body runs."""
        if self.folder is None:
            yield
            return
        path = self._file(self.name)
        with _held(path):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    def is_dead(self, name: str | None) -> bool:
        """Whether the worker of this name is known to be dead; False if that cannot be known."""
        if self.folder is None or name is None or not name.endswith(f"@{self.host}") or name == self.name:
            return False
        path = self._file(name)
        if not path.exists():
            return True
        try:
            with FileLock(path, timeout=0):
                path.unlink(missing_ok=True)
            return True
        except (Timeout, OSError):
            return False

    @contextmanager
    def exclusive(self) -> Iterator[bool]:
        """Only one worker of the folder runs such a body at a time; gives False if there is no folder."""
        if self.folder is None:
            yield False
            return
        with _held(self.folder / "all.lock"):
            yield True

    def _file(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name.partition('@')[0]}.lock"


@contextmanager
def _held(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        lock.acquire()
    except OSError as error:
        raise AsgatError(f"{path} cannot be written: {error.strerror}. Choose another --storage.") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def heartbeat(trials: list[optuna.Trial], seconds: float) -> Iterator[None]:
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


def stamp(trial: optuna.Trial) -> None:
    trial.set_user_attr(KEY, time.time())


def last_stamp(trial: optuna.trial.FrozenTrial) -> float:
    """The last time stamp of a trial, or when it started."""
    start = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
    return max(start, float(trial.user_attrs.get(KEY, 0.0)))
