"""The memory of large arrays is reused."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource
import sys
import numpy as np
from asgat.training.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        np.ones(20_000_000 // 2)  # 80 MB, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

without = faults()
assert keep_freed_memory()
faults()
print(without, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc, whose allocator is set up here")
def test_freed_memory_is_used_again():
    without, kept = map(int, subprocess.check_output([sys.executable, "-c", SCRIPT], text=True).split())
    assert without > 10 * max(kept, 1)


def test_other_allocators_are_left_alone(monkeypatch):
    from asgat.training import memory

    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not memory.keep_freed_memory()
