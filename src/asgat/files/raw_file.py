"""The bytes of a file that somebody else made, and the error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from asgat.errors import AsgatError, brief


@dataclass(frozen=True)
class RawFile:
    """The bytes of a file and the path to name when they turn out to be wrong."""

    path: Path
    content: bytes

    def failure(self, reason: str) -> AsgatError:
        """The error for content that is not what the reader expects."""
        return AsgatError(f"{self.path} is damaged: {brief(reason)}. Delete it and run again.")

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn every exception inside into an `AsgatError` that names this file.

        Any exception a reader raises, numpy's and the standard library's alike, means that the content is bad.
        """
        try:
            yield
        except AsgatError as error:
            if str(self.path) in str(error):
                raise
            raise AsgatError(f"{self.path}: {error}") from error
        except Exception as error:
            raise self.failure(f"{type(error).__name__}: {error}") from error


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of a regular file; at most ``limit + 1`` bytes are read, so that a longer file is noticed.

    Pipes and devices are refused: they could block, or never end.
    """
    if path.exists() and not path.is_file():
        raise AsgatError(f"{path} is not a regular file; replace it by one, or name another.")
    with path.open("rb") as stream:
        return stream.read(min(limit, path.stat().st_size) + 1)
