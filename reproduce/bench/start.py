"""How long imports and the quick commands take, next to importing PyTorch."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from asgat.errors import AsgatError

TORCH = "import torch"
STARTS = {
    TORCH: ("-c", TORCH),
    "import asgat": ("-c", "import asgat"),
    "from asgat import ASGATClassifier": ("-c", "from asgat import ASGATClassifier"),
    "asgat --help": ("-m", "asgat", "--help"),
    "asgat models": ("-m", "asgat", "models"),
    "asgat datasets": ("-m", "asgat", "datasets"),
}


def bench_start(say: Callable[[str], None], repeats: int = 7) -> list[dict[str, Any]]:
    """Median seconds of new processes that take turns, and their ratios to ``import torch`` in the same run.

    Seconds of the processor (``cpu_s``, user and system) suffer less from other processes than those on the clock
    (``wall_s``). ``asgat datasets`` finds no files. A first round, which fills the caches of the file system, does not
    count.
    """
    clock: dict[str, list[float]] = {what: [] for what in STARTS}
    cpu: dict[str, list[float]] = {what: [] for what in STARTS}
    with tempfile.TemporaryDirectory() as empty:
        for repeat in range(repeats + 1):
            for what, arguments in STARTS.items():
                say(f"{what}, {repeat} of {repeats}")
                seconds = time_process([sys.executable, *arguments], {**os.environ, "ASGAT_DATA_DIR": empty})
                if repeat:
                    clock[what].append(seconds[0])
                    cpu[what].append(seconds[1])
    return [
        {
            "what": what,
            "wall_s": median(clock[what]),
            "cpu_s": median(cpu[what]),
            "wall_ratio": median(clock[what]) / median(clock[TORCH]),
            "cpu_ratio": median(cpu[what]) / median(cpu[TORCH]),
            "cpu_over_torch_s": median(own - torch for own, torch in zip(cpu[what], cpu[TORCH], strict=True)),
        }
        for what in STARTS
    ]


def time_process(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds on the clock and of the processor that a process takes from its start to its end."""
    start = perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    wall = perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise AsgatError(f"`{' '.join(command)}` ended with exit code {process.returncode}; run it to see why.")
    return wall, used.ru_utime + used.ru_stime
