"""Candidate tables in folders: read as memory maps, with a checksum of every part."""

import json
import secrets
import shutil
import warnings
import zlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asgat.errors import AsgatError, brief
from asgat.files.user_file import read_user_file
from asgat.tables.candidate_table import ROUNDING, CandidateTable
from asgat.threads import available_threads

Array = npt.NDArray[Any]

FORMAT, VERSION = "asgat-table", 1
HEADER = "header.json"
MAX_HEADER_BYTES = 64 << 20
_AT_ONCE = 8 << 20  # bytes
_STORAGE = {str(dtype).removeprefix("torch."): dtype for dtype in ROUNDING}


class DamagedTableError(AsgatError):
    """A stored table that cannot be read, or whose content is not what was written."""

    def __init__(self, folder: Path, reason: object) -> None:
        super().__init__(f"{folder} is damaged: {brief(reason)}.")
        self.folder = folder


@dataclass(frozen=True)
class StoredTable:
    """What ``header.json`` says of a table.

    Attributes:
        exact, orders, storage: see :class:`CandidateTable`.
        parts: rows, entries and CRC-32 of every array, for each part in the order of the rows.
        about: what the table was made of.
    """

    exact: bool
    orders: int
    storage: str
    parts: Sequence[Mapping[str, Any]]
    about: Mapping[str, Any]

    @property
    def num_rows(self) -> int:
        return sum(part["rows"] for part in self.parts)

    def arrays(self, rows: int, entries: int) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Type and shape of the arrays with so many rows and entries, a file of plain numbers each."""
        arrays: dict[str, tuple[Any, tuple[int, ...]]] = {
            "count": (np.int32, (rows,)),  # entries of every row
            "complete": (np.bool_, (rows,)),
            "index": (np.int32, (entries,)),
            "value": (self.storage, (entries, self.orders)),
        }
        if self.exact:  # what a truncated table leaves out is not known
            arrays |= dict.fromkeys(("above", "below"), (np.float64, (rows, self.orders)))
        return arrays

    def encode(self) -> bytes:
        return (json.dumps({"format": FORMAT, "version": VERSION, **vars(self)}) + "\n").encode()

    @classmethod
    def read(cls, folder: Path) -> "StoredTable":
        """The header of a folder."""
        try:
            values = read_user_file(folder / HEADER, MAX_HEADER_BYTES).json_object()
            if (values.pop("format", None), values.pop("version", None)) != (FORMAT, VERSION):
                raise ValueError("it is of another version")
            header = cls(**values)
            if header.storage not in _STORAGE or header.orders < 2:
                raise ValueError("it names a type of numbers or an order that no table has")
            for part in header.parts:
                names = header.arrays(part["rows"], part["entries"])
                if part["rows"] < 0 or part["entries"] < 0 or set(part["crc"]) != set(names):
                    raise ValueError("it does not describe all arrays")
        except (AsgatError, ValueError, TypeError, KeyError) as error:
            raise DamagedTableError(folder, error) from error
        return header


def write_table(folder: Path, table: CandidateTable, about: Mapping[str, Any]) -> None:
    """Writes a table, whole or not at all; the folder must not exist."""
    table = table.to("cpu")
    parts: list[dict[str, Any]] = []
    storage = str(table.value.dtype).removeprefix("torch.")
    header = StoredTable(table.exact, table.order + 1, storage, parts, about)
    tensors = {**vars(table), "count": table.indptr.diff().int()}
    arrays = {name: tensors[name].contiguous().numpy().reshape(-1).view(np.uint8) for name in header.arrays(0, 0)}
    crc = {name: zlib.crc32(array) for name, array in arrays.items()}
    parts.append({"rows": table.num_nodes, "entries": table.index.numel(), "crc": crc})
    _write(folder, header, {name: [array] for name, array in arrays.items()})


def join_tables(folder: Path, parts: Sequence[Path], about: Mapping[str, Any]) -> None:
    """Writes the rows of several stored tables, in order, as one; O(bytes) time, constant memory.

    Raises:
        DamagedTableError: a part is not what was written; its ``folder`` is the part.
    """
    headers = [StoredTable.read(part) for part in parts]
    first = headers[0]
    joined = StoredTable(first.exact, first.orders, first.storage, [p for h in headers for p in h.parts], about)

    def pieces(name: str) -> Iterable[bytes]:
        for part, header in zip(parts, headers, strict=True):
            yield from _checked(part, header, name)

    _write(folder, joined, {name: pieces(name) for name in joined.arrays(0, 0)})


def _write(folder: Path, header: StoredTable, arrays: Mapping[str, Iterable[Any]]) -> None:
    """Writes the arrays, each from pieces of bytes, then the header, and gives the folder its name."""
    temporary = folder.parent / f".{folder.name}.{secrets.token_hex(8)}"
    try:
        temporary.mkdir(parents=True)
        for name, pieces in arrays.items():
            with (temporary / f"{name}.bin").open("wb") as file:
                for piece in pieces:
                    file.write(piece)
        (temporary / HEADER).write_bytes(header.encode())
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_table(folder: Path, rows: range | None = None) -> CandidateTable:
    """The table of a folder, or some contiguous rows of it, as memory maps: nothing but 8 bytes per row is in memory.

    The parts that hold the rows are read once and compared with their checksums, at more than a gigabyte a second.

    Raises:
        DamagedTableError: it cannot be read, or its content is not what was written.
    """
    header = StoredTable.read(folder)
    rows = range(header.num_rows) if rows is None else rows
    total = header.num_rows, sum(part["entries"] for part in header.parts)
    with ThreadPoolExecutor(available_threads()) as pool:
        list(pool.map(lambda name: deque(_checked(folder, header, name, rows), maxlen=0), header.arrays(*total)))
    arrays = {
        name: np.memmap(folder / f"{name}.bin", dtype, "r", shape=shape) if np.prod(shape) else np.empty(shape, dtype)
        for name, (dtype, shape) in header.arrays(*total).items()
    }
    first = int(arrays["count"][: rows.start].sum(dtype=np.int64))
    here = slice(rows.start, rows.stop)
    indptr = np.concatenate([[0], np.cumsum(arrays["count"][here], dtype=np.int64)])
    entries = slice(first, first + int(indptr[-1]))
    unknown = torch.full((1, header.orders), torch.nan, dtype=torch.float64).expand(len(rows), -1)
    above, below = (read_only_tensor(arrays[name][here]) if header.exact else unknown for name in ("above", "below"))
    return CandidateTable(
        torch.from_numpy(indptr),
        read_only_tensor(arrays["index"][entries]),
        read_only_tensor(arrays["value"][entries]),
        above,
        below,
        read_only_tensor(arrays["complete"][here]),
        exact=header.exact,
    )


def _checked(folder: Path, header: StoredTable, name: str, rows: range | None = None) -> Iterable[bytes]:
    """The bytes of an array, or of the parts that hold some rows, in pieces; an error where they are not as written."""
    path, row, start = folder / f"{name}.bin", 0, 0
    try:
        with path.open("rb") as file:
            for part in header.parts:
                dtype, shape = header.arrays(part["rows"], part["entries"])[name]
                size = int(np.prod(shape)) * np.dtype(dtype).itemsize
                if rows is None or (row < rows.stop and rows.start < row + part["rows"]):
                    file.seek(start)
                    crc, left = 0, size
                    while left and (piece := file.read(min(left, _AT_ONCE))):
                        crc, left = zlib.crc32(piece, crc), left - len(piece)
                        yield piece
                    if left or crc != part["crc"][name]:
                        raise DamagedTableError(folder, f"{path.name} is not what was written")
                row, start = row + part["rows"], start + size
            if path.stat().st_size != start:
                raise DamagedTableError(folder, f"{path.name} is longer than it was")
    except OSError as error:
        raise DamagedTableError(folder, f"{path.name} cannot be read: {error.strerror}") from error


def read_only_tensor(array: Array) -> Tensor:
    """A tensor of the same memory, which is never written to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)
