"""Files a user hands over: read whole, within a bound, and named when they turn out to be wrong."""

from __future__ import annotations

from pathlib import Path

from asgat.errors import AsgatError, brief
from asgat.files.raw_file import RawFile

MAX_FILE_BYTES = 256 * 2**20  # as Python objects a text of that size can take ten times as much


class UserFile(RawFile):
    """The bytes of a file of the user's."""

    def failure(self, reason: str) -> AsgatError:
        return AsgatError(f"{self.path} cannot be used: {brief(reason)}.")


def read_user_file(path: Path | str, limit: int = MAX_FILE_BYTES) -> UserFile:
    """Reads a file, or says in a sentence why it cannot be read.

    Args:
        path: the file.
        limit: the most bytes it may have.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise AsgatError(f"{path} is a folder; name the file in it.")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise AsgatError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # a null byte in the name
        raise AsgatError(f"{str(path)!r} is no name of a file: {error}.") from error
    file_read = UserFile(path, content)
    if len(content) > limit:
        raise file_read.failure(f"it has more than the {limit >> 20} MiB that are read at most")
    if not content:
        raise file_read.failure("it is empty")
    return file_read
