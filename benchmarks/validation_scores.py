"""Scores given settings of any model, and the best trials of searches, by the mean validation score, not by test nodes.

The rule of search 19: given settings (a TOML file) are scored on all splits with seed 0, as the trials of `asgat tune`
are. The best of both are the finalists; they are scored with further seeds, too. Of those within half a standard error
of the highest mean over splits and seeds the one whose training was shortest is chosen.

python benchmarks/validation_scores.py benchmarks/cornell_true.toml --json given.jsonl
python benchmarks/validation_scores.py benchmarks/cornell_true.toml --json given.jsonl --trials LOG LOG --finalists 4

Scores that the JSON file already has are not measured again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from crossvalidation import read_candidates

from asgat.data import Dataset, load_dataset
from asgat.nn.registry import make_config
from asgat.tuning.evaluation import Evaluation, cheapest


def measure(dataset: Dataset, candidate: dict[str, Any], seed: int) -> dict[str, Any]:
    """The validation score of one candidate with one seed, on all splits."""
    evaluation = Evaluation(dataset, candidate["model"], range(len(dataset.splits)), seed)
    score = evaluation(make_config(candidate["model"], **candidate["settings"]))
    return {"dataset": dataset.name, **candidate, "seed": seed, **asdict(score)}


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def as_candidate(trial: dict[str, Any]) -> dict[str, Any]:
    """A trial of `asgat tune` in the form of a given candidate."""
    name = f"{trial['model']}, trial {trial['trial']}"
    same = {key: trial[key] for key in ("model", "settings", "seed", "std", "seconds")}
    return {"candidate": name, **same, "mean": trial["value"]}


def over_seeds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each candidate: mean and spread over the runs of all seeds, the best first."""
    found = []
    for place, name in enumerate(dict.fromkeys(row["candidate"] for row in rows)):
        own = [row for row in rows if row["candidate"] == name]
        mean = float(np.mean([row["mean"] for row in own]))
        variance = np.mean([row["std"] ** 2 + (row["mean"] - mean) ** 2 for row in own])
        seconds = float(np.mean([row["seconds"] for row in own]))
        found.append({"trial": place, "candidate": name, "value": mean, "std": variance**0.5, "seconds": seconds})
    return sorted(found, key=lambda row: (-row["value"], row["seconds"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", type=Path, help="TOML file, as for crossvalidation.py")
    parser.add_argument("--trials", type=Path, nargs="*", default=[], help="trials.jsonl of `asgat tune` with seed 0")
    parser.add_argument("--finalists", type=int, default=0, help="how many are scored with further seeds; 0: none")
    parser.add_argument("--seeds", default="1,2", help="further seeds of the finalists")
    parser.add_argument("--json", type=Path, required=True, help="a line for every score, added as it is known")
    given = parser.parse_args()
    name, candidates = read_candidates(given.candidates, {})
    dataset, rows = load_dataset(name), read_lines(given.json)

    def score(candidate: dict[str, Any], seed: int) -> None:
        if any((row["candidate"], row["seed"]) == (candidate["candidate"], seed) for row in rows):
            return
        rows.append(measure(dataset, candidate, seed))
        with given.json.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(f"{candidate['candidate']}, seed {seed}: {100 * rows[-1]['mean']:.2f}", flush=True)

    for candidate in candidates:
        score(candidate, 0)
    first = [row for row in rows if row["seed"] == 0]
    for log in given.trials:
        first += [as_candidate(trial) for trial in read_lines(log) if "error" not in trial]
    first = sorted(first, key=lambda row: (-row["mean"], row["seconds"]))
    finalists = first[: given.finalists]
    for row in finalists:
        for seed in map(int, given.seeds.split(",")):
            score({key: row[key] for key in ("candidate", "model", "settings")}, seed)
    names = [row["candidate"] for row in finalists]
    further = [row for row in rows if row["candidate"] in names and row["seed"] != 0]
    table = over_seeds([*finalists, *further] if finalists else first)
    for row in table:
        print(f"{row['candidate']}: {100 * row['value']:.2f} ± {100 * row['std']:.2f}, {row['seconds']:.0f} s")
    if finalists:
        runs = len(dataset.splits) * (1 + len(given.seeds.split(",")))
        print("chosen:", cheapest(table, runs)["candidate"])


if __name__ == "__main__":
    main()
