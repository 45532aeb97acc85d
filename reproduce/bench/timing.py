"""How long an epoch of training and evaluation takes, by asgat's training loop and by a plain one of PyTorch."""

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from asgat.config import TrainConfig
from asgat.data import Dataset
from asgat.threads import thread_limit
from asgat.training.epoch_threads import epoch_threads
from asgat.training.loop import train
from asgat.training.program import Task
from asgat.training.run_state import Epoch, RunResult

Timer = Callable[[], float]  # milliseconds of an epoch
Build = Callable[[TrainConfig], nn.Module]
SECONDS = 0.2  # of a measurement, at least
MOST_EPOCHS = 512  # of a measurement
RECORDED = 16  # epochs that CUDA replays before their figures are known


def timed_training(
    build: Build, inputs: tuple[Any, ...], data: Dataset, config: TrainConfig, epochs: int
) -> tuple[float, RunResult]:
    """Trains on the first split by the loop of every model of asgat; milliseconds of one of that many epochs.

    Others come first: they compile, make the first selection and, on CUDA, record what is replayed.
    """
    ends: list[float] = []  # on CUDA those of a chunk are known together
    chunk = RECORDED if inputs[0].device.type == "cuda" else 1
    counted = chunk * math.ceil(epochs / chunk)
    config = config.replace(epochs=chunk + counted, patience=chunk + counted, max_restarts=0)
    y, split = torch.from_numpy(data.y).to(inputs[0].device), data.splits[0]

    def progress(_: Epoch) -> None:
        ends.append(time.perf_counter())

    result = train(build, inputs, y, split, config, metric=data.metric, progress=progress)
    return 1000 * (ends[-1] - ends[chunk - 1]) / counted, result


def asgat_timer(build: Build, inputs: tuple[Any, ...], data: Dataset, config: TrainConfig) -> Timer:
    """Times the loop that trains every model of asgat."""
    rough, _ = timed_training(build, inputs, data, config, 1)
    epochs = min(MOST_EPOCHS, math.ceil(1000 * SECONDS / rough))
    return lambda: timed_training(build, inputs, data, config, epochs)[0]


def plain_timer(build: Build, inputs: tuple[Any, ...], data: Dataset, config: TrainConfig) -> Timer:
    """Times a loop as users of PyTorch write it, on as many threads as asgat's."""
    device = inputs[0].device
    model, y = build(config).to(device), torch.from_numpy(data.y).to(device)
    nodes, val = (torch.from_numpy(part).to(device) for part in (data.splits[0].train, data.splits[0].val))
    optimiser = (torch.optim.AdamW if config.decoupled_decay else torch.optim.Adam)(
        model.parameters(), lr=config.lr, weight_decay=config.weight_decay
    )
    threads = epoch_threads(Task(build, inputs, y, data.metric), config)

    def epoch() -> None:
        model.train()
        optimiser.zero_grad()
        loss = F.cross_entropy(model(*inputs)[nodes], y[nodes])
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        model.eval()
        with torch.no_grad():
            logits = model(*inputs)[val]
            _ = loss.item(), F.cross_entropy(logits, y[val]).item(), (logits.argmax(-1) == y[val]).sum().item()

    def run() -> float:
        with thread_limit(threads):
            started, count = time.perf_counter(), 0
            while not count or (time.perf_counter() - started < SECONDS and count < MOST_EPOCHS):
                epoch()
                count += 1
            return 1000 * (time.perf_counter() - started) / count

    run()
    return run


def medians(
    contenders: dict[str, Timer], repeats: int, progress: Callable[[str], None], most: dict[str, int] | None = None
) -> dict[str, float]:
    """The median time of every contender; they take turns, some of them a limited number of times."""
    times: dict[str, list[float]] = {key: [] for key in contenders}
    for repeat in range(repeats):
        progress(f"repeat {repeat + 1} of {repeats}")
        for key, run in contenders.items():
            if repeat < (most or {}).get(key, repeats):
                times[key].append(run())
    return {key: statistics.median(values) for key, values in times.items()}
