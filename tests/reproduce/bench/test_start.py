import os
import sys

import pytest

from asgat.errors import AsgatError
from reproduce.bench import start
from reproduce.bench.start import STARTS, TORCH, bench_start, time_process


def test_processes_take_turns_and_are_compared_with_pytorch(monkeypatch):
    ran: list[tuple[str, ...]] = []
    said: list[str] = []

    def fake(command, environment):
        ran.append(tuple(command[1:]))
        assert os.listdir(environment["ASGAT_DATA_DIR"]) == []
        first = len(ran) <= len(STARTS)
        seconds = {TORCH: 2.0, "import asgat": 0.5}.get(command[-1], 3.0)
        return (100.0, 100.0) if first else (seconds, seconds / 2)

    monkeypatch.setattr(start, "time_process", fake)
    rows = {row["what"]: row for row in bench_start(said.append, repeats=3)}
    assert ran == [tuple(arguments) for arguments in STARTS.values()] * 4, "a round that does not count, and three"
    assert list(rows) == list(STARTS)
    assert (rows[TORCH]["wall_s"], rows[TORCH]["cpu_s"], rows[TORCH]["wall_ratio"]) == (2.0, 1.0, 1.0)
    quick = rows["import asgat"]
    assert (quick["wall_ratio"], quick["cpu_ratio"], quick["cpu_over_torch_s"]) == (0.25, 0.25, -0.75)
    assert len(said) == len(ran)


def test_a_process_is_timed():
    busy = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass\ntime.sleep(0.3)"
    wall, cpu = time_process([sys.executable, "-c", busy], dict(os.environ))
    assert wall >= 0.5
    assert 0.2 <= cpu <= wall
    with pytest.raises(AsgatError, match="ended with exit code 3; run it to see why"):
        time_process([sys.executable, "-c", "import sys; sys.exit(3)"], dict(os.environ))
