"""One writer at a time: a lock on a folder, released when the process that holds it ends for whatever reason."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from asgat.errors import AsgatError

LOCK_FILE = ".lock"


class LockedError(AsgatError):
    """Another process is writing the folder."""


@contextmanager
def locked(folder: Path | str, wait: bool = False, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Locks a folder, created if needed, while the body runs; readers need no lock. Reentrant within a thread.

    With ``wait`` it calls ``waiting`` and waits for another process to end, instead of raising :class:`LockedError`.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.resolve() / LOCK_FILE, is_singleton=True)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            if not wait:
                writing = f"Another process is writing {path}; wait until it has ended, or choose another --out."
                raise LockedError(writing) from None
            if waiting:
                waiting()
            lock.acquire()
    except OSError as error:
        raise AsgatError(f"{path} cannot be written: {error.strerror}. Choose another place.") from error
    try:
        yield
    finally:
        lock.release()
