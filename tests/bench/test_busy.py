import os
import subprocess
import sys
import time

import pytest
import torch

from asgat.bench import busy
from asgat.bench.busy import bench_busy, busy_processes
from asgat.config import ASGATConfig
from asgat.data import load_dataset

CONFIG = ASGATConfig(order=4, heads=2, hidden=4, k=3, form="table")


def test_a_row_has_both_times_and_their_ratio():
    said: list[str] = []
    row = bench_busy(load_dataset("karate"), CONFIG, torch.device("cpu"), said.append, repeats=1, busy=1)
    assert (row["dataset"], row["nodes"]) == ("karate", 34)
    assert row["quiet_ms"] > 0 < row["busy_ms"]
    assert row["ratio"] == pytest.approx(row["busy_ms"] / row["quiet_ms"])
    assert "karate: repeat 1 of 1" in said


def test_times_are_medians_and_the_busy_ones_have_company(monkeypatch):
    company, clock = [0], iter([1.0, 9.0, 2.0, 4.0, 3.0, 5.0])
    met = []

    class Company:
        def __init__(self, count):
            self.count = count

        def __enter__(self):
            company.append(self.count)

        def __exit__(self, *_):
            company.pop()

    def fake(*_):
        def run():
            met.append(company[-1])
            return next(clock)

        return run

    monkeypatch.setattr(busy, "timer", fake)
    monkeypatch.setattr(busy, "busy_processes", Company)
    row = bench_busy(load_dataset("karate"), CONFIG, torch.device("cpu"), print, repeats=3, busy=2)
    assert met == [0, 2] * 3
    assert (row["quiet_ms"], row["busy_ms"], row["ratio"]) == (2.0, 5.0, 2.5)


def test_busy_processes_run_until_the_block_ends(monkeypatch):
    made = []
    original = subprocess.Popen

    def remember(*arguments, **options):
        made.append(original(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(subprocess, "Popen", remember)
    with busy_processes(2):
        assert [process.poll() for process in made] == [None, None]
    assert len(made) == 2
    assert all(process.returncode is not None for process in made)


def test_a_busy_process_does_not_outlive_its_parent(tmp_path):
    script = "import subprocess, sys\nfrom asgat.bench.busy import _BUSY\n"
    script += "child = subprocess.Popen([sys.executable, '-c', _BUSY], stdout=subprocess.PIPE)\n"
    script += "child.stdout.readline()\nprint(child.pid)"
    child = int(subprocess.check_output([sys.executable, "-c", script], text=True))
    for _ in range(200):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        if ") Z " in _status(child):
            return
        time.sleep(0.05)
    pytest.fail("it still runs")


def _status(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ") Z "
