"""The Planetoid pickles, read without running any code in them.

A pickle is a program. These files use 28 instructions and six names; nothing else is admitted, and the six names stand
for inert classes of this module, so that a file never makes an object of numpy's or scipy's. What the inert objects
hold is checked when arrays are made from it.
"""

import io
import math
import pickle
import pickletools
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from asgat.files.raw_file import RawFile

MAX_BYTES = 16 * 2**20
MAX_INSTRUCTIONS = 2_000_000  # an instruction of one byte can make an object of 64
MAX_MEMO = 2**20  # the unpickler allocates as many slots as the largest memo number
MAX_CALLS = 16  # each may copy the largest tuple of the file

_CALLS = frozenset({"REDUCE", "BUILD", "NEWOBJ"})
_INSTRUCTIONS = _CALLS | {
    *("PROTO", "STOP", "GLOBAL", "MARK", "NONE", "NEWTRUE", "NEWFALSE"),
    *("BININT", "BININT1", "BININT2", "BINSTRING", "SHORT_BINSTRING"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    *("EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT", "SETITEMS"),
    *("BINPUT", "LONG_BINPUT", "BINGET"),
}


class _Inert(dict[Any, Any]):
    """Holds what a pickle passes to a name: arguments, state and items."""

    arguments: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__()
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


_NAMES = {
    "numpy.core.multiarray _reconstruct": "array",
    "numpy ndarray": "type",
    "numpy dtype": "dtype",
    "scipy.sparse.csr csr_matrix": "csr",
    "collections defaultdict": "neighbours",
    "__builtin__ list": "factory",
}
_CLASSES = {name: type(kind, (_Inert,), {}) for name, kind in _NAMES.items()}


def unpickle_array(raw: RawFile) -> npt.NDArray[Any]:
    """A numpy array of numbers."""
    with raw.guard():
        return _array(raw, _load(raw))


def unpickle_csr(raw: RawFile) -> sp.csr_array:
    """A scipy CSR matrix with checked index arrays, which compiled code does not check."""
    with raw.guard():
        state = _checked(raw, _load(raw), "csr").state
        data, indices, indptr = (_array(raw, state[key]) for key in ("data", "indices", "indptr"))
        rows, columns = (_checked(raw, size, "int") for size in state["_shape"])
        try:
            if not indices.dtype.kind == indptr.dtype.kind == "i" or min(rows, columns) < 0:
                raise ValueError("they must be integers, and sizes not negative")
            matrix = sp.csr_array((data, indices, indptr), shape=(rows, columns))
            matrix.check_format()
        except ValueError as error:
            raise raw.failure(f"its sparse matrix has indices that do not fit its shape: {error}") from error
        return matrix


def unpickle_neighbours(raw: RawFile) -> tuple[npt.NDArray[np.int64], int]:
    """A dictionary from node to list of neighbours, as endpoints of shape [2, E] and the number of nodes."""
    with raw.guard():
        neighbours = _checked(raw, _load(raw), "neighbours")
        num_nodes = len(neighbours)
        lists = [_checked(raw, neighbours.get(node), "list") for node in range(num_nodes)]
        counts = np.array([len(entry) for entry in lists], dtype=np.int64)
        # One list may be used for many nodes; written out, each neighbour takes at least two bytes.
        if counts.sum() > len(raw.content):
            raise raw.failure("it names more neighbours than it has room for")
        ends = np.array([_checked(raw, node, "int") for node in chain.from_iterable(lists)], dtype=np.int64)
        return np.stack([np.repeat(np.arange(num_nodes), counts), ends]), num_nodes


def _array(raw: RawFile, value: Any) -> npt.NDArray[Any]:
    _, shape, dtype, fortran_order, text = _checked(raw, value, "array").state
    code, byte_order = _checked(raw, dtype, "dtype").arguments[0], dtype.state[1]
    if code not in ("i4", "i8", "f4", "f8") or byte_order not in ("<", ">"):
        raise raw.failure(f"numbers of type {byte_order}{code} are not expected")
    kind, content = np.dtype(f"{byte_order}{code}"), text.encode("latin1")
    sizes = [_checked(raw, size, "int") for size in shape]
    if min(sizes, default=0) < 0 or math.prod(sizes) * kind.itemsize != len(content):
        raise raw.failure(f"it holds an array of shape {shape} with {len(content)} bytes")
    return np.ndarray(sizes, kind, buffer=content, order="F" if fortran_order else "C")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        return _CLASSES[f"{module} {name}"]


def _load(raw: RawFile) -> object:
    """Refuses what no Planetoid file has, and what would take much memory, before anything runs."""
    if len(raw.content) > MAX_BYTES:
        raise raw.failure(f"it has {len(raw.content)} bytes, and at most {MAX_BYTES} are allowed")
    calls = 0
    for count, (instruction, argument, _) in enumerate(pickletools.genops(raw.content)):
        name = instruction.name
        if name not in _INSTRUCTIONS:
            raise raw.failure(f"it holds the pickle instruction {name}, which no Planetoid file needs")
        if name == "GLOBAL" and argument not in _NAMES:
            raise raw.failure(f"it asks for {str(argument).replace(' ', '.')}, which no Planetoid file needs")
        calls += name in _CALLS
        too_far = name == "LONG_BINPUT" and isinstance(argument, int) and argument > MAX_MEMO
        if calls > MAX_CALLS or count > MAX_INSTRUCTIONS or too_far:
            raise raw.failure("it takes more memory to read than any Planetoid file needs")
    return _Unpickler(io.BytesIO(raw.content), fix_imports=False, encoding="latin1").load()


def _checked(raw: RawFile, value: Any, kind: str) -> Any:
    if type(value).__name__ != kind:
        raise raw.failure(f"it holds {type(value).__name__} where {kind} is expected")
    return value
