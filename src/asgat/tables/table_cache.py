"""Candidate tables that were built before: on disk, found by what they were made of."""

import hashlib
import json
import logging
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from asgat.errors import AsgatError
from asgat.files.lock import LockedError, locked
from asgat.tables.candidate_table import CandidateTable, Progress
from asgat.tables.stored_table import HEADER, DamagedTableError, StoredTable, join_tables, read_table, write_table
from asgat.tables.table_settings import TableSettings

log = logging.getLogger(__name__)

FOLDER_VARIABLE, SIZE_VARIABLE = "ASGAT_CACHE_DIR", "ASGAT_CACHE_GB"
DEFAULT_GB = 20.0
CONTENT = 1  # raise it when a builder computes other rows
WORTH_SECONDS = 1.0  # what is built faster is not stored
PART_SECONDS, PART_BYTES = 10.0, 64 << 20  # what is lost of a build that is killed, and what of it is in memory
_BUILDING = ".building"

BuildRows = Callable[[range, Progress], CandidateTable]  # of some rows, reporting how many of them are done


@dataclass(frozen=True)
class TableRecipe:
    """What a table is made of, and so its name: graph, settings, the kind of device and the rows it holds.

    Attributes:
        graph: :attr:`asgat.graph.Graph.digest`.
        num_nodes, num_entries: of the graph.
        settings: of the table.
        lambda_max: of the matrix X.
        device: kind of device it is built on, whose rounding may differ.
        rows: the rows, all by default; the part of a rank.
    """

    graph: str
    num_nodes: int
    num_entries: int
    settings: TableSettings
    lambda_max: float = 2.0
    device: str = "cpu"
    rows: range | None = None

    def describe(self) -> dict[str, Any]:
        device = {} if self.settings.builder == "truncated" else {"device": self.device}
        part = {} if self.rows is None else {"rows": [self.rows.start, self.rows.stop]}
        sizes = {"graph": self.graph, "nodes": self.num_nodes, "entries": self.num_entries}
        return {"content": CONTENT, **sizes, **self.settings.to_dict(), "lambda_max": self.lambda_max, **device, **part}

    @property
    def name(self) -> str:
        return hashlib.sha256(json.dumps(self.describe()).encode()).hexdigest()[:32]

    @property
    def seconds(self) -> float:
        """About what it takes to build."""
        return len(self.chosen) * self.settings.seconds_per_row(self.num_nodes, self.num_entries)

    @property
    def bytes(self) -> int:
        """About the most it takes on disk."""
        return len(self.chosen) * self.settings.bytes_per_row

    @property
    def chosen(self) -> range:
        return range(self.num_nodes) if self.rows is None else self.rows

    def parts(self) -> list[range]:
        """The rows in parts that are built one after the other."""
        per_row = self.settings.seconds_per_row(self.num_nodes, self.num_entries)
        size = max(64, min(int(PART_SECONDS / per_row), PART_BYTES // self.settings.bytes_per_row))
        rows = self.chosen
        return [rows[start : start + size] for start in range(0, len(rows), size)]


@dataclass(frozen=True)
class Entry:
    """A table in the cache: ``about`` says what it was made of; a build that has not ended is not ``finished``."""

    path: Path
    bytes: int
    used: float
    finished: bool
    about: Mapping[str, Any]


class TableCache:
    """A folder of tables with a limit on its size: those used longest ago are removed first.

    Tables are built in parts, which are stored as they are done: a killed build resumes with the next part, and
    several processes that need the same table build different parts of it. What is damaged is built again.

    Args:
        folder: by default ``$ASGAT_CACHE_DIR``, or ``asgat/tables`` in ``$XDG_CACHE_HOME`` or ``~/.cache``.
        limit: bytes; by default ``$ASGAT_CACHE_GB`` gigabytes, or 20. Nothing is stored with 0.
    """

    def __init__(self, folder: Path | None = None, limit: int | None = None) -> None:
        self.folder = default_folder() if folder is None else folder
        self.limit = default_limit() if limit is None else limit

    def usable(self) -> bool:
        """Whether tables can be stored; if not, that is reported and they are built in memory."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if os.access(self.folder, os.W_OK):
                return True
            reason = "Permission denied"
        except OSError as error:
            reason = str(error.strerror)
        log.warning("Tables are not stored, because %s cannot be written: %s.", self.folder, reason)
        return False

    def find(self, recipe: TableRecipe) -> CandidateTable | None:
        """The table if it is stored and undamaged; rows of a rank may also come from a stored table of all rows."""
        for name, rows in {recipe.name: None, replace(recipe, rows=None).name: recipe.rows}.items():
            path = self.folder / name
            if not (path / HEADER).is_file():
                continue
            try:
                table = read_table(path, rows)
                os.utime(path / HEADER)
                return table
            except (DamagedTableError, OSError) as error:
                log.warning("A stored table is built again: %s", error)
                _remove(path)
        return None

    def build(self, recipe: TableRecipe, build: BuildRows, progress: Progress | None = None) -> CandidateTable:
        """Builds a table on disk, or resumes a build that was interrupted, and returns it."""
        final, building = self.folder / recipe.name, self._building(recipe)
        while not final.exists():
            try:
                self._build_parts(recipe, build, progress)
                with locked(building, wait=True):
                    self._join(recipe)
            except DamagedTableError as error:
                log.warning("A part of a stored table is built again: %s", error)
                _remove(error.folder)
            except (OSError, AsgatError) as error:
                if final.exists():  # another process has finished it, and removed what this one was looking at
                    break
                if isinstance(error, AsgatError):
                    raise
                raise AsgatError(
                    f"A table cannot be stored in {self.folder}: {error.strerror or error}. Free some space, set "
                    f"{FOLDER_VARIABLE} to another folder, or {SIZE_VARIABLE}=0 to store none."
                ) from error
        shutil.rmtree(building, ignore_errors=True)
        self.shrink(keep=recipe.name)
        table = self.find(recipe)
        if table is None:
            raise AsgatError(f"The table that was just written to {self.folder} is missing or damaged; check the disk.")
        return table

    def _building(self, recipe: TableRecipe) -> Path:
        return self.folder / f"{recipe.name}{_BUILDING}"

    def _build_parts(self, recipe: TableRecipe, build: BuildRows, progress: Progress | None) -> None:
        """Builds the parts that no other process is building; then waits for those, and builds what they left out."""
        folder, final, parts = self._building(recipe), self.folder / recipe.name, recipe.parts()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "about.json").write_text(json.dumps(recipe.describe()))
        resumed = sum(_part(folder, number).exists() for number in range(len(parts)))
        if resumed:
            log.info("%d of %d parts of the table were built before", resumed, len(parts))

        def report(before: int, done: int = 0, _: int = 0) -> None:
            if progress is not None:
                progress(before + done, len(recipe.chosen))

        for wait in (False, True):
            done = 0
            for number, rows in enumerate(parts):
                done += len(rows)
                if final.exists():
                    return
                try:
                    with locked(folder / f"claim-{number:05d}", wait=wait):
                        if not _part(folder, number).exists() and not final.exists():
                            write_table(_part(folder, number), build(rows, partial(report, done - len(rows))), {})
                except LockedError:
                    continue
                report(done)

    def _join(self, recipe: TableRecipe) -> None:
        folder, final = self._building(recipe), self.folder / recipe.name
        if not final.exists():
            joined = folder / "joined"
            shutil.rmtree(joined, ignore_errors=True)
            join_tables(joined, [_part(folder, i) for i in range(len(recipe.parts()))], recipe.describe())
            joined.rename(final)

    def entries(self) -> list[Entry]:
        """What is stored, used last first."""
        found = []
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if not path.is_dir():
                continue
            finished = not path.name.endswith(_BUILDING)
            try:
                header = path / HEADER if finished else path / "about.json"
                about = StoredTable.read(path).about if finished else json.loads(header.read_text())
                used = header.stat().st_mtime
            except (OSError, ValueError, AsgatError):
                about, used = {}, 0.0
            found.append(Entry(path, _size(path), used, finished, about))
        return sorted(found, key=lambda entry: -entry.used)

    def shrink(self, keep: str = "") -> None:
        """Removes what was used longest ago until the limit is kept; what is being built or used stays."""
        total = 0
        for entry in self.entries():
            total += entry.bytes
            if total > self.limit and entry.path.name != keep and self._idle(entry):
                total -= entry.bytes
                _remove(entry.path)

    def clear(self) -> int:
        """Removes everything that is not being built; returns the bytes that were freed."""
        freed = 0
        for entry in self.entries():
            if self._idle(entry):
                freed += entry.bytes
                _remove(entry.path)
        return freed

    def _idle(self, entry: Entry) -> bool:
        """Whether no process builds it: a claim is held while a part is built."""
        if entry.finished:
            return True
        try:
            for place in (entry.path, *entry.path.glob("claim-*")):
                with locked(place):
                    pass
        except LockedError:
            return False
        return True


def cached_table(
    recipe: TableRecipe,
    matrix: Callable[[], Any],
    places: Sequence[TableCache],
    progress: Progress | None = None,
) -> CandidateTable:
    """The table from the first place that has it; otherwise it is built, in the last place unless that takes a second.

    Args:
        recipe: what it is made of.
        matrix: returns X for the builders; called only if the table is not there.
        places: where to look.
        progress: called with the number of rows built and the number of all rows.
    """
    if recipe.seconds >= WORTH_SECONDS:
        for place in places:
            if (table := place.find(recipe)) is not None:
                return table
        last = places[-1]
        if recipe.bytes <= last.limit and last.usable():
            return last.build(recipe, rows_builder(recipe, matrix()), progress)
    return recipe.settings.build(matrix(), recipe.rows, recipe.device, progress)


def rows_builder(recipe: TableRecipe, matrix: Any) -> BuildRows:
    """Builds rows of the table of X, which is prepared once."""
    prepared = recipe.settings.prepare(matrix)
    return lambda rows, progress: recipe.settings.build(prepared, rows, recipe.device, progress)


def caches_for(folder: Path | None) -> list[TableCache]:
    """Where tables of a graph are: next to it, if it stays in a folder on disk, and in the cache of the user."""
    return [*([] if folder is None else [tables_next_to(folder)]), TableCache()]


def tables_next_to(folder: Path) -> TableCache:
    """The tables next to a graph on disk, without a limit."""
    return TableCache(folder / "tables", sys.maxsize)


def default_folder() -> Path:
    """``$ASGAT_CACHE_DIR``, or ``asgat/tables`` in the user's folder for caches."""
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "asgat" / "tables"


def default_limit() -> int:
    """Bytes by ``$ASGAT_CACHE_GB``, or 20 gigabytes."""
    text = os.environ.get(SIZE_VARIABLE, "")
    try:
        size = float(text) if text else DEFAULT_GB
        return max(0, int(size * 1e9))
    except (ValueError, OverflowError):
        raise AsgatError(f"{SIZE_VARIABLE} must be a number of gigabytes, such as 20, not {text!r}.") from None


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}"


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total


def _remove(folder: Path) -> None:
    """Removes a folder so that no other process finds a part of it."""
    removed = folder.parent / f".{folder.name}.{secrets.token_hex(8)}"
    try:
        folder.rename(removed)
    except OSError:
        removed = folder
    shutil.rmtree(removed, ignore_errors=True)
