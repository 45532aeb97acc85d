import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numba
import pytest
import torch
from threadpoolctl import threadpool_info

from asgat import threads
from asgat.kernels.cpu.jit import num_threads
from asgat.threads import available_cores, available_threads, given_threads, set_threads, thread_limit, wait_passively


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A function that describes a machine: cores to run on, files of control groups, ranks."""

    def make(cores, files=None, own="0::/\n", ranks=None):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
        monkeypatch.setattr(threads, "_CGROUP", tmp_path / "cgroup")
        monkeypatch.setattr(threads, "_OWN_CGROUP", tmp_path / "own")
        (tmp_path / "own").write_text(own)
        for name, text in (files or {}).items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
        if ranks is not None:
            monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)

    return make


@pytest.mark.parametrize(
    ("description", "cores"),
    [
        ({}, 8),
        ({"files": {"cpu.max": "max 100000\n"}}, 8),
        ({"files": {"cpu.max": "250000 100000\n"}}, 2),
        ({"files": {"cpu.max": "50000 100000\n"}}, 1),
        ({"files": {"cpu.max": "1600000 100000\n"}}, 8),
        ({"files": {"cpu.max": "garbage"}}, 8),
        ({"files": {"cpu.max": "100000 0"}}, 8),
        ({"files": {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, "own": "0::/a/b\n"}, 3),
        ({"files": {"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}}, 4),
        ({"files": {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}}, 8),
        ({"own": ""}, 8),
        ({"ranks": "2"}, 4),
        ({"ranks": "20"}, 1),
        ({"ranks": "many"}, 8),
        ({"ranks": "0"}, 8),
    ],
)
def test_cores_are_those_this_process_gets(machine, description, cores):
    machine(8, **description)
    assert available_cores() == cores


def test_a_given_number_is_used_otherwise_the_smaller_of_pytorchs_and_the_cores(machine, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    machine(3)
    assert (given_threads(), available_threads()) == (None, 3)
    machine(16)
    assert available_threads() == 4
    set_threads(7)
    try:
        assert (given_threads(), available_threads()) == (7, 7)
    finally:
        set_threads(None)


def test_a_limit_holds_for_all_that_compute_and_ends(monkeypatch):
    def counts():
        blas = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
        with ThreadPoolExecutor(1) as pool:
            elsewhere = pool.submit(torch.get_num_threads).result()
        return torch.get_num_threads(), elsewhere, num_threads(10**9), blas

    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 8)
    before = counts()
    with thread_limit(1):
        assert counts() == (1, 1, 1, {1})
    with thread_limit(2):
        assert counts()[:3] == (2, 2, 2)
    assert counts() == before


def test_idle_threads_sleep_in_a_command_but_the_library_changes_nothing(monkeypatch):
    script = "import os, asgat.threads\n{}\nprint(os.environ.get('OMP_WAIT_POLICY'), os.environ.get('KMP_BLOCKTIME'))"
    passive = "asgat.threads.wait_passively()"
    environment = {key: value for key, value in os.environ.items() if key not in ("OMP_WAIT_POLICY", "KMP_BLOCKTIME")}

    def printed(body, **more):
        command = [sys.executable, "-c", script.format(body)]
        return subprocess.check_output(command, env={**environment, **more}, text=True).split()

    assert printed(passive) == ["passive", "0"]
    assert printed(passive, OMP_WAIT_POLICY="active") == ["active", "0"], "what the user set stays"
    assert printed("") == ["None", "None"]
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    wait_passively()
    assert "OMP_WAIT_POLICY" not in os.environ, "PyTorch is loaded: it would have no effect but on other programs"
