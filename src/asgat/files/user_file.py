"""Files a user provides: read whole, within bounds, and named when they turn out to be wrong."""

import gzip
import io
import json
import zlib
from pathlib import Path
from typing import Any

from asgat.errors import AsgatError, brief
from asgat.files.raw_file import RawFile
from asgat.memory import check_memory

MAX_FILE_BYTES = 256 * 2**20  # as Python objects a text of that size can take ten times as much
TEXT_BYTES = 10  # what a table takes in memory for each byte of its text
PACKED = (".csv", ".tsv", ".txt", ".graphml")  # endings of texts that may be followed by .gz


def ending_of(path: Path | str) -> str:
    """The ending that says how a file is read: ``.csv`` for ``a.CSV`` and for ``a.csv.gz``, packed by gzip."""
    path = Path(path)
    return Path(path.stem if is_packed(path) else path).suffix.lower()


def is_packed(path: Path) -> bool:
    """Whether a file's name says that it is a text packed by gzip."""
    return path.suffix.lower() == ".gz" and Path(path.stem).suffix.lower() in PACKED


class UserFile(RawFile):
    """The bytes of a file of the user's."""

    def failure(self, reason: str) -> AsgatError:
        return AsgatError(f"{self.path} cannot be used: {brief(reason)}.")

    def text(self) -> str:
        """The content as UTF-8, if what is made of it fits into the free memory."""
        check_memory(TEXT_BYTES * len(self.content), str(self.path))
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.content.count(b"\n", 0, error.start) + 1
            raise self.failure(
                f"line {line} holds the byte 0x{self.content[error.start]:02x}, which is not UTF-8; save it in UTF-8, "
                "as with `iconv -f latin1 -t utf-8`"
            ) from error
        if "\0" in text:
            raise self.failure("it holds null bytes, so it is not a text; check what kind of file it is")
        return text

    def json_object(self) -> dict[str, Any]:
        """The object it holds as JSON."""
        try:
            held = json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise self.failure(f"it is not JSON ({error})") from error
        if not isinstance(held, dict):
            raise self.failure("it does not hold an object")
        return held


def read_user_file(path: Path | str, limit: int = MAX_FILE_BYTES) -> UserFile:
    """Reads a file of at most ``limit`` bytes, or raises an error that says why it cannot be read.

    A text packed by gzip is unpacked, to at most as many.
    """
    try:
        file = UserFile.read(Path(path), limit)
    except AsgatError:
        raise
    except ValueError as error:
        raise AsgatError(f"{str(path)!r} is not a file name: {error}.") from error  # a null byte in the name
    file = _unpacked(file, limit) if is_packed(file.path) else file
    if not file.content:
        raise file.failure("it is empty")
    return file


def _unpacked(file: UserFile, limit: int) -> UserFile:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(file.content)) as stream:
            content = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise file.failure(f"it ends in .gz, but gzip cannot unpack it ({error})") from error
    if len(content) > limit:
        raise file.failure(f"it unpacks to more than {limit >> 20} MiB, the most that is read")
    return UserFile(file.path, content)
