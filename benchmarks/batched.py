"""Ten splits stacked and one after the other: seconds, and whether the scores are the same.

python benchmarks/batched.py --datasets texas,chameleon --device cuda --json batched.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from asgat.data import load_dataset
from asgat.recipe import load_config
from asgat.training.loop import train_jobs
from asgat.training.run_state import Job, RunResult, run_seed
from asgat.training.runner import make_task, run_split


def compare(name: str, model: str, runs: list[int], device: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Both ways with the data set's recipe, after a few epochs of each that compile kernels."""
    dataset, config = load_dataset(name), load_config(name, model, changes)
    task = make_task(dataset, model, config, torch.device(device))

    def train(settings: Any, at_once: int | None) -> tuple[float, list[float]]:
        jobs = [Job(run_split(dataset, i), run_seed(0, i, len(dataset.splits)), settings, i) for i in runs]
        start = time.perf_counter()
        outcomes = dict(train_jobs(task, jobs, at_once))
        scores = [outcome.micro_f1 for _, outcome in sorted(outcomes.items()) if isinstance(outcome, RunResult)]
        return time.perf_counter() - start, scores

    ways = {"stacked": None, "sequential": 1}
    for at_once in ways.values():
        train(config.replace(epochs=2, max_restarts=0), at_once)
    timed = {way: train(config, at_once) for way, at_once in ways.items()}
    figures = {way: {"seconds": seconds, "micro_f1": scores} for way, (seconds, scores) in timed.items()}
    return {"dataset": name, "model": model, "device": device, "config": config.to_dict(), **figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="texas")
    parser.add_argument("--model", default="asgat-cheb")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epochs", type=int, help="fewer epochs than the recipe has")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    changes = {"epochs": options.epochs} if options.epochs else {}
    rows = []
    for name in options.datasets.split(","):
        row = compare(name, options.model, list(range(options.runs)), options.device, changes)
        rows.append(row)
        stacked, sequential = row["stacked"], row["sequential"]
        same = "the same" if stacked["micro_f1"] == sequential["micro_f1"] else "other"
        ratio = sequential["seconds"] / stacked["seconds"]
        print(f"{name}, {options.model}: stacked {stacked['seconds']:.1f} s, one after the other "
              f"{sequential['seconds']:.1f} s ({ratio:.2f} times); {same} scores", flush=True)  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
