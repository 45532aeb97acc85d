"""CPU threads: how many a process may use, how a block of code is held to some, and how idle ones wait."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

_CGROUP = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")
_PASSIVE = {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}  # libgomp of PyTorch and numba; Intel's and LLVM's

_given: int | None = None


def set_threads(count: int | None) -> None:
    """Fixes the number of threads of every training in this process (None: by its work). For commands."""
    global _given
    _given = count


def given_threads() -> int | None:
    """The number that :func:`set_threads` fixed."""
    return _given


def available_threads() -> int:
    """Threads this process may use: the number that was fixed, or at most PyTorch's own and its share of the cores."""
    import torch

    return _given or min(torch.get_num_threads(), available_cores())


def available_cores() -> int:
    """Cores for this process: those it may run on, up to its control group's limit, divided among a machine's ranks."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, int(min(cores, _cgroup_cores() or cores)) // max(1, int(ranks) if ranks.isdecimal() else 1))


def _cgroup_cores() -> float | None:
    """The processor time that the control groups of this process may take, in cores; None without a limit."""
    try:
        own = _OWN_CGROUP.read_text(encoding="utf-8").splitlines()[-1].split(":", 2)[2].strip("/")
    except (OSError, IndexError, UnicodeDecodeError):
        own = ""
    inner = _CGROUP / own
    limits = [_quota(folder / "cpu.max") for folder in (inner, *inner.parents) if folder.is_relative_to(_CGROUP)]
    limits.append(_quota(*(_CGROUP / "cpu" / f"cpu.cfs_{name}_us" for name in ("quota", "period"))))
    return min((limit for limit in limits if limit), default=None)


def _quota(*files: Path) -> float | None:
    """Quota divided by period; both stand in one file, or each in its own."""
    try:
        quota, period = (int(word) for file in files for word in file.read_text(encoding="ascii").split())
        return quota / period if quota > 0 < period else None
    except (OSError, ValueError):  # no such file, or the word max
        return None


@contextmanager
def thread_limit(count: int | None) -> Iterator[None]:
    """Inside the block PyTorch, the kernels and the linear algebra of NumPy and SciPy use that many threads; with None
    as many as outside."""
    if count is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)  # the kernels follow it
    try:
        with _blas().limit(limits=count, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks for loaded libraries, which takes a while


def wait_passively() -> None:
    """Lets idle threads of this process sleep instead of spin, unless the user's environment says otherwise.

    A spinning thread takes the core that the thread it waits for needs: next to another busy process an epoch on a
    small graph takes thirty times as long. The runtimes read the setting when they are loaded, with PyTorch; after
    that this does nothing. Called by the command line, never on import.
    """
    if "torch" not in sys.modules:
        for name, value in _PASSIVE.items():
            os.environ.setdefault(name, value)
