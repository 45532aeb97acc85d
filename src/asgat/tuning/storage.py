"""Storage of a study: a journal file, or a database that several machines share."""

import json
import os
import time
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock

from asgat.errors import AsgatError
from asgat.files.raw_file import check_regular

try:
    import optuna as optuna
    from optuna.storages import BaseStorage, JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend
except ImportError:
    raise AsgatError("A search needs Optuna; install it with `pip install 'asgat[tune]'`.") from None

optuna.logging.set_verbosity(optuna.logging.ERROR)
TRIES = 10
BEGINNING = b'{"op_code":'  # of every journal


def open_storage(place: str) -> BaseStorage:
    """Opens a storage, given the path of a journal file or the URL of a database such as PostgreSQL."""
    if "://" in place:
        return _database(place)
    path = Path(place)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_regular(path)
        if path.exists():
            with path.open("rb") as file:
                first = file.readline()
            incomplete = not first.endswith(b"\n") and first[: len(BEGINNING)] == BEGINNING[: len(first)]
            if not incomplete and "op_code" not in json.loads(first):
                raise ValueError
        storage = JournalStorage(Journal(path))
        for study in storage.get_all_studies():
            storage.get_all_trials(study._study_id)  # values nested too deeply can be read, but not copied
        return storage
    except OSError as error:
        raise AsgatError(f"{path} cannot be written: {error.strerror}. Choose another --storage.") from error
    except AsgatError:
        raise
    except Exception:  # Optuna replays the whole journal, and an invalid line may raise anything
        raise AsgatError(f"{path} is not a journal of a search; choose another --storage.") from None


def workers_folder(place: str) -> Path | None:
    """The folder with the locks of a journal's workers; None for a database."""
    return None if "://" in place else Path(f"{place}.workers")


def _database(url: str) -> BaseStorage:
    from sqlalchemy import exc
    from sqlalchemy.pool import NullPool  # queries are rare: no connection is kept open between them

    scheme, rest = url.split("://", 1)
    if scheme in ("postgres", "postgresql"):
        scheme = "postgresql+psycopg"
    error: Exception | None = None
    for _ in range(TRIES):
        try:
            return RDBStorage(f"{scheme}://{rest}", engine_kwargs={"poolclass": NullPool})
        except ImportError:
            if scheme == "postgresql+psycopg":
                raise AsgatError(
                    "PostgreSQL needs the driver psycopg; install it with `pip install 'asgat[postgres]'`."
                ) from None
            raise AsgatError(f"The driver of {scheme} is not installed; use a journal file or PostgreSQL.") from None
        except (exc.ArgumentError, exc.NoSuchModuleError, ValueError):
            raise AsgatError(f"--storage {scheme}://… is not a supported database; use postgresql://…") from None
        except exc.OperationalError as refused:
            reason = str(refused.orig).strip().splitlines()[0]
            raise AsgatError(f"The database of --storage cannot be reached: {reason}") from None
        except exc.DBAPIError as raced:  # another worker is creating the tables
            error = raced
            time.sleep(0.5)
    raise AsgatError(f"The database of --storage cannot be used: {error}")


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
