"""Memory that stays with the process for the next epoch instead of going back to the system."""

from __future__ import annotations

import ctypes
import platform

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # names of glibc's settings


def keep_freed_memory() -> bool:
    """Lets this process reuse the memory of large arrays; True if the system's allocator supports it.

    glibc maps every array over 32 MiB again and unmaps it when it is freed, so that in each epoch on a large graph the
    system clears gigabytes of pages: a third of the time with half a million nodes. Reused, the memory stays with the
    process until it ends. Called by commands before training, never on import.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(_MMAP_MAX, 0)) and bool(libc.mallopt(_TRIM_THRESHOLD, -1))  # never
