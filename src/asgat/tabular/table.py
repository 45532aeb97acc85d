"""Tables from files, by their ending: CSV, TSV, Parquet and npz."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from asgat.errors import AsgatError, suggest
from asgat.files.npz import read_npz
from asgat.files.raw_file import ANY_SIZE
from asgat.files.user_file import MAX_FILE_BYTES, UserFile, ending_of, read_user_file
from asgat.memory import check_memory
from asgat.tabular.column import MASKS, Column

MAX_COLUMNS = 100_000
CELL_BYTES = 8
NUMBER_BYTES = 6  # that a number of an array takes beyond its own: whether it is missing, a float32, and a rest
ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".npz", ".graphml", ".graphml.gz")
# How files begin, to recognise those whose ending says something else.
SIGNATURES = {
    b"PAR1": ("a Parquet file", ".parquet"),
    b"PK\x03\x04": ("a zip archive, as .npz and spreadsheets are", ".npz"),
    b"\x1f\x8b": ("packed by gzip; add .gz to its name, or unpack it", ""),
    b"\xff\xfe": ("in UTF-16; save it as UTF-8", ""),
    b"\xfe\xff": ("in UTF-16; save it as UTF-8", ""),
    b"\xd0\xcf\x11\xe0": ("an Office document; save it as CSV", ""),
    b"%PDF": ("a PDF", ""),
    b"SQLite format": ("an SQLite database; export the table as CSV", ""),
}
# Arrays of an npz archive that are not columns of the nodes.
NOT_COLUMNS = {"edge_index", "edges", "edge_weight", "weight", "ids", "id_ends", "num_classes", "train", "val", "test"}


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length by name, the file's name for error messages, and what was done to read it."""

    columns: dict[str, Column]
    source: str
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def column(self, name: str, option: str = "") -> Column:
        """A column by name; the error for an unknown name lists those there are, numbered ones such as x17 last."""
        if name not in self.columns:
            known = sorted(self.columns, key=lambda heading: heading[-1:].isdecimal())
            known = known if len(known) <= 30 else [*known[:30], f"… ({len(known)} in all)"]
            asked = f" ({option})" if option else ""
            raise AsgatError(f"{self.source} has no column {name!r}{asked}. {suggest(name, known)}")
        return self.columns[name]


def read_table(path: Path | str, row_bytes: int = 0) -> Table:
    """Reads a file as its ending says; ``row_bytes`` beyond its cells count in the memory that is needed."""
    path = Path(path)
    ending = ending_of(path)
    if ending not in (".csv", ".tsv", ".parquet", ".npz"):
        listed = f"{', '.join(ENDINGS[:-1])} and {ENDINGS[-1]}"
        raise AsgatError(f"{path} ends in {path.suffix or 'nothing'!r}; files that can be read end in {listed}.")
    raw = open_checked(path)
    with raw.guard():
        if ending == ".npz":
            return _node_arrays(raw, read_npz(raw, None, number_bytes=NUMBER_BYTES), row_bytes)
        if ending == ".parquet":
            return read_parquet(raw, row_bytes)
        return read_text(raw, "\t" if ending == ".tsv" else ",")


def open_checked(path: Path | str) -> UserFile:
    """Reads a file, and refuses it if it begins like one of another kind than its ending says."""
    ending = ending_of(path)
    raw = read_user_file(path, ANY_SIZE if ending == ".npz" else MAX_FILE_BYTES)
    for start, (kind, expected) in SIGNATURES.items():
        if raw.content.startswith(start) and ending != expected:
            raise raw.failure(f"it ends in {ending} but is {kind}")
    for expected, start in ((".parquet", b"PAR1"), (".npz", b"PK")):
        if ending == expected and not raw.content.startswith(start):
            raise raw.failure(f"it ends in {ending} but is not such a file")
    return raw


def _check_distinct(names: Sequence[str], source: str) -> None:
    if len(set(names)) < len(names):
        raise AsgatError(f"In {source} two columns are called {Counter(names).most_common(1)[0][0]!r:.80}; rename one.")


def read_text(raw: UserFile, delimiter: str) -> Table:
    """A table of text with a heading; semicolons and tabs are detected where a heading has no comma."""
    text = raw.text()
    notes = []
    heading = text.split("\n", 1)[0]
    for other, name in ((";", "semicolons"), ("\t", "tabs"), (",", "commas")):
        if delimiter not in heading and other in heading:
            delimiter = other
            notes.append(f"{raw.path.name} is separated by {name}.")
    if heading.count(delimiter) >= MAX_COLUMNS:
        raise raw.failure(f"it has more than {MAX_COLUMNS:,} columns, the most that are read")
    rows = _rows(raw, text, delimiter)
    names = [name.strip() for name in next(rows, [])]
    if not any(names):
        raise raw.failure("its first line names no column")
    _check_distinct([name for name in names if name], raw.path.name)
    cells: list[list[str]] = [[] for _ in names]
    seen: dict[str, str] = {}  # equal texts are stored once
    for row in rows:
        for cell, column in zip(map(seen.setdefault, row, row), cells, strict=True):
            column.append(cell)
    if not all(names):
        notes.append(f"Left out a column without a name of {raw.path.name}.")
    columns = {name: Column.of_texts(name, cell) for name, cell in zip(names, cells, strict=True) if name}
    return Table(columns, raw.path.name, notes)


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
        raise raw.failure(f"line {reader.line_num} is not a valid line of a table: {error}") from error


def read_parquet(raw: UserFile, row_bytes: int = 0) -> Table:
    """A Parquet file with columns of numbers, booleans and texts."""
    pa = import_pyarrow()
    held = pa.parquet.ParquetFile(io.BytesIO(raw.content))
    groups = [held.metadata.row_group(i) for i in range(held.metadata.num_row_groups)]
    unpacked = sum(group.column(i).total_uncompressed_size for group in groups for i in range(group.num_columns))
    rows, width = held.metadata.num_rows, held.metadata.num_columns
    check_memory(max(unpacked, rows * (width * CELL_BYTES + row_bytes)), str(raw.path))
    _check_distinct(held.schema_arrow.names, raw.path.name)
    # Reading as a dictionary keeps a text that is stored once and named in every row once in memory, too.
    texts_of = [field.name for field in held.schema_arrow if _is_text(pa, field.type)]
    stored = pa.parquet.ParquetFile(io.BytesIO(raw.content), read_dictionary=texts_of).read()
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


def import_pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise AsgatError("Parquet needs pyarrow; install it with `pip install 'asgat[tables]'`.") from None
    return pyarrow


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


def read_npz_tables(path: Path | str, edge_bytes: int = 0, node_bytes: int = 0) -> tuple[Table, Table | None]:
    """The edges of an npz archive, and its nodes where it has any; bytes as in :func:`read_table`."""
    raw = open_checked(path)
    with raw.guard():
        arrays = read_npz(raw, None, number_bytes=NUMBER_BYTES)
        edges = _edge_arrays(raw, arrays, edge_bytes)
        has_nodes = any(_is_column(name, array) for name, array in arrays.items())
        return edges, _node_arrays(raw, arrays, node_bytes) if has_nodes else None


def _node_arrays(raw: UserFile, arrays: dict[str, npt.NDArray[Any]], row_bytes: int) -> Table:
    """The arrays that have a value per row; [N, F] gives F columns. Rows are those of the longest array."""
    arrays = {name: array for name, array in arrays.items() if _is_column(name, array)}
    if not arrays:
        raise raw.failure("it has no array with a value per node")
    rows = max(len(array) for array in arrays.values())
    check_memory(rows * row_bytes, str(raw.path))
    values: dict[str, npt.NDArray[Any]] = {}
    for name, array in arrays.items():
        if len(array) != rows:
            continue
        if array.ndim == 1:
            values[name] = array
        elif array.shape[1] > MAX_COLUMNS:
            raise raw.failure(f"{name} has more than {MAX_COLUMNS:,} columns, the most that are read")
        else:
            values |= {f"{name}{i}": array[:, i] for i in range(array.shape[1])}
    return Table({name: Column.of_array(name, array) for name, array in values.items()}, raw.path.name)


def _edge_arrays(raw: UserFile, arrays: dict[str, npt.NDArray[Any]], row_bytes: int) -> Table:
    """``edge_index`` or ``edges``, [2, E] or [E, 2], and perhaps ``edge_weight`` or ``weight``, [E]."""
    ends = arrays.get("edge_index", arrays.get("edges"))
    if ends is None:
        raise raw.failure("it has no array edge_index or edges")
    if ends.ndim != 2 or 2 not in ends.shape or ends.dtype.kind not in "iu":
        raise raw.failure(f"edges must be whole numbers of shape [2, E], but are {ends.dtype} {list(ends.shape)}")
    ends = ends if ends.shape[0] == 2 else ends.T
    check_memory(ends.shape[1] * (2 * CELL_BYTES + row_bytes), str(raw.path))
    columns = {role: Column.of_array(role, end) for role, end in zip(("source", "target"), ends, strict=True)}
    weight = arrays.get("edge_weight", arrays.get("weight"))
    if weight is not None and weight.shape == (ends.shape[1],):
        columns["weight"] = Column.of_array("weight", weight)
    return Table(columns, raw.path.name)


def _is_column(name: str, array: npt.NDArray[Any]) -> bool:
    if name not in MASKS and name.endswith(("_mask", "_masks")):
        return False
    return name not in NOT_COLUMNS and array.ndim in (1, 2)


def frame_to_table(frame: Any, source: str) -> Table:
    """A pandas data frame as a table; its index is not part of it."""
    names = [str(name) for name in frame.columns]
    _check_distinct(names, source)
    columns = {}
    for name, key in zip(names, frame.columns, strict=True):
        cells = zip(frame[key].tolist(), frame[key].isna().tolist(), strict=True)
        column = Column.of_objects(name, (None if absent else value for value, absent in cells))
        columns[name] = replace(column, is_category=True) if str(frame[key].dtype) == "category" else column
    return Table(columns, source)
