"""A random search for recipes, judged on validation nodes alone.

    python benchmarks/search.py --datasets texas,wisconsin --models asgat-cheb,asgat-plus --trials 40 --out search.jsonl

Every trial is one draw of settings, trained on all ten runs; the log gets its mean validation score. The first trials
are settings known before: published ones of ASGAT, or the recipe of a baseline. The test nodes are taken out of the
splits before anything is trained, so no line of the log can hold a test figure. With ``--finish`` the best settings of
each data set and model are then trained once more by the ordinary runner, as `asgat train` would.

The heat kernel is searched as asgat-heat, asgat-heat-exact and asgat-heat-root (asgat-plus with filter=heat), each with
the trials of the learned filter it is held against: asgat-cheb, asgat-exact and asgat-plus.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

SPACE: dict[str, list[Any]] = {
    "lr": [0.005, 0.01, 0.02, 0.05, 0.1],
    "weight_decay": [1e-5, 1e-4, 5e-4, 1e-3, 5e-3],
    "dropout": [0.0, 0.1, 0.2, 0.4, 0.5, 0.6, 0.8],
    "hidden": [32, 64, 128],
    "heads": [2, 4, 8, 12],
    "k": [3, 4, 6, 9, 13, 17],
    "order": [8, 10, 12, 15],
    "elu": ["every", "hidden", "last", "none"],
    "filter_activation": ["none", "none", "relu"],
    "normalize_features": [True, True, False],
}
BASELINE_SPACE: dict[str, list[Any]] = {  # what all models have
    **{key: SPACE[key] for key in ("lr", "weight_decay", "dropout", "normalize_features")},
    "hidden": [16, 32, 64, 128],
}
OWN_SPACE: dict[str, dict[str, list[Any]]] = {  # what a baseline has beyond, or has otherwise
    "sgc": {"lr": [0.05, 0.1, 0.2], "weight_decay": [0.0, 5e-6, 1e-5, 1e-4, 5e-4], "steps": [1, 2, 3, 4]},
    "chebnet": {"order": [1, 2, 3, 4]},
    "armanet": {"stacks": [1, 2, 3], "depth": [1, 2, 4], "skip_dropout": [0.0, 0.25, 0.5, 0.75]},
    "gat": {"hidden": [8, 16, 32], "heads": [1, 4, 8], "attention_dropout": [0.0, 0.3, 0.6]},
    "appnp": {"alpha": [0.05, 0.1, 0.2, 0.5, 0.9], "steps": [5, 10, 20]},
    "gpr-gnn": {"alpha": [0.0, 0.1, 0.2, 0.5, 0.9, 1.0], "propagation_dropout": [0.0, 0.5, 0.7]},
    "linkx": {"layers": [1, 2, 3]},
}
HEAT_SCALES = [0.5, 1.0, 2.0, 3.0, 5.0, 10.0]
HEAT: dict[str, tuple[str, str, dict[str, Any]]] = {  # the model it is, the learned filter it is held against, settings
    "asgat-heat": ("asgat-heat", "asgat-cheb", {}),
    "asgat-heat-exact": ("asgat-heat", "asgat-exact", {"operator": "exact"}),
    "asgat-heat-root": ("asgat-plus", "asgat-plus", {"filter": "heat"}),
}
WEBKB = dict(lr=0.05, weight_decay=1e-4, dropout=0.1, hidden=32, heads=8, k=9, order=12, elu="hidden")
STARTS: dict[str, list[dict[str, Any]]] = {  # published or known settings, tried first
    "texas": [dict(lr=0.06, weight_decay=5e-4, dropout=0.1, hidden=128, heads=8, k=13, order=16, elu="last"), WEBKB],
    "cornell": [dict(lr=0.1, weight_decay=5e-4, dropout=0.0, hidden=32, heads=6, k=17, order=16, elu="last"), WEBKB],
    "wisconsin": [
        dict(lr=0.1, weight_decay=8e-4, dropout=0.0, hidden=128, heads=4, k=20, order=10, elu="last"),
        WEBKB,
    ],
    "chameleon": [
        dict(lr=0.005, weight_decay=1e-5, dropout=0.6, hidden=128, heads=12, k=3, order=8, elu="none"),
        dict(lr=0.01, weight_decay=1e-5, dropout=0.6, hidden=64, heads=12, k=9, order=8, elu="none"),
        dict(lr=0.01, weight_decay=1e-3, dropout=0.4, hidden=88, heads=12, k=6, order=8, elu="last"),
    ],
    "squirrel": [
        dict(lr=0.01, weight_decay=1e-4, dropout=0.6, hidden=128, heads=12, k=6, order=10, elu="hidden"),
        dict(lr=0.008, weight_decay=5e-5, dropout=0.5, hidden=256, heads=8, k=6, order=16, elu="last"),
        dict(lr=0.005, weight_decay=1e-5, dropout=0.6, hidden=128, heads=12, k=3, order=8, elu="none"),
    ],
    "cora": [
        dict(lr=0.01, weight_decay=5e-4, dropout=0.6, hidden=32, heads=8, k=13, order=10, elu="hidden"),
        dict(lr=0.005, weight_decay=1e-4, dropout=0.1, hidden=32, heads=1, k=15, order=14, elu="last"),
    ],
    "citeseer": [
        dict(lr=0.005, weight_decay=8e-4, dropout=0.2, hidden=512, heads=9, k=11, order=14, elu="last"),
        dict(lr=0.01, weight_decay=5e-4, dropout=0.6, hidden=64, heads=8, k=11, order=10, elu="hidden"),
    ],
    "pubmed": [dict(lr=0.01, weight_decay=1e-4, dropout=0.1, hidden=32, heads=2, k=11, order=15, elu="hidden")],
    "csbm": [dict(lr=0.01, weight_decay=5e-4, dropout=0.5, hidden=32, heads=8, k=6, order=10, elu="hidden")],
}


def sample(dataset: str, model: str, trial: int, seed: int) -> dict[str, Any]:
    """The settings of a trial, the same whatever else is searched."""
    if model in HEAT:
        return sample_heat(dataset, model, trial, seed)
    draw = random.Random(f"{dataset}/{model}/{trial}/{seed}")
    if not model.startswith("asgat-"):
        return sample_baseline(dataset, model, trial, draw)
    settings = {key: draw.choice(values) for key, values in SPACE.items()}
    starts = STARTS.get(dataset, [])
    if trial < len(starts):
        settings = dict(starts[trial], normalize_features=True)
    if dataset == "csbm":  # Gaussian features have no sum to speak of
        settings["normalize_features"] = False
    if dataset == "citeseer":
        settings["self_loops"] = "add"
    if model == "asgat-exact":
        settings.pop("order", None)
    if model == "asgat-plus":
        settings["root"] = True
    return settings


def sample_heat(dataset: str, name: str, trial: int, seed: int) -> dict[str, Any]:
    """The same trial of the learned filter, with a scale drawn apart in the place of that filter's own settings."""
    _, learned, own = HEAT[name]
    settings = {**sample(dataset, learned, trial, seed), **own}
    settings.pop("filter_activation", None)
    settings["heat_scale"] = random.Random(f"{dataset}/{name}/{trial}/{seed}/heat_scale").choice(HEAT_SCALES)
    return settings


def sample_baseline(dataset: str, model: str, trial: int, draw: random.Random) -> dict[str, Any]:
    """A baseline's recipe, the settings of its own paper, as trial 0; then draws that change some of them."""
    from asgat.nn.registry import make_config
    from asgat.recipe import load_config

    recipe, defaults = load_config(dataset, model).to_dict(), make_config(model).to_dict()
    settings = {key: value for key, value in recipe.items() if value != defaults[key]}
    if trial == 0:
        return settings
    settings |= {key: draw.choice(values) for key, values in {**BASELINE_SPACE, **OWN_SPACE.get(model, {})}.items()}
    if dataset == "csbm":
        settings["normalize_features"] = False
    if model == "sgc":  # it has no hidden layer
        settings.pop("hidden")
    return settings


FREE = {"lr", "weight_decay", "dropout", "hidden", "heads", "k", "elu", "root"}
FREE |= {"filter", "filter_activation", "heat_scale"}
"""Settings that change nothing about a model's inputs."""
_INPUTS: dict[str, Any] = {}  # one graph's table serves all trials of a process that share its settings


def evaluate(job: dict[str, Any]) -> dict[str, Any]:
    """A trial's mean validation score."""
    from asgat.data import load_dataset
    from asgat.errors import AsgatError
    from asgat.nn.registry import make_config, model_spec
    from asgat.training.runner import make_inputs
    from asgat.training.trainer import train

    torch.set_num_threads(job["threads"])
    started = time.time()
    settings, device = job["settings"], torch.device(job["device"])
    config = make_config(job["model"], **settings, epochs=job["epochs"])
    try:
        polynomial = job["model"] in ("asgat-cheb", "asgat-heat", "asgat-plus")  # these share their tables
        shared = {key: value for key, value in settings.items() if key not in FREE}
        key = json.dumps([job["dataset"], "" if polynomial else job["model"], shared], sort_keys=True)
        if key not in _INPUTS:
            if len(_INPUTS) > 12:
                _INPUTS.clear()
            data = load_dataset(job["dataset"])
            _INPUTS[key] = data, make_inputs(data, job["model"], config, device)
        data, inputs = _INPUTS[key]
        y = torch.from_numpy(data.y).to(device)
        sizes = data.num_features, data.num_classes, data.num_nodes
        build = partial(model_spec(job["model"]).make, config, *sizes)
        several = len(data.splits) > 1
        outcomes = []
        for i in job["runs"]:
            split = data.splits[i if several else 0]
            blind = replace(split, test=split.val)
            outcomes.append(train(build, inputs, y, blind, config, 0 if several else i, data.metric))
    except (AsgatError, RuntimeError) as error:
        return {**job, "val_mean": 0.0, "error": str(error)[:200]}
    scores = [outcome.val_score for outcome in outcomes]
    figures = {"val_mean": float(np.mean(scores)), "val_std": float(np.std(scores))}
    figures["restarts"] = sum(outcome.restarts for outcome in outcomes)
    return {**job, **figures, "seconds": round(time.time() - started, 1)}


def finish(row: dict[str, Any]) -> dict[str, Any]:
    """The best settings trained by the ordinary runner, test nodes included, with seed 0."""
    from asgat.data import load_dataset
    from asgat.nn.registry import make_config
    from asgat.training.runner import run

    torch.set_num_threads(row["threads"])
    config = make_config(row["model"], **row["settings"])
    return {**run(load_dataset(row["dataset"]), row["model"], config, range(10), 0, row["device"]), "found": row}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="texas,cornell,wisconsin")
    parser.add_argument("--models", default="asgat-cheb,asgat-exact,asgat-plus")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--runs", type=int, default=10, help="runs of each trial")
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9, help="no trial is waited for any longer")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="threads of each worker")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="search.jsonl")
    parser.add_argument("--finish", type=Path, help="folder for the results of the best settings")
    options = parser.parse_args()
    started = time.time()
    base = {key: getattr(options, key) for key in ("epochs", "device", "seed", "threads")}
    jobs = [
        {**base, "dataset": d, "model": HEAT[m][0] if m in HEAT else m, "name": m, "trial": t,
         "runs": list(range(options.runs)), "settings": sample(d, m, t, options.seed)}
        for t in range(options.trials)
        for d in options.datasets.split(",")
        for m in options.models.split(",")
    ]  # fmt: skip
    best: dict[tuple[str, str], dict[str, Any]] = {}
    with get_context("spawn").Pool(options.workers) as pool, open(options.out, "a") as log:
        trials = pool.imap_unordered(evaluate, jobs)
        for _ in jobs:
            try:
                row = trials.next(timeout=max(0.1, options.seconds - (time.time() - started)))
            except Exception:  # out of time: what is not done is not counted
                break
            log.write(json.dumps(row) + "\n")
            log.flush()
            group = row["dataset"], row["name"]
            if group not in best or row["val_mean"] > best[group]["val_mean"]:
                best[group] = row
        pool.terminate()
    for (dataset, name), row in sorted(best.items()):
        print(f"{dataset:12} {name:16} val {row['val_mean']:.4f}  {row['settings']}", flush=True)
    if options.finish:
        options.finish.mkdir(parents=True, exist_ok=True)
        with get_context("spawn").Pool(options.workers) as pool:
            for result in pool.imap_unordered(finish, best.values()):
                name = f"{result['dataset']}-{result['found']['name']}"
                (options.finish / f"{name}.json").write_text(json.dumps(result))
                spread = result["micro_f1"]
                print(f"{name:24} test {spread['mean']:.4f} ± {spread['std']:.4f}", flush=True)


if __name__ == "__main__":
    main()
