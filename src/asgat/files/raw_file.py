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
        return AsgatError(f"{self.path} is damaged: {brief(reason)}. Delete it and run again to fetch it anew.")

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn whatever goes wrong inside into an `AsgatError` that names this file.

        A reader meets content somebody else made; any exception it can raise, numpy's and the standard
        library's alike, means that the content is bad.
        """
        try:
            yield
        except AsgatError as error:
            if str(self.path) in str(error):
                raise
            raise AsgatError(f"{self.path}: {error}") from error
        except Exception as error:
            raise self.failure(f"{type(error).__name__}: {error}") from error
