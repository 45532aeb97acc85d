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

MAX_UNPACKED_BYTES = 256 * 2**20  # five times the largest published archive
MAX_PACKED_BYTES = 16 * 2**20
MAX_MEMBERS = 64


def read_npz(
    raw: RawFile, names: Sequence[str] | None, max_bytes: int | None = None, optional: Sequence[str] = ()
) -> dict[str, npt.NDArray[Any]]:
    """The named arrays of an archive; arrays of numbers only, within a bound on memory.

    ``numpy.load`` allocates what an array's header promises and unpacks whatever an archive holds. Here sizes are
    checked first: what the members unpack to against a limit, and what a header promises against the bytes that are
    there. Object arrays, which are pickles, are refused. ``names`` are those of the arrays, without ``.npy``; None
    reads every array. ``max_bytes`` bounds the archive, packed and unpacked; None suffices for the published data sets.
    ``optional`` names arrays that may be absent.
    """
    max_packed, max_unpacked = max_bytes or MAX_PACKED_BYTES, max_bytes or MAX_UNPACKED_BYTES
    if len(raw.content) > max_packed:  # the directory alone could hold a million members
        raise raw.failure(f"it has {len(raw.content)} bytes, and at most {max_packed} are allowed")
    with raw.guard(), zipfile.ZipFile(io.BytesIO(raw.content)) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if len(members) > MAX_MEMBERS or unpacked > max_unpacked:
            raise raw.failure(
                f"{len(members)} members unpack to {unpacked} bytes, and at most {MAX_MEMBERS} members "
                f"and {max_unpacked} bytes are allowed"
            )
        by_name = {member.filename: member for member in members}
        if names is None:
            names = [name.removesuffix(".npy") for name in by_name if name.endswith(".npy")]
        absent = [name for name in names if f"{name}.npy" not in by_name]
        if absent:
            raise raw.failure(f"the array {absent[0]!r} is not in it")
        there = [*names, *(name for name in optional if f"{name}.npy" in by_name)]
        return {name: _read_member(raw, archive, by_name[f"{name}.npy"]) for name in there}


def _read_member(raw: RawFile, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    # bzip2 and lzma are never written by numpy, and lzma lets the file choose how much memory to take.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise raw.failure(f"{member.filename} is compressed by method {member.compress_type}")
    with archive.open(member) as stream:
        # Asking for a number of bytes bounds the unpacking where the directory understates a member's size.
        content = stream.read(member.file_size)
    body = io.BytesIO(content)
    version = np.lib.format.read_magic(body)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise raw.failure(f"{member.filename} has format version {version}")
    shape, fortran_order, dtype = readers[version](body)
    if dtype.kind not in "biuf":
        raise raw.failure(f"{member.filename} holds {dtype}, not plain numbers")
    if math.prod(shape) * dtype.itemsize != len(content) - body.tell():
        raise raw.failure(f"{member.filename} promises shape {shape} of {dtype}, but holds another number of bytes")
    array: npt.NDArray[Any] = np.ndarray(math.prod(shape), dtype=dtype, buffer=content, offset=body.tell())
    return array.reshape(shape, order="F" if fortran_order else "C")


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
