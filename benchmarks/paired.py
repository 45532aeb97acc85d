"""Does the candidate table cost accuracy? A paired comparison with all pairs over ten splits and three seeds.

python benchmarks/paired.py --dataset texas --json paired-texas.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from asgat.bench.epoch import published_config
from asgat.data import load_dataset
from asgat.training.runner import run


def compare(dataset: str, seeds: list[int], runs: list[int], device: str) -> dict[str, Any]:
    """Micro-F1 of both forms on the same splits and seeds, and the 95 % interval of their mean difference."""
    data = load_dataset(dataset)
    scores: dict[str, list[float]] = {"table": [], "dense": []}
    for seed in seeds:
        for form, values in scores.items():
            config = published_config(dataset, form=form)
            values += run(data, "asgat-cheb", config, runs, seed, device)["micro_f1"]["per_run"]
            print(f"seed {seed}, {form}: mean so far {np.mean(values):.4f}", flush=True)
    difference = np.array(scores["table"]) - np.array(scores["dense"])
    half = t.ppf(0.975, len(difference) - 1) * difference.std(ddof=1) / np.sqrt(len(difference))
    return {
        "dataset": dataset,
        "seeds": seeds,
        "runs": runs,
        **scores,
        "mean_difference": float(difference.mean()),
        "interval": [float(difference.mean() - half), float(difference.mean() + half)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="texas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = compare(options.dataset, list(range(options.seeds)), list(range(options.runs)), options.device)
    low, high = (100 * value for value in result["interval"])
    mean = 100 * result["mean_difference"]
    print(f"{options.dataset}: table - all pairs = {mean:+.2f} points, 95 % interval [{low:+.2f}, {high:+.2f}]")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
