"""Tables out of files: CSV, TSV, Parquet and npz, by their ending."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from asgat.errors import AsgatError, suggest
from asgat.files.npz import read_npz
from asgat.files.user_file import MAX_FILE_BYTES, UserFile, read_user_file
from asgat.tabular.column import Column

MAX_CELLS = 200_000_000
MAX_COLUMNS = 1_000_000
MAX_UNPACKED_BYTES = 8 * MAX_FILE_BYTES
ENDINGS = (".csv", ".tsv", ".parquet", ".npz", ".graphml")
# How files begin, for those whose ending says something else.
SIGNATURES = {
    b"PAR1": ("a Parquet file", ".parquet"),
    b"PK\x03\x04": ("a zip archive, as .npz and spreadsheets are", ".npz"),
    b"\x1f\x8b": ("compressed by gzip; unpack it first", ""),
    b"\xff\xfe": ("in UTF-16; save it as UTF-8", ""),
    b"\xfe\xff": ("in UTF-16; save it as UTF-8", ""),
    b"\xd0\xcf\x11\xe0": ("an Office document; save it as CSV", ""),
    b"%PDF": ("a PDF", ""),
    b"SQLite format": ("an SQLite database; export the table as CSV", ""),
}


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length by name.

    Args:
        columns: the columns.
        source: where they come from, for errors.
        notes: what had to be done to read them, in sentences.
    """

    columns: dict[str, Column]
    source: str
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def column(self, name: str, option: str = "") -> Column:
        """A column by name, or an error that names those there are."""
        if name not in self.columns:
            asked = f" ({option})" if option else ""
            raise AsgatError(f"{self.source} has no column {name!r}{asked}. {suggest(name, _shown(self.columns))}")
        return self.columns[name]


def _shown(names: Any) -> list[str]:
    names = list(names)
    return names if len(names) <= 30 else [*names[:30], f"… ({len(names)} in all)"]


def read_table(path: Path | str) -> Table:
    """Reads a file as its ending says."""
    path = Path(path)
    readers: dict[str, Callable[[UserFile], Table]] = {
        ".csv": lambda raw: read_text(raw, ","),
        ".tsv": lambda raw: read_text(raw, "\t"),
        ".parquet": read_parquet,
        ".npz": read_arrays,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise AsgatError(
            f"{path} ends in {path.suffix or 'nothing'!r}; files that can be read end in {_list(ENDINGS)}."
        )
    raw = read_user_file(path)
    check_signature(raw)
    with raw.guard():
        return reader(raw)


def check_signature(raw: UserFile) -> None:
    """Refuses a file that begins like one of another kind than its ending says."""
    ending = raw.path.suffix.lower()
    for start, (kind, own) in SIGNATURES.items():
        if raw.content.startswith(start) and ending != own:
            raise raw.failure(f"it ends in {ending} but is {kind}")
    for own, start in ((".parquet", b"PAR1"), (".npz", b"PK")):
        if ending == own and not raw.content.startswith(start):
            raise raw.failure(f"it ends in {ending} but is no such file")


# -- text ---------------------------------------------------------------------------------------------------------


def read_text(raw: UserFile, delimiter: str) -> Table:
    """A table of text with a heading; semicolons and tabs are noticed where a heading has no comma."""
    text = decode(raw)
    notes = []
    heading = text.split("\n", 1)[0]
    for other, name in ((";", "semicolons"), ("\t", "tabs"), (",", "commas")):
        if delimiter not in heading and other in heading:
            delimiter = other
            notes.append(f"{raw.path.name} is separated by {name}.")
            break
    if heading.count(delimiter) >= MAX_COLUMNS:
        raise raw.failure(f"it has more than the {MAX_COLUMNS:,} columns that are read at most")
    rows = _rows(raw, text, delimiter)
    names = [name.strip() for name in next(rows, [])]
    if not any(names):
        raise raw.failure("its first line names no column")
    named = [name for name in names if name]
    twice = next((name for name in named if named.count(name) > 1), None) if len(set(named)) < len(named) else None
    if twice is not None:
        raise raw.failure(f"two columns are called {twice!r}")
    cells: list[list[str]] = [[] for _ in names]
    seen: dict[str, str] = {}  # equal texts are kept once
    for row in rows:
        for cell, column in zip(map(seen.setdefault, row, row), cells, strict=True):
            column.append(cell)
    if not cells[0]:
        raise raw.failure("it has a heading but no row")
    if len(named) < len(names):
        notes.append(f"Left out a column without a name of {raw.path.name}.")
    columns = {name: Column.of_texts(name, cell) for name, cell in zip(names, cells, strict=True) if name}
    return Table(columns, raw.path.name, notes)


def decode(raw: UserFile) -> str:
    """The text of a file in UTF-8."""
    try:
        text = raw.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.content.count(b"\n", 0, error.start) + 1
        raise raw.failure(
            f"line {line} holds the byte 0x{raw.content[error.start]:02x}, which is not UTF-8; save it in UTF-8, as "
            f"with `iconv -f latin1 -t utf-8`"
        ) from error
    if "\0" in text:
        raise raw.failure("it holds null bytes, so it is no text; check what kind of file it is")
    return text


def _rows(raw: UserFile, text: str, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    width = None
    try:
        for row in reader:
            if not row or (len(row) == 1 and not row[0].strip() and width != 1):
                continue
            if width is not None and len(row) != width:
                raise raw.failure(f"line {reader.line_num} has {len(row)} fields, but the heading has {width}")
            width = len(row)
            yield row
    except csv.Error as error:
        raise raw.failure(f"line {reader.line_num} is no proper line of a table: {error}") from error


# -- parquet and npz ----------------------------------------------------------------------------------------------


def read_parquet(raw: UserFile) -> Table:
    """A Parquet file with columns of numbers, truth values and texts."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise AsgatError("Parquet needs pyarrow; install it with `pip install 'asgat[tables]'`.") from None
    held = pq.ParquetFile(io.BytesIO(raw.content))
    if held.metadata.num_rows * held.metadata.num_columns > MAX_CELLS:
        raise raw.failure(f"it has more than {MAX_CELLS:,} cells, which is more than is read at most")
    if not held.metadata.num_rows:
        raise raw.failure("it has no row")
    groups = [held.metadata.row_group(i) for i in range(held.metadata.num_row_groups)]
    unpacked = sum(group.column(i).total_uncompressed_size for group in groups for i in range(group.num_columns))
    if unpacked > MAX_UNPACKED_BYTES:
        raise raw.failure(f"it unpacks to more than the {MAX_UNPACKED_BYTES >> 20} MiB that are read at most")
    # A text that is stored once and named in every row is to be in memory once, too.
    texts_of = [field.name for field in held.schema_arrow if _is_text(pa, field.type)]
    stored = pq.ParquetFile(io.BytesIO(raw.content), read_dictionary=texts_of).read()
    twice = next((name for name in stored.column_names if stored.column_names.count(name) > 1), None)
    if twice is not None:
        raise raw.failure(f"two columns are called {twice!r}")
    columns = {}
    for name, column in zip(stored.column_names, stored.columns, strict=True):
        if name.startswith("__index_level_"):  # a data frame's row numbers
            continue
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if kind == column.type and (number or pa.types.is_boolean(kind)):
            missing = column.is_null().to_numpy()
            columns[name] = Column.of_array(name, column.fill_null(False if not number else 0).to_numpy(), missing)
        elif _is_text(pa, kind) or number or pa.types.is_decimal(kind) or pa.types.is_null(kind):
            columns[name] = Column.of_objects(name, _shared_objects(pa, column))
        else:
            raise raw.failure(f"the column {name!r} holds {kind}; give one number or word per row")
    return Table(columns, raw.path.name)


def _is_text(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _shared_objects(pa: Any, column: Any) -> Iterator[Any]:
    """The values of a column as Python objects, equal ones of a dictionary the same object."""
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):
            words = [*chunk.dictionary.to_pylist(), None]
            yield from (words[i] for i in chunk.indices.fill_null(len(words) - 1).to_pylist())
        else:
            yield from chunk.to_pylist()


def read_arrays(raw: UserFile) -> Table:
    """The arrays of an npz archive that have a value per row; [N, F] gives F columns.

    Rows are those of the longest array of one dimension. Edges and masks are no columns.
    """
    arrays = read_npz(raw, None, MAX_FILE_BYTES * 8)
    arrays = {name: array for name, array in arrays.items() if not _is_edges(name) and not _is_mask(name)}
    lengths = [len(array) for array in arrays.values() if array.ndim in (1, 2)]
    if not lengths:
        raise raw.failure("it has no array with a value per node")
    rows = max(lengths)
    columns: dict[str, Column] = {}
    for name, array in arrays.items():
        if array.ndim == 1 and len(array) == rows:
            columns[name] = Column.of_array(name, array)
        elif array.ndim == 2 and len(array) == rows:
            for i in range(array.shape[1]):
                columns[f"{name}{i}"] = Column.of_array(f"{name}{i}", array[:, i])
    return Table(columns, raw.path.name)


def read_edge_arrays(raw: UserFile) -> Table:
    """The edges of an npz archive: ``edge_index`` or ``edges``, [2, E] or [E, 2], and perhaps ``weight``."""
    arrays = read_npz(raw, None, MAX_FILE_BYTES * 8)
    name = next((name for name in ("edge_index", "edges") if name in arrays), None)
    if name is None:
        raise raw.failure("it has no array edge_index or edges")
    ends = arrays[name]
    if ends.ndim != 2 or 2 not in ends.shape or ends.dtype.kind not in "iu":
        raise raw.failure(f"{name} must hold whole numbers of shape [2, E], but has {ends.dtype} {list(ends.shape)}")
    ends = ends if ends.shape[0] == 2 else ends.T
    columns = {role: Column.of_array(role, end) for role, end in zip(("source", "target"), ends, strict=True)}
    weight = next((name for name in ("edge_weight", "weight") if name in arrays), None)
    if weight is not None and arrays[weight].shape == (ends.shape[1],):
        columns["weight"] = Column.of_array("weight", arrays[weight])
    return Table(columns, raw.path.name)


def _is_edges(name: str) -> bool:
    return name in ("edge_index", "edges", "edge_weight", "weight", "ids", "id_ends", "num_classes")


def _is_mask(name: str) -> bool:
    return name in ("train", "val", "test") or name.endswith(("_mask", "_masks"))


def _list(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def frame_to_table(frame: Any, source: str) -> Table:
    """A pandas data frame as a table; its index is not part of it."""
    names = [str(name) for name in frame.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise AsgatError(f"Two columns of {source} are called {twice!r}.")
    columns = {}
    for name, key in zip(names, frame.columns, strict=True):
        series = frame[key]
        missing = np.asarray(series.isna(), dtype=bool)
        objects = [None if gone else value for value, gone in zip(series.tolist(), missing.tolist(), strict=True)]
        columns[name] = Column.of_objects(name, objects)
    return Table(columns, source)
