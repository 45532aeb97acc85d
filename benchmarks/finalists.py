"""Scores the best trials of searches and the current recipe again with other seeds. Test nodes are not used.

A search's best trial is partly lucky. With another seed the initial weights differ and, with folds, other nodes are
left out; the settings that are best on average over new seeds are the recipe to keep.

python benchmarks/finalists.py runs/tune-cora-asgat-plus-seed7/trials.jsonl --folds 0,5 --device cuda --json cora.json
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from asgat.data import load_dataset
from asgat.nn.registry import make_config
from asgat.recipe import load_config
from asgat.tuning.evaluation import Evaluation

ENOUGH = 100  # macro-F1 is only used on at least this many nodes
SEARCHED_ONLY = {"epochs"}  # fixed to make a search short


def candidates(logs: list[list[dict[str, Any]]], count: int, members: int | None) -> list[dict[str, Any]]:
    """The recipe's settings, and the best trials of each log by its own score."""
    dataset, model = logs[0][0]["dataset"], logs[0][0]["model"]
    rows = [{"trial": "recipe", "settings": load_config(dataset, model).to_dict()}]
    for place, lines in enumerate(logs):
        for line in sorted(lines, key=lambda line: -line["value"])[:count]:
            settings = {key: value for key, value in line["settings"].items() if key not in SEARCHED_ONLY}
            rows.append({"trial": f"{place}:{line['trial']}", "settings": settings})
    for row in rows:
        row["settings"] |= {"members": members} if members else {}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, nargs="+", help="trials.jsonl of searches of one model on one data set")
    parser.add_argument("--count", type=int, default=5, help="trials of each log that are scored again")
    parser.add_argument("--members", type=int, help="networks of an ensemble, for all candidates")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument(
        "--folds",
        default="0",
        help="parts of the training nodes; 0: validation nodes; or both: 0,5",
    )
    parser.add_argument("--runs", type=int, default=10, help="trainings per seed if validation nodes are used")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="a line for every candidate, kind of score and seed")
    args = parser.parse_args()
    logs = [[json.loads(line) for line in log.read_text().splitlines()] for log in args.log]
    dataset, model = (logs[0][0][key] for key in ("dataset", "model"))
    data, rows = load_dataset(dataset), []
    several = len(data.splits) > 1
    for seed in map(int, args.seeds.split(",")):
        for folds in map(int, args.folds.split(",")):
            runs = range(args.runs) if several or not folds else [0]
            scored = len(data.splits[0].train) / folds if folds else len(data.splits[0].val)
            # With one split the runs have consecutive seeds, so that seeds must be apart.
            first = seed if several else 10 * seed
            evaluation = Evaluation(data, model, runs, first, args.device, folds, macro=scored >= ENOUGH)
            for row in candidates(logs, args.count, args.members):
                score = evaluation(make_config(model, **row["settings"]))
                rows.append({"dataset": dataset, "model": model, "seed": seed, "folds": folds, **row, **asdict(score)})
                print(f"{dataset} seed {seed} folds {folds} {row['trial']:>7}: {100 * score.mean:.2f}", flush=True)
                if args.json:
                    args.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print("\nmean over seeds and kinds of score, in percent; macro-F1 is half of it if there are enough nodes")
    print("  trial  score  macro  validation")
    means = []
    for trial in dict.fromkeys(row["trial"] for row in rows):
        own = [row for row in rows if row["trial"] == trial]
        means.append((trial, *(100 * np.mean([row[key] for row in own]) for key in ("mean", "macro", "val"))))
    for trial, score, macro, val in sorted(means, key=lambda one: -one[1]):
        print(f"{trial:>7}  {score:5.2f}  {macro:5.2f}  {val:5.2f}")


if __name__ == "__main__":
    main()
