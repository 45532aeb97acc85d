"""Whether a worker of a search still lives: it holds a lock that ends with it."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from asgat.errors import AsgatError


class Worker:
    """One worker of a study whose workers share a folder; without a folder nobody knows of anybody.

    Args:
        folder: where every worker has its lock; None where they share a database only.

    Attributes:
        name: by which others ask for it; the machine's is part of it, as locks are trusted on one machine only.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self.host = socket.gethostname()
        self.name = f"{secrets.token_hex(8)}@{self.host}"

    @contextmanager
    def alive(self) -> Iterator[None]:
        """While the body runs others see this worker alive."""
        if self.folder is None:
            yield
            return
        path = self._file(self.name)
        with _held(path):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    def gone(self, name: str | None) -> bool:
        """Whether the worker of this name is known to be gone; False where that cannot be known."""
        if self.folder is None or name is None or not name.endswith(f"@{self.host}"):
            return False
        if name == self.name:
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
    def alone(self) -> Iterator[bool]:
        """While the body runs no other worker of the folder is in such a body; False where that is not known."""
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
