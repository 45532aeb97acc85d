"""The Planetoid pickles, read without running any code in them.

A pickle is a program. These files use 28 instructions and six names; nothing else is admitted, and the six names stand
for inert classes of this module, so that neither numpy nor scipy sees unchecked content.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from itertools import chain
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asgat.errors import AsgatError
from asgat.files.raw_file import RawFile

MAX_BYTES = 16 * 2**20
MAX_INSTRUCTIONS = 2_000_000  # an instruction of one byte can make an object of 64
MAX_MEMO = 2**20  # the unpickler allocates as many slots as the largest memo number
MAX_CALLS = 16  # each may copy the largest string of the file

_T = TypeVar("_T")

_CALLS = frozenset({"REDUCE", "BUILD", "NEWOBJ"})
_INSTRUCTIONS = _CALLS | {
    *("PROTO", "STOP", "GLOBAL", "MARK", "NONE", "NEWTRUE", "NEWFALSE"),
    *("BININT", "BININT1", "BININT2", "BINSTRING", "SHORT_BINSTRING"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    *("EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT", "SETITEMS"),
    *("BINPUT", "LONG_BINPUT", "BINGET"),
}


def unpickle_array(raw: RawFile) -> npt.NDArray[Any]:
    """A numpy array of numbers."""
    with raw.guard():
        return _checked(raw, _load(raw), _Array).value


def unpickle_csr(raw: RawFile) -> sp.csr_array:
    """A scipy CSR matrix with checked index arrays, which compiled code does not check."""
    with raw.guard():
        state = _checked(raw, _load(raw), _Csr).state
        shape = state["_shape"]
        data, indices, indptr = (_checked(raw, state[key], _Array).value for key in ("data", "indices", "indptr"))
        rows, columns = (_checked(raw, size, int) for size in shape)
        sound = (
            min(rows, columns) >= 0
            and data.ndim == indices.ndim == indptr.ndim == 1
            and indices.dtype.kind == indptr.dtype.kind == "i"
            and len(indptr) == rows + 1
            and indptr[0] == 0
            and indptr[-1] == len(indices) == len(data)
            and bool(np.all(np.diff(indptr.astype(np.int64)) >= 0))
            and bool(np.all((indices >= 0) & (indices < columns)))
        )
        if not sound:
            raise raw.failure("its sparse matrix has indices that do not fit its shape")
        return sp.csr_array((data, indices, indptr), shape=(rows, columns))


def unpickle_neighbours(raw: RawFile) -> tuple[npt.NDArray[np.int64], int]:
    """A dictionary from node to list of neighbours, as endpoints of shape [2, E] and the number of nodes."""
    with raw.guard():
        neighbours = _checked(raw, _load(raw), _Neighbours)
        num_nodes = len(neighbours)
        lists = [_checked(raw, neighbours.get(node), list) for node in range(num_nodes)]
        counts = np.array([len(entry) for entry in lists], dtype=np.int64)
        # One list may be used for many nodes; written out, each neighbour takes at least two bytes.
        if counts.sum() > len(raw.content):
            raise raw.failure("it names more neighbours than it has room for")
        ends = np.array([_checked(raw, node, int) for node in chain.from_iterable(lists)], dtype=np.int64)
        return np.stack([np.repeat(np.arange(num_nodes), counts), ends]), num_nodes


class _List:
    """Stands for ``list`` as the default factory of a dictionary."""

    def __setstate__(self, state: object) -> None:
        raise TypeError("a list factory has no state")


class _Neighbours(dict[Any, Any]):
    """Stands for ``defaultdict(list)``."""

    def __init__(self, factory: object) -> None:
        super().__init__()
        if factory is not _List:
            raise TypeError("only a dictionary of lists is expected")

    def __setstate__(self, state: object) -> None:
        raise TypeError("a dictionary of lists has no state")


class _DType:
    """Stands for ``numpy.dtype``."""

    def __init__(self, code: object, *_: object) -> None:
        if code not in ("i4", "i8", "f4", "f8"):
            raise TypeError(f"numbers of type {code!r} are not expected")
        self.value = np.dtype(str(code))

    def __setstate__(self, state: tuple[object, ...]) -> None:
        if state[1] not in ("<", ">"):
            raise TypeError(f"byte order {state[1]!r} is not expected")
        self.value = self.value.newbyteorder("<" if state[1] == "<" else ">")


class _Array:
    """Stands for ``numpy.ndarray`` and for the function that makes an empty one to be filled."""

    def __init__(self, *_: object) -> None:
        self.value: npt.NDArray[Any] = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran_order, text = state
        content = text.encode("latin1")
        if not isinstance(dtype, _DType) or not all(type(size) is int and size >= 0 for size in shape):
            raise TypeError("an array without a proper shape and type")
        if math.prod(shape) * dtype.value.itemsize != len(content):
            raise ValueError(f"an array of shape {shape} with {len(content)} bytes")
        self.value = np.ndarray(shape, dtype.value, buffer=content, order="F" if fortran_order else "C")


class _Csr:
    """Stands for ``scipy.sparse.csr_matrix``."""

    state: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    names: ClassVar[dict[str, type]] = {
        "numpy.core.multiarray _reconstruct": _Array,
        "numpy ndarray": _Array,
        "numpy dtype": _DType,
        "scipy.sparse.csr csr_matrix": _Csr,
        "collections defaultdict": _Neighbours,
        "__builtin__ list": _List,
    }

    def find_class(self, module: str, name: str) -> type:
        known = self.names.get(f"{module} {name}")
        if known is None:
            raise AsgatError(f"it asks for {module}.{name}, which no Planetoid file needs")
        return known


def _load(raw: RawFile) -> object:
    if len(raw.content) > MAX_BYTES:
        raise raw.failure(f"it has {len(raw.content)} bytes, and at most {MAX_BYTES} are allowed")
    _scan(raw)
    try:
        return _Unpickler(io.BytesIO(raw.content), fix_imports=False, encoding="latin1").load()
    except AsgatError as error:
        raise raw.failure(str(error)) from error


def _scan(raw: RawFile) -> None:
    """Refuses instructions no Planetoid file has, and what would take much memory, before anything runs."""
    calls = 0
    for count, (instruction, argument, _) in enumerate(pickletools.genops(raw.content)):
        if instruction.name not in _INSTRUCTIONS:
            raise raw.failure(f"it holds the pickle instruction {instruction.name}, which no Planetoid file needs")
        calls += instruction.name in _CALLS
        too_far = instruction.name == "LONG_BINPUT" and isinstance(argument, int) and argument > MAX_MEMO
        if calls > MAX_CALLS or count > MAX_INSTRUCTIONS or too_far:
            raise raw.failure("it takes more memory to read than any Planetoid file needs")


def _checked(raw: RawFile, value: object, kind: type[_T]) -> _T:
    if type(value) is not kind:
        raise raw.failure(f"it holds {type(value).__name__} where {kind.__name__.strip('_').lower()} is expected")
    return value
