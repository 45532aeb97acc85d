"""Storage of a study: a journal file, or a database that several machines share."""

from __future__ import annotations

import json
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asgat.errors import AsgatError
from asgat.files.raw_file import check_regular

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

TRIES = 10
BEGINNING = b'{"op_code":'  # of every journal


def import_optuna() -> Any:
    """Optuna without its log messages, or an error that names the extra."""
    try:
        optuna = import_module("optuna")
    except ImportError:
        raise AsgatError("A search needs Optuna; install it with `pip install 'asgat[tune]'`.") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def open_storage(place: str) -> BaseStorage:
    """Opens a storage, given the path of a journal file or the URL of a database such as PostgreSQL."""
    import_optuna()
    if "://" in place:
        return _database(place)
    from optuna.storages import JournalStorage

    from asgat.tuning.journal import Journal

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
    from optuna.storages import RDBStorage
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
