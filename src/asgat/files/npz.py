"""The arrays of .npz archives and .npy files that may be malicious."""

import io
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from asgat.errors import AsgatError, brief
from asgat.files.raw_file import RawFile
from asgat.memory import check_memory

MAX_HEADER_BYTES = 2**14  # numpy refuses a header of more than 10,000
_CHUNK = 2**20  # bytes unpacked at a time
_MEMBER_BYTES = 2000  # what zipfile keeps of an entry of the directory, and what is kept here


def read_npz(
    raw: RawFile, names: Sequence[str] | None, optional: Sequence[str] = (), number_bytes: int = 0
) -> dict[str, npt.NDArray[Any]]:
    """The named arrays of an archive; arrays of numbers only, if they fit into the free memory.

    ``numpy.load`` allocates what an array's header promises and unpacks whatever an archive holds. Here sizes are
    checked first: what a header promises against what the member unpacks to, and all arrays against the memory that is
    free. Object arrays, which are pickles, are refused. ``names`` are those of the arrays, without ``.npy``; None
    reads every array. ``optional`` names arrays that may be absent. ``number_bytes`` are what the caller makes of every
    number, and count as needed.
    """
    check_memory(_MEMBER_BYTES * raw.content.count(b"PK\1\2"), str(raw.path))
    with raw.guard(), zipfile.ZipFile(io.BytesIO(raw.content)) as archive:
        by_name = {member.filename: member for member in archive.infolist()}
        if names is None:
            names = [name.removesuffix(".npy") for name in by_name if name.endswith(".npy")]
        absent = [name for name in names if f"{name}.npy" not in by_name]
        if absent:
            raise raw.failure(f"the array {absent[0]!r} is not in it")
        there = [*names, *(name for name in optional if f"{name}.npy" in by_name)]
        members = {name: _Member(raw, archive, by_name[f"{name}.npy"]) for name in there}
        check_memory(sum(one.size * (one.dtype.itemsize + number_bytes) for one in members.values()), str(raw.path))
        return {name: member.read() for name, member in members.items()}


class _Member:
    """An array of an archive, of which the header has been read and checked."""

    def __init__(self, raw: RawFile, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        # bzip2 and lzma are never written by numpy, and lzma lets the file choose how much memory to take.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise raw.failure(f"{info.filename} is compressed by method {info.compress_type}")
        with archive.open(info) as stream:
            head = io.BytesIO(stream.read(min(info.file_size, MAX_HEADER_BYTES)))
        version = np.lib.format.read_magic(head)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise raw.failure(f"{info.filename} has format version {version}")
        self.shape, self.fortran_order, self.dtype = readers[version](head)
        self.raw, self.archive, self.info, self.start = raw, archive, info, head.tell()
        self.size = math.prod(self.shape)
        if self.dtype.kind not in "biuf":
            raise raw.failure(f"{info.filename} holds {self.dtype}, not plain numbers")
        if self.size * self.dtype.itemsize != info.file_size - self.start:
            raise self._wrong_size()

    def read(self) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = np.empty(self.size, dtype=self.dtype)
        rest = array.view(np.uint8)
        with self.archive.open(self.info) as stream:
            stream.read(self.start)
            while len(rest):
                # Asking for a number of bytes bounds the unpacking where the directory understates a member's size.
                part = stream.read(min(len(rest), _CHUNK))
                if not part:
                    raise self._wrong_size()
                rest[: len(part)] = np.frombuffer(part, np.uint8)
                rest = rest[len(part) :]
        return array.reshape(self.shape, order="F" if self.fortran_order else "C")

    def _wrong_size(self) -> AsgatError:
        promised = f"{self.info.filename} promises shape {self.shape} of {self.dtype}"
        return self.raw.failure(f"{promised}, but holds another number of bytes")


def open_npy(path: Path, remedy: str, mode: Literal["r", "c"] = "r") -> npt.NDArray[Any]:
    """The array of a file, of which only what is used is read.

    A memory map cannot be larger than the file, whatever its header promises; arrays of objects, which are pickles, are
    refused. Errors end with the remedy, such as ``"convert the graph again"``. In mode ``"c"`` the array can be
    changed; the changes stay in this process.
    """
    if not path.is_file():  # a pipe would block
        raise AsgatError(f"{path} cannot be read: No such file; {remedy}.")
    try:
        return np.asarray(np.lib.format.open_memmap(path, mode=mode))
    except Exception as error:  # the header is parsed as Python, which can fail in many ways
        reason = getattr(error, "strerror", None) or brief(error)
        raise AsgatError(f"{path} cannot be read: {reason}; {remedy}.") from error
