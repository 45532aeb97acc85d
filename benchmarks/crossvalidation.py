"""Chooses between settings by cross-validation over all labelled nodes that are not test nodes.

Cora, CiteSeer and Pubmed have one split of 500 validation nodes, and early stopping uses these: a score on so few
nodes, by which the epoch was chosen, too, cannot tell good settings apart. Here training and validation nodes are put
together and divided into ten parts. A run is scored on one part; of the other nodes as many as the split has to
validate, drawn at random, stop it early, and the rest are its training nodes. So every node counts once and the same,
scored by a network that has not seen it. Other repeats divide the nodes otherwise. All candidates have the same parts
and seeds.

The rule: every candidate is scored once, the best ones (``--finalists``) in two more repeats, and the highest mean
share of nodes that are classified correctly, over all repeats, is chosen. Test nodes are in no part.

python benchmarks/crossvalidation.py benchmarks/citeseer_forms.toml --device cuda --workers 6 --json trials.jsonl

On a data set of ten splits the labelled nodes of each split are divided in this way, and the score is the mean over
splits (search 17). There macro-F1 counts as much as micro-F1 (``--both``), and the best candidates are not repeated but
scored as ensembles, too, on the same parts; the highest score of all is chosen:

python benchmarks/crossvalidation.py benchmarks/wisconsin.toml --parts 5 --both --ensembles 5 --device cuda --json FILE

Neighbours of what was chosen there, all of them ensembles, follow the first rule (search 18):

python benchmarks/crossvalidation.py benchmarks/wisconsin_ensembles.toml --parts 5 --both --finalists 3 --json FILE

Candidates are in a TOML file: ``dataset``, settings for ``all``, and a table ``candidate.NAME`` each with ``model`` and
further settings. Scores that the JSON file already has are not measured again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tomllib
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from asgat.data import Dataset, load_dataset
from asgat.data.dataset import Split
from asgat.nn.registry import make_config
from asgat.training.loop import train_jobs
from asgat.training.run_state import Job, RunResult
from asgat.training.runner import make_task

REPEATS = 3  # of the finalists


def parts_of(split: Split, count: int, seed: int) -> list[Split]:
    """Splits whose test parts divide the training and validation nodes of a split."""
    rng = np.random.default_rng(seed)
    nodes = rng.permutation(np.concatenate([split.train, split.val]))
    found = []
    for part in np.array_split(nodes, count):
        others = rng.permutation(np.setdiff1d(nodes, part))
        val, train = np.split(others, [len(split.val)])
        found.append(Split(np.sort(train), np.sort(val), np.sort(part)))
    return found


def measure(dataset: Dataset, job: dict[str, Any], parts: int, device: str) -> dict[str, Any]:
    """The score of one candidate in one repeat."""
    start = perf_counter()
    config = make_config(job["model"], **job["settings"])
    splits = [part for split in dataset.splits for part in parts_of(split, parts, job["repeat"])]
    held = replace(dataset, splits=tuple(splits))
    task = make_task(held, job["model"], config, torch.device(device))
    jobs = [Job(split, len(splits) * job["repeat"] + i, config, i) for i, split in enumerate(splits)]
    outcomes = dict(train_jobs(task, jobs))
    rows = [outcomes[i] for i in range(len(splits))]
    size = [len(split.test) for split in splits]
    right, macro = (
        [getattr(one, metric) if isinstance(one, RunResult) else 0.0 for one in rows]
        for metric in ("micro_f1", "macro_f1")
    )
    return {
        "dataset": dataset.name,
        **job,
        "device": device,
        "score": float(np.average(right, weights=size)),
        "macro": float(np.average(macro, weights=size)),
        "per_part": [round(score, 5) for score in right],
        "val": float(np.mean([one.val_score for one in rows if isinstance(one, RunResult)] or [0.0])),
        "epochs": float(np.mean([one.epochs for one in rows if isinstance(one, RunResult)] or [0.0])),
        "diverged": sum(not isinstance(one, RunResult) for one in rows),
        "seconds": round(perf_counter() - start, 1),
    }


def _measure(given: tuple[str, dict[str, Any], int, str]) -> dict[str, Any]:
    name, job, parts, device = given
    return measure(load_dataset(name), job, parts, device)


def read_candidates(file: Path, changes: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The data set, and the candidates with all of their settings."""
    table = tomllib.loads(file.read_text())
    candidates = []
    for name, own in table["candidate"].items():
        settings = {**table["all"], **own, **changes}
        candidates.append({"candidate": name, "model": settings.pop("model"), "settings": settings})
    return table["dataset"], candidates


def with_members(candidate: dict[str, Any], members: int) -> dict[str, Any]:
    """A candidate as an ensemble."""
    settings = {**candidate["settings"], "members": members}
    return {**candidate, "candidate": f"{candidate['candidate']} x {members}", "settings": settings}


def ranking(rows: list[dict[str, Any]], both: bool = False) -> list[tuple[str, int, float]]:
    """Candidates with their number of repeats and mean score: those with more repeats first, then the best."""
    scores: dict[str, list[float]] = {}
    for row in rows:
        scores.setdefault(row["candidate"], []).append((row["score"] + row["macro"]) / 2 if both else row["score"])
    means = [(name, len(own), float(np.mean(own))) for name, own in scores.items()]
    return sorted(means, key=lambda one: (-one[1], -one[2]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", type=Path, help="TOML file")
    parser.add_argument("--only", help="names of candidates, separated by commas")
    parser.add_argument("--finalists", type=int, default=4, help="0: score every candidate once and stop")
    parser.add_argument("--ensembles", type=int, help="score finalists with so many networks instead of repeating them")
    parser.add_argument("--both", action="store_true", help="rank by the mean of micro-F1 and macro-F1")
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--epochs", type=int, help="fewer epochs, for a test of this script")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, required=True, help="a line for every score, added as it is known")
    given = parser.parse_args()
    name, candidates = read_candidates(given.candidates, {"epochs": given.epochs} if given.epochs else {})
    if given.only:
        candidates = [one for one in candidates if one["candidate"] in given.only.split(",")]
    rows = [json.loads(line) for line in given.json.read_text().splitlines()] if given.json.exists() else []

    def score(chosen: list[dict[str, Any]], repeats: range) -> None:
        known = {(row["candidate"], row["repeat"]) for row in rows}
        jobs = [{**one, "repeat": repeat} for repeat in repeats for one in chosen]
        missing = [job for job in jobs if (job["candidate"], job["repeat"]) not in known]
        for row in pool.imap_unordered(_measure, [(name, job, given.parts, given.device) for job in missing]):
            rows.append(row)
            with given.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(
                f"{row['candidate']:>16} repeat {row['repeat']}: {100 * row['score']:.2f} {100 * row['macro']:.2f}"
                f" {row['seconds']} s",
                flush=True,
            )

    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        score(candidates, range(1))
        names = {one["candidate"] for one in candidates}
        first = [row for row in rows if row["repeat"] == 0 and row["candidate"] in names]
        best = [one for one, _, _ in ranking(first, given.both)[: given.finalists]]
        finalists = [one for one in candidates if one["candidate"] in best]
        if given.ensembles:
            able = [one for one in finalists if one["model"] in ("asgat-plus", "asgat-deep")]
            score([with_members(one, given.ensembles) for one in able], range(1))
        else:
            score(finalists, range(1, REPEATS))
    for candidate, repeats, mean in ranking(rows, given.both):
        print(f"{candidate:>16}  {repeats} repeats  {100 * mean:.2f}")


if __name__ == "__main__":
    main()
