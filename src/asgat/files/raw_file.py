"""The bytes of a file that somebody else made, and the error that names it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from asgat.errors import AsgatError, brief
from asgat.memory import check_memory

ANY_SIZE = sys.maxsize - 1  # the free memory decides


@dataclass(frozen=True)
class RawFile:
    """The bytes of a file and the path to name when they turn out to be wrong."""

    path: Path
    content: bytes

    @classmethod
    def read(cls, path: Path, limit: int = ANY_SIZE) -> Self:
        """Reads a regular file of at most ``limit`` bytes."""
        try:
            check_regular(path)
            with path.open("rb") as stream:
                size = min(limit, path.stat().st_size) + 1
                check_memory(size, str(path))
                content = stream.read(size)
        except OSError as error:
            raise AsgatError(f"{path} cannot be read: {error.strerror}; check its name and permissions.") from error
        file = cls(path, content)
        if len(content) > limit:
            raise file.failure(f"it is larger than {limit >> 20} MiB, the most that is read")
        return file

    def failure(self, reason: str) -> AsgatError:
        """The error for content that is not what the reader expects."""
        return AsgatError(f"{self.path} is damaged: {brief(reason)}. Delete it and run again.")

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turns any exception inside, a sign of bad content, into an `AsgatError` that names this file."""
        try:
            yield
        except AsgatError as error:
            if str(self.path) in str(error):
                raise
            raise AsgatError(f"{self.path}: {error}") from error
        except Exception as error:
            raise self.failure(f"{type(error).__name__}: {error}") from error


def check_regular(path: Path) -> None:
    """Refuses folders, and pipes and devices, which could block or never end; a missing file passes."""
    if path.is_dir():
        raise AsgatError(f"{path} is a folder; name the file in it.")
    if path.exists() and not path.is_file():
        raise AsgatError(f"{path} is not a regular file; replace it by one, or name another.")
