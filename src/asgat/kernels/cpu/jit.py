"""How the CPU kernels are compiled, and how many threads they take."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
import torch
from numba.core import types
from numba.extending import intrinsic
from torch import Tensor

# Sums may be reordered and multiply-adds fused, but NaN and infinity keep their meaning.
RELAXED = {"contract", "reassoc", "nsz"}
# Every element is computed by the same operations in the same order, at any place in a vector.
FUSED = {"contract"}
# For data known to hold no NaN: lets comparisons and maxima run in vectors.
NO_NAN = {"nnan", "nsz"}

# Below this many multiply-adds starting threads costs more than they save.
SERIAL_WORK = 2_000_000


def compiled(fastmath: set[str], parallel: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function over numpy arrays. It may only call compiled functions of its file: the cache on disk does not
    notice changes in other files."""
    decorate: Callable[[Callable[..., Any]], Callable[..., Any]] = numba.njit(
        cache=True, nogil=True, parallel=parallel, fastmath=fastmath, error_model="numpy"
    )
    return decorate


def num_threads(work: int) -> int:
    """Threads for a problem of that many multiply-adds: PyTorch's setting, or 1 if the problem is small."""
    return 1 if work < SERIAL_WORK else min(torch.get_num_threads(), numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


@contextmanager
def use_threads(threads: int) -> Iterator[None]:
    """Let parallel kernels of this Python thread use that many threads inside the block."""
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def in_blocks(work: int, rows: int, serial: Callable[..., Any], parallel: Callable[..., Any], *arguments: Any) -> None:
    """Call ``serial`` for all rows or, if there is work for several threads, ``parallel`` for as many blocks."""
    threads = num_threads(work)
    if threads == 1:
        serial(*arguments, 0, rows)
    else:
        with use_threads(threads):
            parallel(*arguments, threads)


def view(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The tensor as a numpy array on the same memory (copied only if it is not contiguous)."""
    array: np.ndarray[Any, Any] = tensor.detach().contiguous().numpy()
    return array


def _pointer(context: Any, address: Any, example: Any) -> Any:
    """In compiled code, the memory at an address as numbers of the dtype of an array, for ``numba.carray``. For many
    small tensors: ``data_ptr()`` takes a tenth of the time of a view."""
    signature = types.CPointer(example.dtype)(address, example)  # type: ignore[no-untyped-call]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return signature, generate


def _interpreted_pointer(address: int, example: np.ndarray[Any, Any]) -> Any:
    """The same where nothing is compiled (``NUMBA_DISABLE_JIT``)."""
    return ctypes.cast(int(address), ctypes.POINTER(np.ctypeslib.as_ctypes_type(example.dtype)))


pointer: Any = _interpreted_pointer if numba.config.DISABLE_JIT else intrinsic(_pointer)  # type: ignore[attr-defined]
