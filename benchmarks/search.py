"""A random search for recipes, judged on validation nodes alone.

    python benchmarks/search.py --datasets texas,wisconsin --models asgat-cheb,asgat-plus --trials 40 --out search.jsonl

Every trial is trained on a few splits; the best eight of each data set and model then on all ten. The test nodes are
taken out of the splits before anything is trained, so no line of the log can hold a test figure.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import defaultdict
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

SPACE: dict[str, list[Any]] = {
    "lr": [0.005, 0.01, 0.02, 0.05, 0.1],
    "weight_decay": [1e-5, 1e-4, 5e-4, 1e-3],
    "dropout": [0.0, 0.1, 0.2, 0.4, 0.6],
    "hidden": [32, 64, 128],
    "heads": [2, 4, 8],
    "k": [3, 6, 9, 13, 17],
    "order": [8, 10, 12, 15],
    "elu": ["every", "hidden", "last", "none"],
    "filter_activation": ["none", "relu"],
    "normalize_features": [True],
}
WEBKB = dict(lr=0.05, weight_decay=1e-4, dropout=0.1, hidden=32, heads=8, k=9, order=12, elu="hidden")
STARTS: dict[str, list[dict[str, Any]]] = {  # published or known settings, tried first
    "texas": [dict(lr=0.06, weight_decay=5e-4, dropout=0.1, hidden=128, heads=8, k=13, order=16, elu="last"), WEBKB],
    "cornell": [dict(lr=0.1, weight_decay=5e-4, dropout=0.0, hidden=32, heads=6, k=17, order=16, elu="last"), WEBKB],
    "wisconsin": [dict(lr=0.1, weight_decay=8e-4, dropout=0.0, hidden=128, heads=4, k=20, order=10, elu="last"), WEBKB],
    "chameleon": [
        dict(lr=0.01, weight_decay=1e-5, dropout=0.6, hidden=64, heads=12, k=9, order=8, elu="none"),
        dict(lr=0.01, weight_decay=1e-3, dropout=0.4, hidden=88, heads=12, k=6, order=8, elu="last"),
        dict(lr=0.005, weight_decay=1e-5, dropout=0.6, hidden=128, heads=12, k=3, order=8, elu="none"),
    ],
    "squirrel": [
        dict(lr=0.01, weight_decay=1e-5, dropout=0.6, hidden=64, heads=12, k=9, order=8, elu="none"),
        dict(lr=0.008, weight_decay=5e-5, dropout=0.5, hidden=256, heads=8, k=6, order=16, elu="last"),
    ],
    "cora": [
        dict(lr=0.005, weight_decay=1e-4, dropout=0.1, hidden=32, heads=1, k=15, order=14, elu="last"),
        dict(lr=0.01, weight_decay=5e-4, dropout=0.6, hidden=32, heads=8, k=13, order=10, elu="hidden"),
    ],
    "citeseer": [
        dict(
            lr=0.005, weight_decay=8e-4, dropout=0.2, hidden=512, heads=9, k=11, order=14, elu="last", self_loops="add"
        ),
        dict(
            lr=0.01, weight_decay=5e-4, dropout=0.6, hidden=64, heads=8, k=11, order=10, elu="hidden", self_loops="add"
        ),
    ],
}


def sample(dataset: str, model: str, trial: int, seed: int) -> dict[str, Any]:
    draw = random.Random(f"{dataset}/{model}/{trial}/{seed}")
    settings = {key: draw.choice(values) for key, values in SPACE.items()}
    starts = STARTS.get(dataset, [])
    if trial < len(starts):
        settings = dict(starts[trial], normalize_features=True)
    if model == "asgat-exact":
        settings.pop("order", None)
    if model == "asgat-plus":
        settings["root"] = True
    if model in ("mlp", "gcn"):
        settings = {key: settings[key] for key in ("lr", "weight_decay", "dropout", "hidden", "normalize_features")}
    return settings


def evaluate(job: dict[str, Any]) -> dict[str, Any]:
    from asgat.data import load_dataset
    from asgat.errors import AsgatError
    from asgat.nn.registry import make_config, model_spec
    from asgat.training.runner import make_inputs
    from asgat.training.trainer import train

    torch.set_num_threads(1)
    started = time.time()
    data = load_dataset(job["dataset"])
    config = make_config(job["model"], **job["settings"], epochs=job["epochs"])
    device = torch.device(job["device"])
    y = torch.from_numpy(data.y).to(device)
    scores, restarts = [], 0
    try:
        inputs = make_inputs(data, job["model"], config, device)
        for i in job["runs"]:
            several = len(data.splits) > 1
            split = data.splits[i if several else 0]
            blind = replace(split, test=split.val)
            build = lambda: model_spec(job["model"]).build(config, data.num_features, data.num_classes)  # noqa: E731
            outcome = train(build, inputs, y, blind, config, 0 if several else i, data.metric)
            scores.append(outcome.val_score)
            restarts += outcome.restarts
    except (AsgatError, RuntimeError) as error:
        return {**job, "val_mean": 0.0, "error": str(error)[:200], "seconds": time.time() - started}
    figures = {"val_mean": float(np.mean(scores)), "val_std": float(np.std(scores)), "restarts": restarts}
    return {**job, **figures, "seconds": round(time.time() - started, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="texas,cornell,wisconsin")
    parser.add_argument("--models", default="asgat-cheb,asgat-exact,asgat-plus")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--first-runs", default="0,1,2,3,4", help="runs of the first stage")
    parser.add_argument("--final-runs", type=int, default=10, help="number of runs of the second stage")
    parser.add_argument("--keep", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=1e9, help="no first-stage trial starts later than this")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="search.jsonl")
    options = parser.parse_args()
    started = time.time()
    base = {"epochs": options.epochs, "device": options.device, "seed": options.seed}
    groups = [(d, m) for d in options.datasets.split(",") for m in options.models.split(",")]
    first = [int(run) for run in options.first_runs.split(",")]
    jobs = [
        {**base, "dataset": d, "model": m, "trial": t, "runs": first, "settings": sample(d, m, t, options.seed)}
        for t in range(options.trials)
        for d, m in groups
    ]
    done: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    with get_context("spawn").Pool(options.workers) as pool, open(options.out, "a") as log:

        def collect(batch: Any, limit: float) -> list[dict[str, Any]]:
            rows = []
            for row in batch:
                rows.append(row)
                log.write(json.dumps(row) + "\n")
                log.flush()
                if time.time() - started > limit:
                    break
            return rows

        for row in collect(pool.imap_unordered(evaluate, jobs), options.seconds):
            done[row["dataset"], row["model"]].append(row)
        if time.time() - started > options.seconds:
            pool.terminate()
    finals = []
    for rows in done.values():
        for row in sorted(rows, key=lambda row: -row["val_mean"])[: options.keep]:
            job = {k: row[k] for k in ("epochs", "device", "seed", "dataset", "model", "trial", "settings")}
            finals.append({**job, "runs": list(range(options.final_runs))})
    with get_context("spawn").Pool(options.workers) as pool, open(options.out, "a") as log:
        best: dict[tuple[str, str], dict[str, Any]] = {}
        for row in pool.imap_unordered(evaluate, finals):
            log.write(json.dumps(row) + "\n")
            log.flush()
            key = row["dataset"], row["model"]
            if key not in best or row["val_mean"] > best[key]["val_mean"]:
                best[key] = row
    for (dataset, model), row in sorted(best.items()):
        print(f"{dataset:12} {model:12} val {row['val_mean']:.4f}  {row['settings']}")


if __name__ == "__main__":
    main()
