"""Where the time of one epoch of asgat-cheb goes on one core: every kernel with the bytes it must read and write.

python benchmarks/profile_epoch.py --datasets texas,cora,pubmed

With --against, instead: the time of an epoch next to that of GAT as PyG's users write it, and of a tuned GAT, in turns,
and the calls of PyTorch's operators in an epoch.

Times are processor time of the thread, so that other processes disturb them little. The bytes of a kernel are those of
its arguments and its result, each once.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from functools import partial
from typing import Any

import torch
import torch.profiler
from torch import Tensor

from asgat.bench.epoch import GAT, PlainProgram, published_config
from asgat.data import load_dataset
from asgat.kernels import backend
from asgat.kernels.sparse_features import SparseFeatures
from asgat.threads import thread_limit
from asgat.training.inputs import normalise_rows
from asgat.training.program import EagerEpochs, Program, Task, one_run
from asgat.training.run_state import Job, Run
from asgat.training.runner import make_task

WARM_UP, EPOCHS, TURNS = 5, 30, 7


class Meter:
    """Stands for a module of kernels, and adds up calls, seconds and bytes of its functions."""

    def __init__(self, module: Any, totals: dict[str, list[float]]) -> None:
        self.module, self.totals = module, totals

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.module, name)

        def measured(*arguments: Any) -> Any:
            started = time.thread_time()
            result = function(*arguments)
            total = self.totals[name]
            total[0] += 1
            total[1] += time.thread_time() - started
            total[2] += sum(map(size, (*arguments, *(result if isinstance(result, tuple) else (result,)))))
            return result

        return measured


def size(value: Any) -> int:
    return value.numel() * value.element_size() if isinstance(value, Tensor) else 0


def profile(name: str) -> None:
    data, config = load_dataset(name), published_config(name)
    task = make_task(data, "asgat-cheb", config, torch.device("cpu"))
    epochs = EagerEpochs(one_run(task, data.splits[0], config))
    for _ in range(WARM_UP):
        epochs.run(1)
    started = time.thread_time()
    for _ in range(EPOCHS):
        epochs.run(1)
    whole = 1000 * (time.thread_time() - started) / EPOCHS
    totals: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0])
    load, backend._load = backend._load, lambda *key: Meter(load(*key), totals)  # type: ignore[assignment]
    try:
        for _ in range(EPOCHS):
            epochs.run(1)
    finally:
        backend._load = load
    print(f"\n{name}: {whole:.1f} ms of one core per epoch\n\n| kernel | calls | ms | % | MB | GB/s |")
    print("|---|---|---|---|---|---|")
    for kernel, (calls, seconds, moved) in sorted(totals.items(), key=lambda item: -item[1][1]):
        ms, megabytes = 1000 * seconds / EPOCHS, moved / EPOCHS / 1e6
        figures = f"{calls / EPOCHS:.0f} | {ms:.2f} | {100 * ms / whole:.0f} | {megabytes:.1f} | {megabytes / ms:.1f}"
        print(f"| {kernel} | {figures} |")
    rest = whole - sum(1000 * seconds / EPOCHS for _, seconds, _ in totals.values())
    print(f"| the rest: PyTorch's operators, autograd and Python | | {rest:.2f} | {100 * rest / whole:.0f} | | |")


def compare(name: str) -> None:
    data, config, device = load_dataset(name), published_config(name), torch.device("cpu")
    x = torch.from_numpy(normalise_rows(data.x))
    edges, looped = (
        torch.from_numpy(data.graph.with_self_loops(how).edge_index()) for how in (config.self_loops, "add")
    )
    gat = partial(GAT, data.num_features, config, data.num_classes)
    labels = torch.from_numpy(data.y)
    tasks = {
        "asgat": (make_task(data, "asgat-cheb", config, device), Program),
        "GAT": (Task(lambda _: gat(), (x, edges), labels, data.metric), PlainProgram),
        "GAT tuned": (Task(lambda _: gat(sparse=True), (SparseFeatures.from_dense(x), looped), labels), Program),
    }
    epochs = {
        key: EagerEpochs(kind(task, Run(Job(data.splits[0], 0, config), 0.0))) for key, (task, kind) in tasks.items()
    }
    times: dict[str, list[float]] = {key: [] for key in epochs}
    for turn in range(TURNS + 1):  # the first compiles and warms up
        for key, one in epochs.items():
            started, count = time.process_time(), 0
            while count < 3 or time.process_time() - started < 0.15:
                one.run(1)
                count += 1
            if turn:
                times[key].append(1000 * (time.process_time() - started) / count)
    median = {key: statistics.median(own) for key, own in times.items()}
    print(f"\n{name}: medians of {TURNS}\n\n| model | ms | ÷ asgat | calls of operators |\n|---|---|---|---|")
    for key, one in epochs.items():
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
            one.run(1)
        calls = sum(event.count for event in found.key_averages() if event.key.startswith("aten::"))
        print(f"| {key} | {median[key]:.2f} | {median[key] / median['asgat']:.2f} | {calls} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--datasets", default="texas,cora,pubmed")
    parser.add_argument("--against", action="store_true", help="compare with GAT")
    arguments = parser.parse_args()
    with thread_limit(1):
        for name in arguments.datasets.split(","):
            (compare if arguments.against else profile)(name)


if __name__ == "__main__":
    main()
