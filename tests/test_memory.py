"""Available memory, of the machine, of a control group, of a GPU, and the memory of large arrays that is reused."""

import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from asgat import memory
from asgat.memory import available_memory

GIB = 1 << 30
SCRIPT = """
import resource
import sys
import numpy as np
from asgat.memory import keep_freed_memory

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


def write(folder, **files):
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with 8 GiB available and no control group."""
    write(tmp_path, meminfo="MemTotal:       16777216 kB\nMemFree:  1 kB\nMemAvailable:    8388608 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    return tmp_path


def test_the_machine_reports_what_is_available(machine):
    assert available_memory() == 8 * GIB


@pytest.mark.parametrize(
    ("limit", "current", "file", "expected"),
    [("max", 0, 0, 8), (6 * GIB, GIB, 0, 5), (6 * GIB, 3 * GIB, GIB, 4), (100 * GIB, 0, 0, 8), (GIB, 2 * GIB, 0, 0)],
)
def test_a_control_group_may_allow_less(machine, limit, current, file, expected):
    write(machine, memory_max=f"{limit}\n", memory_current=f"{current}\n", memory_stat=f"anon 5\nfile {file}\n")
    assert available_memory() == expected * GIB


def test_without_that_report_the_pages_are_counted(machine, monkeypatch):
    write(machine, meminfo="MemTotal: 5 kB\n")
    monkeypatch.setattr(os, "sysconf", {"SC_AVPHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert available_memory() == 4096 * 1000
    (machine / "meminfo").unlink()
    assert available_memory() == 4096 * 1000
    monkeypatch.setattr(os, "sysconf_names", {})
    assert available_memory() is None


def test_a_gpu_has_its_own_memory(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (7 * GIB, 9 * GIB))
    assert available_memory("cuda:0") == 7 * GIB


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc, whose allocator is set up here")
def test_freed_memory_is_used_again():
    without, kept = map(int, subprocess.check_output([sys.executable, "-c", SCRIPT], text=True).split())
    assert without > 10 * max(kept, 1)


def test_other_allocators_are_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not memory.keep_freed_memory()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc, whose allocator is set up here")
def test_memory_is_reused_where_twice_of_what_is_needed_is_available(machine, monkeypatch):
    set_to: list[tuple[int, int]] = []

    def mallopt(*setting):
        set_to.append(setting)
        return 1

    monkeypatch.setattr("asgat.memory.ctypes.CDLL", lambda name: SimpleNamespace(mallopt=mallopt))
    assert not memory.keep_freed_memory(4 * GIB + 1)
    assert not set_to
    assert memory.keep_freed_memory(4 * GIB)
    assert len(set_to) == 2
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    assert memory.keep_freed_memory(100 * GIB), "unknown memory refuses nothing"
