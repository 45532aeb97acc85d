"""Optuna and the storage of a study, whose errors become sentences."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asgat.errors import AsgatError

try:
    import optuna as optuna
    from sqlalchemy import exc
    from sqlalchemy.engine import URL
except ImportError:
    raise AsgatError("A search needs Optuna; install it with `pip install 'asgat[tune]'`.") from None

optuna.logging.set_verbosity(optuna.logging.ERROR)


def file_url(path: Path) -> str:
    """The storage URL of a SQLite file; Optuna takes braces for a template."""
    return URL.create("sqlite", database=str(path)).render_as_string().replace("{", "{{").replace("}", "}}")


def open_storage(url: str) -> optuna.storages.RDBStorage:
    """Opens Optuna's storage at a URL, for example ``sqlite:///study.db``."""
    scheme, _, rest = url.partition("://")
    shown = f"{scheme}://…" if rest else url  # without a password
    with storage_errors():
        try:
            return _create(url)
        except ImportError as error:
            missing = getattr(error.__cause__, "name", None) or "its driver"
            raise AsgatError(f"--storage {shown} needs the package {missing}, which is not installed.") from None
        except (exc.ArgumentError, ValueError, LookupError):
            raise AsgatError(
                f"--storage {shown} is not a URL of a database that Optuna can use, for example sqlite:///study.db."
            ) from None
        except RuntimeError as error:  # tables of another version of Optuna
            raise AsgatError(f"The storage of the study cannot be used: {error}") from None


def _create(url: str, tries: int = 3) -> optuna.storages.RDBStorage:
    """The storage; again if it failed, as it does while another process creates the tables."""
    try:
        return optuna.storages.RDBStorage(url)
    except (exc.DBAPIError, optuna.exceptions.StorageInternalError):
        if tries == 1:
            raise
    time.sleep(1.0)
    return _create(url, tries - 1)


@contextmanager
def storage_errors() -> Iterator[None]:
    """Errors of the database, such as a lost connection or a full disk, become a sentence."""
    try:
        yield
    except (exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        cause: BaseException = error
        while cause.__cause__:
            cause = cause.__cause__
        reason = str(cause).strip().partition("\n")[0].rstrip(".")
        raise AsgatError(f"The storage of the study cannot be used: {reason}. Choose another --storage.") from error
