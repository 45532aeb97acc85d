"""Ten splits trained as one program and one after the other: seconds and scores of both.

python benchmarks/batched.py --datasets texas,chameleon --device cuda --json batched.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from asgat.training.batched import run_batched

from asgat.data import load_dataset
from asgat.recipe import load_config
from asgat.training.runner import run


def compare(name: str, model: str, runs: list[int], device: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Both ways with the data set's recipe, including the table, after a few epochs of each that compile kernels."""
    dataset = load_dataset(name)
    config = load_config(name, model, changes)
    few = config.replace(epochs=2, max_restarts=0)
    run_batched(dataset, model, [few], runs, device=device)
    run(dataset, model, few, runs[:1], device=device)
    seconds, results = [], []
    for way in ("batched", "sequential"):
        start = time.perf_counter()
        if way == "batched":
            results += run_batched(dataset, model, [config], runs, device=device)
        else:
            results.append(run(dataset, model, config, runs, device=device))
        seconds.append(time.perf_counter() - start)
    return {
        "dataset": name,
        "model": model,
        "runs": len(runs),
        "device": device,
        "config": config.to_dict(),
        "batched_seconds": seconds[0],
        "sequential_seconds": seconds[1],
        "ratio": seconds[1] / seconds[0],
        "batched": {key: results[0][key] for key in ("micro_f1", "epochs", "ms_per_epoch", "restarts")},
        "sequential": {key: results[1][key] for key in ("micro_f1", "epochs", "ms_per_epoch", "restarts")},
    }


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
        scores = ", ".join(
            f"{way} {100 * row[way]['micro_f1']['mean']:.2f} ± {100 * row[way]['micro_f1']['std']:.2f} in "
            f"{row[way + '_seconds']:.1f} s, {row[way]['epochs']:.0f} epochs"
            for way in ("batched", "sequential")
        )
        print(f"{name}, {options.model}, {row['runs']} runs: {scores}; {row['ratio']:.2f} times as fast", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
