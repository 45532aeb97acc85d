"""A study's journal file that survives writers killed in the middle of a line."""

import json
import os
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock
from optuna.storages.journal import JournalFileBackend

from asgat.errors import AsgatError


class Journal(JournalFileBackend):
    """Optuna's journal with a lock that ends with its process, and without the half line a killed writer leaves.

    Optuna itself waits half a minute for the lock of a dead writer, and cannot read a journal in which a line was
    appended to half of another.
    """

    def __init__(self, path: Path | str) -> None:
        super().__init__(str(path))
        self.path = Path(path)
        self._mutex = FileLock(f"{path}.flock")

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Appends lines, all of them or none."""
        text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        try:
            with self._mutex, self.path.open("r+b") as file:
                end = _end_of_lines(file)
                file.truncate(end)
                try:
                    file.seek(end)
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                except BaseException:
                    os.truncate(self.path, end)
                    raise
        except OSError as error:
            raise AsgatError(
                f"{self.path} cannot be written: {error.strerror}. Free some space, or choose another --storage."
            ) from error


def _end_of_lines(file: BinaryIO) -> int:
    """The position after the last complete line."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 65536)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
