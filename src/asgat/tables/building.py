"""What both builders of candidate tables share."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from asgat.errors import AsgatError
from asgat.tables.candidate_table import ROUNDING
from asgat.threads import available_threads

Item = TypeVar("Item")
Result = TypeVar("Result")


def check_build(num_nodes: int, order: int, candidates: int, rows: Any, dtype: torch.dtype) -> npt.NDArray[np.int64]:
    """The row numbers, all of them by default; an error for settings that no table can be built with."""
    if order < 1:
        raise AsgatError(f"order must be at least 1, but is {order}.")
    if candidates < 1:
        raise AsgatError(f"candidates must be at least 1, but is {candidates}.")
    if dtype not in ROUNDING:
        raise AsgatError(f"A table is stored in float32, float64 or float16, not in {dtype}.")
    chosen = np.arange(num_nodes) if rows is None else np.asarray(rows, dtype=np.int64).reshape(-1)
    outside = chosen[(chosen < 0) | (chosen >= num_nodes)]
    if outside.size:
        raise AsgatError(f"Row {outside[0]} was requested, but the graph has nodes 0 to {num_nodes - 1}.")
    return chosen


def map_in_order(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """``map`` over as many threads as this process may use, for functions that release the interpreter's lock.

    Results come in the order of the items and few wait at a time, so neither memory nor results depend on the number
    of threads; an interrupt stops after the items in progress.
    """
    workers = available_threads()
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
