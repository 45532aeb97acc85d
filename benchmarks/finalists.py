"""The best trials of a search and the recipe of before, judged again with other seeds. Test nodes have no part.

A search's best trial is partly lucky. With another seed training begins elsewhere and, with folds, other nodes are left
out; what is best on average over seeds the search has not seen is the recipe to keep.

python benchmarks/finalists.py runs/tune-cora-asgat-plus-seed7/trials.jsonl --folds 5 --device cuda --json cora.json
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

ENOUGH = 100  # nodes in a part, from which on its macro-F1 says something
SEARCHED_ONLY = {"epochs"}  # held to make a search short


def contestants(lines: list[dict[str, Any]], count: int, with_macro: bool) -> list[dict[str, Any]]:
    """The best trials, and first the recipe's settings."""
    dataset, model = lines[0]["dataset"], lines[0]["model"]
    best = sorted(lines, key=lambda line: -_rank(line["value"], line["macro"], with_macro))[:count]
    rows = [{"trial": "recipe", "settings": load_config(dataset, model).to_dict()}]
    for line in best:
        settings = {key: value for key, value in line["settings"].items() if key not in SEARCHED_ONLY}
        rows.append({"trial": line["trial"], "settings": settings})
    return rows


def _rank(micro: float, macro: float, with_macro: bool) -> float:
    return (micro + macro) / 2 if with_macro else micro


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, nargs="+", help="trials.jsonl of searches of one model on one data set")
    parser.add_argument("--count", type=int, default=5, help="trials that are judged again")
    parser.add_argument("--members", type=int, default=1, help="networks of a committee, of every contestant")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--folds", type=int, default=0, help="parts of the training nodes; 0: validation nodes judge")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="a line for every contestant and seed")
    args = parser.parse_args()
    lines = [json.loads(line) for log in args.log for line in log.read_text().splitlines()]
    dataset, model, runs = (lines[0][key] for key in ("dataset", "model", "runs"))
    data = load_dataset(dataset)
    part = len(data.splits[0].train) / args.folds if args.folds else len(data.splits[0].val)
    with_macro, rows = part >= ENOUGH, []
    several = len(data.splits) > 1
    for seed in map(int, args.seeds.split(",")):
        # Where there is one split the seeds of the runs follow one another; those of another seed are others.
        evaluation = Evaluation(data, model, runs, seed if several else 10 * seed, args.device, folds=args.folds)
        for row in contestants(lines, args.count, with_macro):
            row["settings"] |= {"members": args.members} if args.members > 1 else {}
            (score,) = evaluation([make_config(model, **row["settings"])])
            rows.append({"dataset": dataset, "model": model, "seed": seed, "folds": args.folds, **row, **asdict(score)})
            print(f"{dataset} {model} seed {seed} {row['trial']!s:>7}: {100 * score.mean:.2f}", flush=True)
            if args.json:
                args.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"\nmean over seeds, in percent, best first by {'micro and macro' if with_macro else 'micro'}-F1")
    print("  trial  score  macro  validation")
    means: list[tuple[str, float, float, float]] = []
    for trial in dict.fromkeys(str(row["trial"]) for row in rows):
        own = [row for row in rows if str(row["trial"]) == trial]
        micro, macro, val = (float(np.mean([row[key] for row in own])) for key in ("mean", "macro", "val"))
        means.append((trial, micro, macro, val))
    for trial, micro, macro, val in sorted(means, key=lambda one: -_rank(one[1], one[2], with_macro)):
        print(f"{trial:>7}  {100 * micro:5.2f}  {100 * macro:5.2f}  {100 * val:5.2f}")


if __name__ == "__main__":
    main()
