"""Scores ensembles of several sizes on validation nodes, to choose `members` of a recipe.

Every network is trained once, with the seed that `asgat train --set members=M` gives it; ensembles of all sizes are
made of the same networks. Their probabilities are kept, so that networks can be added later, and so that `--test` can
score the chosen size afterwards. Without `--test`, no test score is computed.

python benchmarks/ensemble_sizes.py squirrel-directed --members 5 --device cuda --keep squirrel-directed.npz
python benchmarks/ensemble_sizes.py squirrel-directed --members 0 --keep squirrel-directed.npz --test
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
import torch

from asgat.data import Dataset, load_dataset
from asgat.nn.ensemble import average
from asgat.recipe import default_model, load_config
from asgat.training.loop import train_runs
from asgat.training.objective import scores_of
from asgat.training.run_state import Job, Run, RunResult, baseline_score, member_seed, run_seed
from asgat.training.runner import make_task

SIZES = (1, 3, 5)
Kept = dict[str, np.ndarray]


def train(dataset: Dataset, model: str, args: argparse.Namespace, kept: Kept) -> None:
    """Adds the logits of networks that are not kept yet, a seed and member at a time."""
    config = load_config(args.dataset, model, {"members": 1})
    device = torch.device(args.device)
    task = make_task(dataset, model, config, device)
    started = time.monotonic()
    runs = range(10)
    for member, seed in product(range(args.members), map(int, args.seeds.split(","))):
        if any(key.startswith(f"{seed}/{member}/") for key in kept):
            continue
        if time.monotonic() - started > args.seconds:
            break
        splits = [dataset.splits[i if len(dataset.splits) > 1 else 0] for i in runs]
        seeds = [run_seed(seed, i, len(dataset.splits)) for i in runs]
        jobs = [
            Job(s, member_seed(own, member), config, i) for i, (s, own) in enumerate(zip(splits, seeds, strict=True))
        ]
        states = [Run(job, baseline_score(dataset.y, job.split, task.metric)) for job in jobs]
        for i, run in train_runs(task, states):
            outcome = run.outcome()
            if not isinstance(outcome, RunResult):
                raise outcome
            net = task.example(config).to(device).eval()
            net.load_state_dict(outcome.state)
            with torch.no_grad():
                kept[f"{seed}/{member}/{i}"] = net(*task.inputs).log_softmax(-1).cpu().numpy().astype(np.float16)
        np.savez_compressed(args.keep, **kept)
        print(f"{args.dataset} member {member} seed {seed}: {time.monotonic() - started:.0f} s", flush=True)


def table(dataset: Dataset, kept: Kept, test: bool) -> None:
    """Mean scores for every size that all seeds have, and the gain over the next smaller one."""
    y = torch.from_numpy(dataset.y)
    seeds = sorted({int(key.split("/")[0]) for key in kept})
    before: np.ndarray | None = None
    for size in SIZES:
        rows = []
        for seed, i in product(seeds, range(10)):
            names = [f"{seed}/{member}/{i}" for member in range(size)]
            if all(name in kept for name in names):
                votes = torch.stack([torch.from_numpy(kept[name]).double() for name in names])
                split = dataset.splits[i if len(dataset.splits) > 1 else 0]
                rows.append((seed, scores_of(average(votes), y, split, dataset.metric)))
        if not rows:
            return
        val = np.array([row["val_score"] for _, row in rows])
        line = f"{dataset.name} {size} networks, {len(rows)} runs: validation {100 * val.mean():.2f}"
        if before is not None and len(before) == len(val):
            gain = val - before
            line += f", gain {100 * gain.mean():.2f} ± {100 * gain.std() / np.sqrt(len(gain)):.2f}"
        before = val
        if test:
            score = dataset.metric if dataset.metric == "roc_auc" else "micro_f1"
            of = {seed: np.array([row[score] for own, row in rows if own == seed]) for seed in seeds}
            all_of = np.concatenate(list(of.values()))
            macro = np.array([row["macro_f1"] for _, row in rows])
            each = ", ".join(f"{100 * own.mean():.2f}" for own in of.values() if len(own))
            line += (
                f"; test {100 * all_of.mean():.2f} ± {100 * all_of.std():.2f} ({each}), macro {100 * macro.mean():.2f}"
            )
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--members", type=int, default=5, help="networks per seed and split; 0: train nothing")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing new after so many")
    parser.add_argument("--keep", type=Path, required=True, help="npz file of the networks' log-probabilities")
    parser.add_argument("--test", action="store_true", help="print test scores, too: after the choice")
    args = parser.parse_args()
    dataset = load_dataset(args.dataset)
    kept: Kept = dict(np.load(args.keep)) if args.keep.exists() else {}
    if args.members:
        train(dataset, default_model(args.dataset), args, kept)
    table(dataset, kept, args.test)


if __name__ == "__main__":
    main()
