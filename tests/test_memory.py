"""Available memory, of the machine, of a control group, of a GPU, and the memory of large arrays that is reused."""

import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from asgat import memory
from asgat.errors import AsgatError
from asgat.memory import available_memory, check_memory

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

STEPS = """
import resource
import torch
from asgat.data import contextual_sbm
from asgat.memory import keep_freed_memory
from asgat.nn.registry import make_config
from asgat.training.program import EagerEpochs, one_run
from asgat.training.runner import make_task, step_bytes

def held(name):
    fields = dict(line.split(":") for line in open("/proc/self/status"))
    return int(fields[name].split()[0]) * 1024

data = contextual_sbm(num_nodes=20_000, mean_degree=4.0, num_features=8, seed=0)
config = make_config(
    "asgat-deep", order=2, heads=4, k=8, candidates=8, neighbourhood=16, hidden=64, form="table", builder="truncated",
    channels="attention+filters", normalize_features=False, dropout=0.1,
)
task = make_task(data, "asgat-deep", config, torch.device("cpu"))
epochs = EagerEpochs(one_run(task, data.splits[0], config))
epochs.run(1)  # compiles
planned = step_bytes(data, config, torch.device("cpu"))
assert keep_freed_memory(planned)
before = held("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
for _ in range(4):
    epochs.run(1)
print(held("VmHWM") - before, planned)
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


def test_what_does_not_fit_is_refused_with_both_figures(free_memory):
    free_memory(3 << 20)
    check_memory(3 << 20, "a.npz")
    with pytest.raises(AsgatError, match=r"^a\.npz needs 1,048,576 MiB of memory, and 3 MiB are free; close other pro"):
        check_memory(1 << 40, "a.npz")
    free_memory(None)  # unknown: tried
    check_memory(1 << 40, "a.npz")


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


@pytest.fixture
def glibc(machine, monkeypatch):
    """Calls of an allocator that does nothing, in a process that holds 3 pages beside mapped files."""
    calls: list[tuple[object, ...]] = []

    def function(name):
        def call(*arguments):
            calls.append((name, *arguments))
            return 1

        return call

    library = SimpleNamespace(mallopt=function("mallopt"), malloc_trim=function("malloc_trim"))
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr("asgat.memory.ctypes.CDLL", lambda name: library)
    monkeypatch.setattr(memory, "_STATM", machine / "statm")
    monkeypatch.setattr(memory, "_bound", None)
    write(machine, statm="900 10 7 1 0 5 0\n")
    return calls


def test_memory_is_reused_where_twice_of_what_is_needed_is_available(glibc, monkeypatch):
    assert not memory.keep_freed_memory(4 * GIB + 1)
    assert not glibc
    assert memory.keep_freed_memory(4 * GIB)
    assert [name for name, *_ in glibc] == ["mallopt", "mallopt", "malloc_trim"]
    assert not memory.keep_freed_memory(2 * GIB + 1, processes=2)
    assert memory.keep_freed_memory(2 * GIB, processes=2)
    assert memory.keep_freed_memory(4 * GIB, processes=2, bounded=True)
    assert not memory.keep_freed_memory(4 * GIB + 1, processes=2, bounded=True)
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    assert memory.keep_freed_memory(100 * GIB), "unknown memory refuses nothing"


@pytest.mark.parametrize(("more", "returned"), [(0, False), (4, False), (5, True)])
def test_memory_beyond_what_is_held_and_needed_is_returned(glibc, machine, more, returned):
    page = os.sysconf("SC_PAGE_SIZE")
    assert memory.keep_freed_memory(4 * page)
    glibc.clear()
    write(machine, statm=f"900 {110 + more} 107 1 0 5 0\n")
    assert memory.return_freed_memory() == returned
    assert glibc == ([("malloc_trim", 0)] if returned else [])


@pytest.mark.parametrize(("needed", "bound"), [(4, 4), (6, 6), (8, 6)])
def test_the_bound_leaves_room_for_gaps(glibc, monkeypatch, needed, bound):
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * 8 * GIB)
    assert memory.keep_freed_memory(needed * GIB, processes=2, bounded=True)
    assert memory._bound == memory._held_memory() + bound * GIB


def test_a_plan_that_is_too_small_is_no_bound(glibc, machine):
    """Returning memory again and again would take time and save nothing."""
    assert memory.keep_freed_memory(os.sysconf("SC_PAGE_SIZE"))
    write(machine, statm="900 100 0 1 0 5 0\n")  # and as much after it was returned
    assert memory.return_freed_memory()
    assert not memory.return_freed_memory()


def test_without_a_plan_nothing_is_returned(glibc, machine):
    write(machine, statm="900 900 0 1 0 5 0\n")
    assert not memory.return_freed_memory(), "the process was not set up"
    assert memory.keep_freed_memory()
    glibc.clear()
    assert not memory.return_freed_memory()
    assert not glibc


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc, whose allocator is set up here")
def test_a_deep_model_holds_what_was_planned():
    """Peak memory of training steps, in a process that reuses memory: gaps between arrays do not add up."""
    peak, planned = map(int, subprocess.check_output([sys.executable, "-c", STEPS], text=True).split())
    assert planned > 50 << 20
    assert peak < 1.25 * planned
