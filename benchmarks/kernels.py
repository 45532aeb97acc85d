"""Where the time of a captured epoch goes: busy microseconds of every CUDA kernel.

python benchmarks/kernels.py --datasets citeseer,pubmed
"""

from __future__ import annotations

import argparse

import torch
from torch.profiler import ProfilerActivity, profile

from asgat.bench.epoch import published_config
from asgat.data import load_dataset
from asgat.training.program import CapturedEpochs, one_run
from asgat.training.runner import make_task


def kernel_times(dataset: str) -> list[tuple[str, float, float]]:
    """Name, microseconds and launches per epoch of every kernel, longest first, with the published settings."""
    device = torch.device("cuda")
    data, config = load_dataset(dataset), published_config(dataset)
    task = make_task(data, "asgat-cheb", config, device)
    epochs = CapturedEpochs(one_run(task, data.splits[0], config))
    for _ in range(3):
        epochs.run(epochs.chunk)
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        epochs.run(epochs.chunk)
        torch.cuda.synchronize()
    events = sorted(profiler.key_averages(), key=lambda event: -event.self_device_time_total)
    return [(e.key, e.self_device_time_total / epochs.chunk, e.count / epochs.chunk) for e in events]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="citeseer,pubmed")
    parser.add_argument("--show", type=int, default=25, help="kernels listed")
    options = parser.parse_args()
    for dataset in options.datasets.split(","):
        rows = kernel_times(dataset)
        print(f"{dataset}: {sum(us for _, us, _ in rows):.0f} µs busy, {sum(n for *_, n in rows):.0f} kernels an epoch")
        for name, us, launches in rows[: options.show]:
            print(f"{us:9.1f} µs in {launches:4.1f}  {name[:90]}")


if __name__ == "__main__":
    main()
