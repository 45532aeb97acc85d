"""Memory that is kept for the next epoch instead of being given back."""

from __future__ import annotations

import ctypes
import platform

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # names of glibc's settings


def keep_freed_memory() -> bool:
    """Let this process reuse the memory of large arrays; true if the system's allocator can be told so.

    glibc maps every array over 32 MiB anew and gives it back when it is freed, so that each epoch on a large graph pays
    for the system to clear gigabytes of pages: measured with half a million nodes, a third of its time. Kept, the
    memory stays with the process until it ends. Called where training begins, never on import.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(_MMAP_MAX, 0)) and bool(libc.mallopt(_TRIM_THRESHOLD, -1))  # never
