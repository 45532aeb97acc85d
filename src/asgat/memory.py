"""The machine's memory: how much can still be allocated, and how a process reuses what it has freed."""

import ctypes
import os
import platform
from pathlib import Path
from typing import Any

from asgat.errors import AsgatError

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
_STATM = Path("/proc/self/statm")
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # names of glibc's settings

_bound: int | None = None  # bytes from which on freed memory is returned; of the process, as glibc's settings are


def available_memory(device: Any = "cpu") -> int | None:
    """Bytes that can still be allocated on a ``torch.device`` or one by name, or None where that is unknown."""
    if str(device).startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    return min((limit for limit in (_machine_memory(), _cgroup_memory()) if limit is not None), default=None)


def check_memory(needed: int, what: str) -> None:
    """Raises an error, before anything is allocated, if this many bytes are more than are free."""
    free = available_memory()
    if free is not None and needed > free:
        raise AsgatError(
            f"{what} needs {needed / 2**20:,.0f} MiB of memory, and {free / 2**20:,.0f} MiB are free; close other "
            "programs, or use a machine with more memory."
        )


def _machine_memory() -> int | None:
    try:
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            name, value = line.split(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        if name in os.sysconf_names:
            return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    return None


def _cgroup_memory() -> int | None:
    """What the limit of this process's control group leaves; its file cache is given up where memory is needed."""
    try:
        limit, used, stat = (
            (_CGROUP / f"memory.{name}").read_text(encoding="ascii") for name in ("max", "current", "stat")
        )
        cached = dict(line.split() for line in stat.splitlines()).get("file", 0)
        return max(0, int(limit) - int(used) + int(cached))  # a limit of "max" is none
    except (OSError, ValueError):
        return None


def keep_freed_memory(needed: int = 0, processes: int = 1, bounded: bool = False) -> bool:
    """Lets this process reuse the memory of large arrays; True if it does, which needs glibc and enough memory.

    glibc maps every array over 32 MiB again and unmaps it when it is freed, so that in each epoch on a large graph the
    system clears gigabytes of pages: a third of the time with half a million nodes. Reused, the memory stays with the
    process until it ends. Called by commands before training, never on import.

    Args:
        needed: bytes that arrays will take at most at one time. What is held now and ``needed`` is what
            :func:`return_freed_memory` keeps the process at; 0 for no bound.
        processes: how many of this machine need as much, and see the same memory available.
        bounded: whether training calls :func:`return_freed_memory`. Reused memory has gaps between arrays, so that it
            takes up to twice as much; where that is not available, memory is not reused. If it is bounded, the gaps
            take up to a quarter of ``needed``, and where that is not available, the bound is lower by what is missing.
    """
    global _bound
    free = available_memory()
    share = None if free is None else free // processes
    if platform.libc_ver()[0] != "glibc" or (share is not None and needed * (1 if bounded else 2) > share):
        return False
    if bounded and share is not None:
        needed = min(needed, share - needed // 4)
    libc = ctypes.CDLL(None)
    if not (libc.mallopt(_MMAP_MAX, 0) and libc.mallopt(_TRIM_THRESHOLD, -1)):  # never
        return False
    libc.malloc_trim(0)
    _bound = _held_memory() + needed if needed else None
    return True


def return_freed_memory() -> bool:
    """Returns freed memory to the system if the process holds more than was planned; True if it did.

    Called before large arrays are made. Before version 2.38 glibc does not place an aligned array in a gap of the same
    size, so that gaps would grow to half of what arrays take. Costs microseconds where there is nothing to do. Where
    more is in use than was planned, as by several runs at the same time, there is no bound any more.
    """
    global _bound
    if _bound is None or _held_memory() <= _bound:
        return False
    ctypes.CDLL(None).malloc_trim(0)
    if _held_memory() > _bound:
        _bound = None
    return True


def _held_memory() -> int:
    """Bytes of this process in memory, without mapped files."""
    _, resident, shared, *_ = map(int, _STATM.read_text(encoding="ascii").split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
