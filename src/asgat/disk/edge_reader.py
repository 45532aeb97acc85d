"""A user's files of numbers: edge lists of any length, read a part at a time; features, labels and splits."""

import gzip
import re
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError, brief
from asgat.files.npz import open_npy, read_npz
from asgat.files.raw_file import ANY_SIZE, check_regular
from asgat.files.user_file import ending_of, is_packed, read_user_file

Array = npt.NDArray[Any]
Chunk = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64] | None]

ENDINGS = (".csv", ".tsv", ".txt", ".npy", ".npz")
_BYTES = 32 << 20  # of text, or of numbers, at a time
_SEPARATORS = bytes.maketrans(b",;\t", b"   ")


def read_edges(path: Path | str, chunk_bytes: int = _BYTES) -> Iterator[Chunk]:
    """Yields source, target and, where given, weights of the edges, ``chunk_bytes`` at a time.

    Text (.csv, .tsv, .txt, each also packed by gzip) holds an edge a line, two node numbers from 0 and optionally a
    weight, between commas, semicolons, tabs or spaces; lines that begin with # and a first line of names are skipped. A
    .npy file holds [2, E] or [E, 2]; an .npz file ``edge_index`` and optionally ``edge_weight``, and is read whole.
    """
    path = Path(path)
    if ending_of(path) not in ENDINGS:
        raise AsgatError(f"An edge list ends in {', '.join(ENDINGS)}, but {path.name} does not.")
    try:
        check_regular(path)
        if path.suffix.lower() in (".npy", ".npz"):
            yield from _from_arrays(path, chunk_bytes)
        else:
            yield from _from_text(path, chunk_bytes)
    except (OSError, EOFError, zlib.error) as error:
        raise AsgatError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _from_arrays(path: Path, chunk_bytes: int) -> Iterator[Chunk]:
    weight: Array | None = None
    if path.suffix.lower() == ".npz":
        arrays = read_npz(read_user_file(path, ANY_SIZE), None)
        if "edge_index" not in arrays:
            raise AsgatError(f"{path} holds {brief(', '.join(arrays)) or 'nothing'}, but no edge_index [2, E].")
        ends, weight = arrays["edge_index"], arrays.get("edge_weight")
    else:
        ends = open_npy(path, "write it with numpy.save")
    if ends.ndim != 2 or 2 not in ends.shape or ends.dtype.kind not in "iu":
        held = f"{ends.dtype} {list(ends.shape)}"
        raise AsgatError(f"{path} should hold whole numbers [2, E] or [E, 2], but holds {held}.")
    ends = ends if ends.shape[0] == 2 else ends.T
    if weight is not None and weight.shape != (ends.shape[1],):
        raise AsgatError(f"{path} has {ends.shape[1]} edges, but weights of shape {list(weight.shape)}.")
    size = max(1, chunk_bytes // 16)
    for start in range(0, ends.shape[1], size):
        part = slice(start, start + size)
        source, target = ends[:, part].astype(np.int64)
        yield source, target, None if weight is None else weight[part].astype(np.float64)


def _from_text(path: Path, chunk_bytes: int) -> Iterator[Chunk]:
    columns, line = 0, 1
    with gzip.open(path) if is_packed(path) else path.open("rb") as file:
        while text := file.read(chunk_bytes) + file.readline(_BYTES):  # a packed line may be endless
            if b"#" in text:
                text = re.sub(rb"(?m)^[ \t]*#.*$", b"", text)
            if not columns and text.strip():
                text, columns = _without_names(text, path)
            if text.strip():
                yield _columns(text, columns, path, line)
            line += text.count(b"\n")


def _without_names(text: bytes, path: Path) -> tuple[bytes, int]:
    """The text without a first line of names, blank in its place, and the number of columns."""
    for first in text.splitlines(keepends=True):
        words = first.translate(_SEPARATORS).split()
        if not words:
            continue
        columns = len(words)
        if columns not in (2, 3):
            shown = first.decode("utf-8", "replace").strip()[:60]
            raise AsgatError(f"{path} should hold two node numbers a line and optionally a weight, not {shown!r}.")
        names = not any(is_number(word) for word in words)
        return (text.replace(first, b"\n", 1) if names else text), columns
    return text, 0


def _columns(text: bytes, columns: int, path: Path, line: int) -> Chunk:
    spaced = text.translate(_SEPARATORS)
    words = _words_per_line(spaced)
    if not ((words == columns) | (words == 0)).all():
        raise _bad_line(text, columns, path, line)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # how an older numpy reports that it stopped early
        try:
            values = np.fromstring(spaced.decode("latin-1"), sep=" ")
        except (ValueError, DeprecationWarning):
            raise _bad_line(text, columns, path, line) from None
    if len(values) != int(words.sum(dtype=np.int64)):  # a line has 256 words more
        raise _bad_line(text, columns, path, line)
    table = values.reshape(-1, columns)
    ends = table[:, :2]
    whole = (ends == np.floor(ends)) & (np.abs(ends) < 2.0**53)
    if not whole.all():
        raise AsgatError(f"{path} names a node {ends[~whole][0]}; nodes are whole numbers from 0.")
    source, target = ends.T.astype(np.int64)
    return source, target, table[:, 2].copy() if columns == 3 else None


def _words_per_line(text: bytes) -> npt.NDArray[np.uint8]:
    """The number of words of every line, modulo 256."""
    code = np.frombuffer(text, np.uint8)
    begins = code > ord(" ")
    begins[1:] &= code[:-1] <= ord(" ")
    ends = np.flatnonzero(code == ord("\n"))
    lines = np.concatenate([[0], ends + 1])
    return np.add.reduceat(begins.view(np.uint8), lines[lines < len(code)], dtype=np.uint8)


def _bad_line(text: bytes, columns: int, path: Path, line: int) -> AsgatError:
    for offset, row in enumerate(text.split(b"\n")):
        words = row.translate(_SEPARATORS).split()
        if words and (len(words) != columns or not all(is_number(word) for word in words)):
            shown = row.decode("utf-8", "replace").strip()[:60]
            return AsgatError(f"Line {line + offset} of {path} should hold {columns} numbers, but is {shown!r}.")
    return AsgatError(f"{path} cannot be read as {columns} columns of numbers.")


def read_array(path: Path, whole: bool = False) -> Any:
    """The numbers of a .npy file, memory-mapped, or of a text file separated by commas, semicolons, tabs or spaces."""
    if not path.is_file():
        raise AsgatError(f"{path} is not a file; give a .npy or .csv file.")
    if path.suffix.lower() == ".npy":
        return open_npy(path, "write it with numpy.save")
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
        separator = next((s for s in (",", ";", "\t") if s in first), None)
        names = not all(is_number(word) for word in first.strip().split(separator))
        kind: Any = np.int64 if whole else np.float32
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns if there is no number at all
            return np.loadtxt(path, kind, delimiter=separator, skiprows=int(names), ndmin=1 if whole else 2)
    except (OSError, ValueError, OverflowError, Warning) as error:
        raise AsgatError(f"{path} cannot be read as numbers: {brief(error)}.") from error


def is_number(word: str | bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
