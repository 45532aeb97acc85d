"""Time of one epoch with busy processes on the same machine, compared with the time without them."""

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch

from asgat.bench.epoch import timer
from asgat.config import ASGATConfig
from asgat.data import Dataset
from asgat.nn.registry import model_spec
from asgat.training.inputs import make_inputs

# Says that it has begun, and ends with the process that started it.
_BUSY = "import os\nparent = os.getppid()\nprint(flush=True)\nwhile os.getppid() == parent:\n    sum(range(10**5))"


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keeps that many other processes computing, one thread each, while the body runs."""
    with ExitStack() as started:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", _BUSY], stdout=subprocess.PIPE)
            started.enter_context(process)
            started.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
        yield


def bench_busy(
    data: Dataset,
    config: ASGATConfig,
    device: torch.device,
    progress: Callable[[str], None],
    repeats: int = 7,
    busy: int = 1,
) -> dict[str, Any]:
    """Milliseconds of one epoch of ASGAT without and with busy processes, in turns: medians and their ratio."""
    progress(f"{data.name}: building the table")
    inputs = make_inputs(data, "asgat-cheb", config, device)
    asgat = partial(model_spec("asgat-cheb").build, config, data.num_features, data.num_classes)
    run = timer(asgat, inputs, data, config, device, True)
    quiet, crowded = [], []
    for repeat in range(repeats):
        progress(f"{data.name}: repeat {repeat + 1} of {repeats}")
        quiet.append(run())
        with busy_processes(busy):
            crowded.append(run())
    times = {"quiet_ms": statistics.median(quiet), "busy_ms": statistics.median(crowded)}
    return {"dataset": data.name, "nodes": data.num_nodes, **times, "ratio": times["busy_ms"] / times["quiet_ms"]}
